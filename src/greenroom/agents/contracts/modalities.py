"""Whether each agent accepts what the one before it gives: text, images, sounds, documents."""

from collections.abc import Iterator, Mapping

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given
from greenroom.agents.flow import Step
from greenroom.agents.graph import Graph, Node
from greenroom.agents.routes import Loop

Flowing = Mapping[str, str]
"""The declared modalities that may arrive somewhere, each with the node that gives it."""

_IN_TURN = ("sequence", "loop")
_PASSING = ("transform", "tap")


def check_modalities(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Agents that may be given what they do not accept."""
    found: list[Issue] = []
    _left_by(graph.root, dict.fromkeys(given.modalities, "the user"), found)
    yield from dict.fromkeys(found)


def _left_by(node: Node, given: Flowing, found: list[Issue]) -> Flowing:
    """The modalities that a node passes on, if these may arrive at it; mismatches are added to `found`."""
    flow = node.flow
    if isinstance(flow, Agent) and not node.children:
        found += _misfits(node, flow, given)
        return dict.fromkeys(flow.gives, node.id)
    if isinstance(flow, Step):
        return given if flow.passes else {}
    if flow.kind in _PASSING:
        return given
    if flow.kind in _IN_TURN:
        left = given
        for child in node.children.values():
            left = _left_by(child, left, found)
        if isinstance(flow, Loop) and not flow.awaits_input:
            for (
                child
            ) in node.children.values():  # the next round begins with what the last one left
                _left_by(child, left, found)
        return left
    begins: Flowing = {} if flow.kind == "map_over" else given
    ways = [_left_by(child, begins, found) for child in node.children.values()]
    return {modality: who for way in ways for modality, who in way.items()}


def _misfits(node: Node, agent: Agent, given: Flowing) -> Iterator[Issue]:
    if not agent.accepts:
        return
    for modality, who in given.items():
        if modality not in agent.accepts:
            yield Issue(
                "ModalityMismatch",
                "error",
                node.id,
                "",
                f"accepts {', '.join(agent.accepts)}, but {who} gives {modality}.",
                f"Let it accept {modality}, or put a step in between that converts it.",
            )
