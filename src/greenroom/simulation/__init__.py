"""One trial of a case: gate, fence, users, bridge, and when it ends."""

from typing import TYPE_CHECKING

from greenroom.cases.users import Lines, SimulatedUser, UserAgents
from greenroom.lazy import lazy
from greenroom.ledger.changes import with_state_change
from greenroom.simulation.conversation import simulate
from greenroom.simulation.performance import Performance, perform
from greenroom.simulation.spoken import Restarted
from greenroom.simulation.user.bridge import Bridge

if TYPE_CHECKING:
    from greenroom.simulation.recorded.allowance import Allowance
    from greenroom.simulation.recorded.decisive_step import Deciding, deciding_step
    from greenroom.simulation.recorded.fork import fork
    from greenroom.simulation.recorded.replay import replay
    from greenroom.simulation.recorded.shrink import Shrinking, ShrinkOptions, Shrunk, shrink
    from greenroom.simulation.summary import Simulation, simulation_data, simulation_of

__all__ = [
    "Allowance",
    "Bridge",
    "Deciding",
    "Lines",
    "Performance",
    "Restarted",
    "ShrinkOptions",
    "Shrinking",
    "Shrunk",
    "SimulatedUser",
    "Simulation",
    "UserAgents",
    "deciding_step",
    "fork",
    "perform",
    "replay",
    "shrink",
    "simulate",
    "simulation_data",
    "simulation_of",
    "with_state_change",
]

# Loaded when first used: a rehearsal does not need these.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "recorded.allowance": "Allowance",
        "recorded.decisive_step": "Deciding deciding_step",
        "recorded.fork": "fork",
        "recorded.replay": "replay",
        "recorded.shrink": "Shrinking ShrinkOptions Shrunk shrink",
        "summary": "Simulation simulation_data simulation_of",
    },
)
