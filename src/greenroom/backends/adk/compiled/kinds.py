"""Which kind of flow becomes which node."""

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.flow import Fallback, Flow, Parallel, Sequence, Step
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop, Route
from greenroom.agents.transforms import Transform
from greenroom.backends.adk.compiled import forks, nodes
from greenroom.backends.adk.compiled.compiler import Made

KINDS: dict[type[Flow], Made] = {
    Agent: nodes.agent_node,
    Step: nodes.leaf_node,
    Transform: nodes.leaf_node,
    Sequence: nodes.sequence_node,
    Parallel: nodes.parallel_node,
    Route: nodes.route_node,
    Loop: nodes.loop_node,
    Approved: nodes.approved_node,
    Timeout: forks.timeout_node,
    Fallback: forks.fallback_node,
    Race: forks.race_node,
    MapOver: forks.map_over_node,
    Team: forks.team_node,
    Remote: nodes.leaf_node,
}
"""Which kind of flow becomes which node; a kind that is missing here has no equivalent there."""
