"""Which kind of flow becomes which node, and everything in a flow that has no equivalent in google-adk."""

from collections.abc import Iterator

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.context import History
from greenroom.agents.flow import Fallback, Flow, Parallel, Sequence, Step
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.graph import Graph, Node
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop, Route
from greenroom.agents.transforms import Transform
from greenroom.backends.adk.compiled import forks, nodes
from greenroom.backends.adk.compiled.compiler import Made
from greenroom.errors import CannotCompile

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
_OF_THE_FRAMEWORK = ("transfer_to_agent", "set_model_response", "finish_task")
_PREFIX = "adk_request_"


def check_forms(graph: Graph) -> None:
    """Refuse a flow that cannot be compiled, naming every reason."""
    found = [(node.id, why) for node in graph.nodes() for why in _problems(node)]
    if found:
        raise CannotCompile(found)


def _problems(node: Node) -> Iterator[str]:
    flow = node.flow
    if type(flow) not in KINDS:
        yield (
            f"{flow.kind}(...) has no node there. Put a step or a tool in its place, or run the flow as "
            f"it is: perform(flow, ...)."
        )
    elif isinstance(flow, Agent):
        yield from _of_agent(flow)
    elif isinstance(flow, Step) and "chunks" in flow.wants:
        yield "it takes `chunks`, but nodes there pass on whole outputs. Take `input`."
    elif isinstance(flow, Sequence) and flow.cuts():
        yield "it splits what its parts say into pieces, by(...). Leave that out."
    elif isinstance(flow, Race):
        yield from _of_race(node)


def _of_agent(agent: Agent) -> Iterator[str]:
    for tool in agent.toolbox:
        if tool.name in _OF_THE_FRAMEWORK or tool.name.startswith(_PREFIX):
            yield f"its tool {tool.name!r} is called as one of google-adk's own. Rename it."
        if tool.required_resources:
            names = ", ".join(tool.required_resources)
            yield (
                f"its tool {tool.name!r} needs the resource {names}, but there are no resources there. Open it in "
                f"the body, or give the parameter a default."
            )
    if any(isinstance(rule, History) and rule.summarise is not None for rule in agent.context):
        yield (
            "its context is summarised by a model, history(summarise=...). Use history(last=...), or "
            "App.events_compaction_config of google-adk."
        )


def _of_race(node: Node) -> Iterator[str]:
    waiting = [below for below in Graph(node).nodes() if _waits(below)]
    for below in waiting:
        yield (
            f"{below.id} waits for the user inside a race, which google-adk would stop as a whole. "
            f"Ask before or after the race."
        )


def _waits(node: Node) -> bool:
    flow = node.flow
    if isinstance(flow, Agent):
        return any(tool.yields for tool in flow.toolbox)
    return isinstance(flow, Approved) or (isinstance(flow, Loop) and flow.awaits_input)
