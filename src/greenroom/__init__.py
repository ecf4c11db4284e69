"""Greenroom: where AI agents rehearse before they meet real people.

The names below load their packages when first used, so that importing the package costs nothing.
"""

from importlib import import_module

# Not imported from `typing`, which takes longer to load than this whole module.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from greenroom.agents import Agent, StateSchema, loop, route, step, tool
    from greenroom.backends import per_case
    from greenroom.cases import (
        Case,
        EvalSet,
        Expect,
        Lines,
        NotApplicable,
        Score,
        SimulatedUser,
        Stop,
        Turn,
        Unmeasured,
        attach,
        fault,
        live,
    )
    from greenroom.errors import GreenroomError
    from greenroom.ledger import Ledger, call, with_state_change
    from greenroom.metrics import metric
    from greenroom.models import Scripted
    from greenroom.results import Report
    from greenroom.simulation import Bridge, UserAgents, perform, simulate
    from greenroom.suite import evaluate, rehearse, score

__version__ = "0.1.0"

_ROOMS = {
    "greenroom.agents": ("Agent", "StateSchema", "loop", "route", "step", "tool"),
    "greenroom.backends": ("per_case",),
    "greenroom.cases": (
        "Case",
        "EvalSet",
        "Expect",
        "Lines",
        "NotApplicable",
        "Score",
        "SimulatedUser",
        "Stop",
        "Turn",
        "Unmeasured",
        "attach",
        "fault",
        "live",
    ),
    "greenroom.errors": ("GreenroomError",),
    "greenroom.ledger": ("Ledger", "call", "with_state_change"),
    "greenroom.metrics": ("metric",),
    "greenroom.models": ("Scripted",),
    "greenroom.results": ("Report",),
    "greenroom.simulation": ("Bridge", "UserAgents", "perform", "simulate"),
    "greenroom.suite": ("evaluate", "rehearse", "score"),
}
_ROOM_OF = {name: room for room, names in _ROOMS.items() for name in names}

__all__ = [
    "Agent",
    "Bridge",
    "Case",
    "EvalSet",
    "Expect",
    "GreenroomError",
    "Ledger",
    "Lines",
    "NotApplicable",
    "Report",
    "Score",
    "Scripted",
    "SimulatedUser",
    "StateSchema",
    "Stop",
    "Turn",
    "Unmeasured",
    "UserAgents",
    "attach",
    "call",
    "evaluate",
    "fault",
    "live",
    "loop",
    "metric",
    "per_case",
    "perform",
    "rehearse",
    "route",
    "score",
    "simulate",
    "step",
    "tool",
    "with_state_change",
]


def __getattr__(name: str) -> "Any":
    room = _ROOM_OF.get(name)
    if room is None:
        raise AttributeError(f"module 'greenroom' has no attribute {name!r}")
    value = getattr(import_module(room), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
