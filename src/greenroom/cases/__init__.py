"""What is asked: cases, turns, expectations, eval sets, mocks, and what a metric may conclude."""

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.data import case_data, case_from
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files import read_evalset, write_evalset
from greenroom.cases.mocks import Fault, Live, by_args, fault, in_turn, live
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.cases.users import Lines, SimulatedUser

__all__ = [
    "Case",
    "Criterion",
    "EvalSet",
    "Expect",
    "Fault",
    "Lines",
    "Live",
    "Metric",
    "MetricLike",
    "NotApplicable",
    "Outcome",
    "Score",
    "SimulatedUser",
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
