"""What is asked: cases, turns, expectations, eval sets, mocks, and what a metric may conclude."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from greenroom.cases.case import Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.data import case_data, case_from
from greenroom.cases.evalset import EvalSet
from greenroom.cases.mocks import Fault, Live, by_args, fault, in_turn, live
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.cases.users import Lines, SimulatedUser
from greenroom.ledger.blobs import attach

if TYPE_CHECKING:
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
    from greenroom.cases.repairs import fix
    from greenroom.cases.templates import from_template, multi_turn, single_turn, tool_test

# What a rehearsal does not need is loaded when it is asked for.
_SELDOM = {
    "EvalConfig": "config",
    "EvalSets": "files",
    "Problem": "problems",
    "check": "checks",
    "evalset_schema": "files",
    "fix": "repairs",
    "from_template": "templates",
    "harvest": "from_runs",
    "matches_filter": "filters",
    "merge": "merged",
    "multi_turn": "templates",
    "read_config": "config",
    "read_evalset": "files",
    "register_shape": "files",
    "single_turn": "templates",
    "tool_test": "templates",
    "write_config": "config",
    "write_evalset": "files",
}

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
    "register_shape",
    "single_turn",
    "tool_test",
    "write_config",
    "write_evalset",
]


def __getattr__(name: str) -> Any:
    if name not in _SELDOM:
        raise AttributeError(f"module 'greenroom.cases' has no attribute {name!r}")
    return getattr(import_module(f"greenroom.cases.{_SELDOM[name]}"), name)
