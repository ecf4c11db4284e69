"""Whether a key is looked for in the scope where it is kept."""

from collections.abc import Iterator

from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.nearest import edits
from greenroom.agents.contracts.schemas import fields_in
from greenroom.agents.contracts.walk import Given, data_flow
from greenroom.agents.graph import Graph
from greenroom.ledger.changes import BUILT_IN_SCOPES


def check_scopes(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:
    """Keys that a schema keeps in another scope, and scopes whose names look misspelt."""
    declared = {field.place: field for field in fields_in(graph, schema)}
    by_key = {field.name: field for field in declared.values()}
    scopes = {*BUILT_IN_SCOPES, *given.state, *(field.scope for field in declared.values())}
    reads = [(v.node.id, "reads", v.read.place) for v in data_flow(graph, given).visits]
    writes = [
        (node.id, "writes", place)
        for node in graph.nodes()
        for place in getattr(node.flow, "writes", ())
    ]
    for node, does, place in dict.fromkeys([*reads, *writes]):
        scope, _, key = place.partition(".")
        field = by_key.get(key.partition(".")[0])
        if field is not None and f"{scope}.{field.name}" not in declared:
            says = f"{does} {place}, but {field} is kept at {field.place}."
            fix = f"Use {field.place}, or the field itself."
            yield Issue("ScopeMismatch", "error", node, place, says, fix)
        elif near := _slip(scope, scopes):
            says = f"{does} {place} in a scope {scope!r} of its own."
            yield Issue(
                "ScopeMismatch", "warning", node, place, says, f"Did you mean {near}.{key}?"
            )


def _slip(scope: str, known: set[str]) -> str:
    """The scope that was probably meant; empty if it is a known one, or like none."""
    if scope in known:
        return ""
    near = min(sorted(known), key=lambda one: edits(scope, one))
    return near if edits(scope, near) <= max(1, len(near) // 3) else ""
