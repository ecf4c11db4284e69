"""Greenroom: where AI agents rehearse before they meet real people.

The names below load their rooms when first used, so that importing the package costs nothing.
"""

from greenroom.lazy import lazy

TYPE_CHECKING = False  # as in `typing`, which takes longer to load than all of this
if TYPE_CHECKING:
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

__getattr__, __dir__ = lazy(
    __name__,
    {
        "agents": "Agent StateSchema loop route step tool",
        "backends": "per_case",
        "cases": "Case EvalSet Expect Lines NotApplicable Score SimulatedUser Stop Turn Unmeasured "
        "attach fault live",
        "errors": "GreenroomError",
        "ledger": "Ledger call with_state_change",
        "metrics": "metric",
        "models": "Scripted",
        "results": "Report",
        "simulation": "Bridge UserAgents perform simulate",
        "suite": "evaluate rehearse score",
    },
)
