"""Pieces that no part takes, or that never come."""

from collections.abc import Iterator
from itertools import pairwise

from greenroom.agents.agent import Agent
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given
from greenroom.agents.flow import Flow, Sequence
from greenroom.agents.graph import Graph, Node
from greenroom.agents.routes import Loop, Route
from greenroom.agents.streams import hearing_parts, hears_pieces


def check_streams(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Marks before a part that needs its whole input, and steps that wait for pieces that never come."""
    for node in graph.nodes():
        if isinstance(node.flow, Sequence):
            yield from _unheard(node, node.flow)
            yield from _silent(node, node.flow)


def _unheard(node: Node, sequence: Sequence) -> Iterator[Issue]:
    for key, mark in sequence.cuts().items():
        part = node.children[key]
        if hears_pieces(part.flow):
            continue
        if _decides(part.flow):
            kind, why = "StreamingRouteConflict", "decides by what it is given, so it cannot begin"
        else:
            kind, why = "StreamingConflict", "takes no pieces and cannot begin"
        yield Issue(
            kind,
            "error",
            part.id,
            "",
            f"comes after {mark!r}, but {why} before all of its input has come.",
            f"Remove {mark!r}, or put a step in between that asks for `chunks`.",
        )


def _decides(flow: Flow) -> bool:
    """Whether a part begins with a choice."""
    if isinstance(flow, Route):
        return True
    parts = list(flow.children().values())
    return (
        bool(parts) and not isinstance(flow, Agent) and any(map(_decides, _first_of(flow, parts)))
    )


def _first_of(flow: Flow, parts: list[Flow]) -> list[Flow]:
    return parts[:1] if isinstance(flow, Sequence | Loop) else parts


def _silent(node: Node, sequence: Sequence) -> Iterator[Issue]:
    """Steps that take pieces of a part which gives its output when it is complete, and not before."""
    parts = list(node.children.items())
    hearing = hearing_parts(sequence)
    for (_, before), (key, part) in pairwise(parts):
        if hearing.get(key, True):
            continue
        is_structured = isinstance(before.flow, Agent)
        yield Issue(
            "StructuredStream" if is_structured else "NothingToStream",
            "error" if is_structured else "note",
            part.id,
            "",
            f"takes the pieces of {before.segment!r}, "
            + (
                "whose answer by a schema is nothing before it is complete."
                if is_structured
                else "which gives its output only when it has ended: all of them come at once."
            ),
            "Ask for `input` instead, or take the pieces of an agent without `output=`."
            if is_structured
            else "Ask for `input`, unless that is meant.",
        )
