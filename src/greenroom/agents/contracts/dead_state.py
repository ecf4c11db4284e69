"""Places that are written and never read."""

from collections.abc import Iterator

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.contracts.access import (
    agent_access,
    step_access,
    tool_access,
    transform_access,
)
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.places import above_place
from greenroom.agents.contracts.walk import Given, data_flow
from greenroom.agents.flow import Flow, Step
from greenroom.agents.graph import Graph, Node
from greenroom.agents.transforms import Transform


def check_dead_state(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Places of the session that a node writes and no node reads.

    What the last nodes write is the outcome of the flow; temporary places, and those of a user or an app,
    may be read elsewhere; and a node that may read anything may read these too.
    """
    if any(_reads_anything(node.flow) for node in graph.nodes()):
        return
    read = {visit.read.place for visit in data_flow(graph, given).visits}
    last = {node.id for node in _last(graph.root)}
    # Reading a place reads everything in it, and part of the places that contain it.
    read |= {above for place in read for above in above_place(place)}
    for node in graph.nodes():
        for place in getattr(node.flow, "writes", ()):
            is_read = place in read or not read.isdisjoint(above_place(place))
            if place.startswith("session.") and node.id not in last and not is_read:
                yield Issue(
                    "DeadState",
                    "note",
                    node.id,
                    place,
                    f"writes {place}, which no node reads.",
                    "Remove writes=, or declare the node that reads it: reads=.",
                )


def _last(node: Node) -> Iterator[Node]:
    """The nodes whose output may be the output of the whole flow."""
    children = list(node.children.values())
    yield node
    for child in children[-1:] if node.segment == "seq" else children:
        yield from _last(child)


def _reads_anything(flow: Flow) -> bool:
    match flow:
        case Agent():
            tools = (tool_access(tool) for tool in flow.toolbox)
            return agent_access(flow).reads_anything or any(one.reads_anything for one in tools)
        case Step():
            return step_access(flow).reads_anything
        case Transform():
            return transform_access(flow).reads_anything
        case Approved() if callable(flow.question):
            return True
        case _:
            return not {"state", "ctx", "context"}.isdisjoint(getattr(flow, "wants", ()))
