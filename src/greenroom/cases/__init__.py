"""What is asked: cases, turns, expectations, eval sets, mocks, and what a metric may conclude."""

from greenroom.cases.case import Case, EvalSet, Expect, Stop, Turn
from greenroom.cases.data import case_data, case_from
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.mocks import Fault, Live, by_args, fault, in_turn, live
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured

__all__ = [
    "Case",
    "EvalSet",
    "Expect",
    "Fault",
    "Live",
    "Metric",
    "MetricLike",
    "NotApplicable",
    "Outcome",
    "Score",
    "Stop",
    "Turn",
    "Unmeasured",
    "by_args",
    "case_data",
    "case_from",
    "fault",
    "in_turn",
    "live",
    "read_evalset",
    "write_evalset",
]
