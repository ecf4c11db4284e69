"""Branches that run side by side and write the same place: the last one wins."""

from collections.abc import Iterator, Mapping

from greenroom.agents.contracts.effects import Outcome
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given, data_flow
from greenroom.agents.flow import Parallel
from greenroom.agents.forks import MapOver
from greenroom.agents.graph import Graph, Node


def check_branches(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Places that several branches of one fork write, or all items of a list: one write is kept."""
    outcomes = data_flow(graph, given).outcomes
    for node in graph.nodes():
        if isinstance(node.flow, Parallel):
            yield from _branches(node, outcomes)
        elif isinstance(node.flow, MapOver):
            for place in sorted(outcomes[node.children["body"].id].done.sets):
                says = f"writes {place} for every item; what the last item writes stays."
                fix = "Read the outputs instead: they are a list, in the order of the items."
                yield Issue("ParallelWrites", "note", node.id, place, says, fix)


def _branches(node: Node, outcomes: Mapping[str, Outcome]) -> Iterator[Issue]:
    first: dict[str, str] = {}
    for child in node.children.values():
        for place, writers in outcomes[child.id].done.may_set.items():
            writer = ", ".join(sorted(writers))
            if place in first:
                says = (
                    f"{first[place]} and {writer} both write {place} side by side; what the last "
                    f"branch writes stays."
                )
                fix = "Let each branch write its own place, and join them in a step."
                yield Issue("ParallelWrites", "warning", node.id, place, says, fix)
            first.setdefault(place, writer)
