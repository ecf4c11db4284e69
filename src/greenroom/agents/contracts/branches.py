"""Branches that run side by side and write the same place: the last one wins."""

from collections.abc import Iterator
from typing import Any

from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.walk import Given, data_flow
from greenroom.agents.flow import Parallel
from greenroom.agents.graph import Graph


def check_branches(graph: Graph, schema: Any, given: Given) -> Iterator[Issue]:  # noqa: ARG001
    """Places that two branches of one fork write, of which one write is lost."""
    outcomes = data_flow(graph, given).outcomes
    for node in graph.nodes():
        if not isinstance(node.flow, Parallel):
            continue
        first: dict[str, str] = {}
        for child in node.children.values():
            for place, writers in outcomes[child.id].done.may_set.items():
                writer = ", ".join(sorted(writers))
                if place in first:
                    yield Issue(
                        "ParallelWrites",
                        "warning",
                        node.id,
                        place,
                        f"{first[place]} and {writer} both write {place} side by side; "
                        f"what the last branch writes stays.",
                        "Let each branch write a place of its own, and join them in a step.",
                    )
                first.setdefault(place, writer)
