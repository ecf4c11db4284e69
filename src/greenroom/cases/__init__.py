"""Cases: what is asked of an agent. Turns, expectations, eval sets, mocks, and the outcomes of metrics."""

from typing import TYPE_CHECKING

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.data import case_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.mocks import Fault, Live, Simulated, by_args, fault, in_turn, live, simulated
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.cases.users import Lines, SimulatedUser
from greenroom.lazy import lazy
from greenroom.ledger.blobs import attach

if TYPE_CHECKING:
    from greenroom.cases.attacks import red_team
    from greenroom.cases.checks import check
    from greenroom.cases.config import EvalConfig, read_config, write_config
    from greenroom.cases.files import (
        EvalSets,
        evalset_schema,
        read_evalset,
        register_shape,
        write_evalset,
    )
    from greenroom.cases.filters import matches_filter
    from greenroom.cases.from_runs import harvest
    from greenroom.cases.merged import merge
    from greenroom.cases.problems import Problem
    from greenroom.cases.reader import case_from
    from greenroom.cases.repairs import fix
    from greenroom.cases.templates import from_template, multi_turn, single_turn, tool_test


__all__ = [
    "Case",
    "Criterion",
    "EvalConfig",
    "EvalSet",
    "EvalSets",
    "Expect",
    "Fault",
    "Lines",
    "Live",
    "Metric",
    "MetricLike",
    "NotApplicable",
    "Outcome",
    "Problem",
    "Score",
    "Simulated",
    "SimulatedUser",
    "Stop",
    "Turn",
    "Unmeasured",
    "attach",
    "by_args",
    "case_data",
    "case_from",
    "check",
    "evalset_schema",
    "fault",
    "fix",
    "from_template",
    "harvest",
    "in_turn",
    "live",
    "matches_filter",
    "merge",
    "multi_turn",
    "read_config",
    "read_evalset",
    "red_team",
    "register_shape",
    "simulated",
    "single_turn",
    "tool_test",
    "write_config",
    "write_evalset",
]

# Loaded when first used: a rehearsal does not need these.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "attacks": "red_team",
        "checks": "check",
        "config": "EvalConfig read_config write_config",
        "files": "EvalSets evalset_schema read_evalset register_shape write_evalset",
        "filters": "matches_filter",
        "from_runs": "harvest",
        "merged": "merge",
        "problems": "Problem",
        "reader": "case_from",
        "repairs": "fix",
        "templates": "from_template multi_turn single_turn tool_test",
    },
)
