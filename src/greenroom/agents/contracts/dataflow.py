"""Whether what a node reads is there: surely, possibly, or unknown."""

from collections.abc import Iterator

from msgspec import Struct

from greenroom.agents.contracts.effects import Known
from greenroom.agents.contracts.issues import Issue
from greenroom.agents.contracts.nearest import nearest_place
from greenroom.agents.contracts.rules import OPEN, rule_for
from greenroom.agents.contracts.schemas import fields_in
from greenroom.agents.contracts.walk import Given, Visit, data_flow
from greenroom.agents.graph import Graph


class Edge(Struct, frozen=True):
    """Data that passes from one node to another by a place in the state."""

    writer: str
    reader: str
    place: str
    later: bool = False
    """Whether it only gets there in a later round of a loop, or a later turn."""


def data_edges(graph: Graph) -> list[Edge]:
    """Which node may read what another one wrote, for drawings."""
    found: dict[Edge, None] = {}
    for visit in data_flow(graph).visits:
        reader, place, known = visit.node.id, visit.read.place, visit.known
        now = known.possibly.get(place, frozenset())
        then = known.later.get(place, frozenset()) - now
        found |= dict.fromkeys(Edge(writer, reader, place) for writer in sorted(now))
        found |= dict.fromkeys(Edge(writer, reader, place, True) for writer in sorted(then))
    return list(found)


def check_data_flow(graph: Graph, schema: object, given: Given) -> Iterator[Issue]:
    """Reads of places that are empty, or may be; and places that two branches both write."""
    flow = data_flow(graph, given)
    fields = fields_in(graph, schema)
    known = frozenset((*flow.begins.possibly, *flow.end.may_set, *(f.place for f in fields)))
    for visit in flow.visits:
        if not visit.read.has_default:
            yield from _read(visit, known)
    for node in graph.nodes():
        if rule_for(node.flow) is OPEN:
            kind = type(node.flow).__name__
            yield Issue(
                "UnknownKind",
                "note",
                node.id,
                "",
                f"is a {kind}, a kind of node whose use of the state is not known, so nothing is sure after it.",
            )


def _read(visit: Visit, known_places: frozenset[str]) -> Iterator[Issue]:
    read, known, place = visit.read, visit.known, visit.read.place
    if place in known.surely:
        return
    is_possible = known.opaque or place in known.possibly or _is_inside(place, known)
    comes_later = known.later_opaque or place in known.later
    reads = f"{read.by} reads {place}" if read.by else f"reads {place}"
    if not is_possible and not comes_later:
        yield _never(visit, reads, known_places)
    elif read.may_miss:
        return
    elif known.opaque or _is_inside(place, known):
        yield _cannot_tell(visit, reads)
    elif is_possible:
        yield _maybe(visit, reads)
    elif place in known.later or known.is_reached:
        yield _not_yet(visit, reads)
    else:
        yield _cannot_tell(visit, reads)


def _cannot_tell(visit: Visit, reads: str) -> Issue:
    place, known = visit.read.place, visit.known
    parent = _parent(place, known)
    if parent and not known.opaque:
        says = f"{reads}; {parent} is written as a whole, so whether that is in it is unknown."
        fix = f"Declare the node that writes {place}: writes=."
    else:
        who = ", ".join(sorted(known.opaque or known.later_opaque))
        says = f"{reads}; whether it is there is unknown, because {who} may write anything."
        fix = "Declare what that writes: writes=..., or reads=... if it only reads."
    return Issue("CannotTell", "note", visit.node.id, place, says, fix)


def _maybe(visit: Visit, reads: str) -> Issue:
    place = visit.read.place
    writers = sorted(visit.known.possibly[place])
    by = f" (by {', '.join(writers)})" if writers else " at the beginning"
    return Issue(
        "MaybeUnwritten",
        "warning",
        visit.node.id,
        place,
        f"{reads}, which is there only if the run takes a certain path{by}.",
        "Write it on every path, read a field that has a default, or begin with a value there.",
    )


def _not_yet(visit: Visit, reads: str) -> Issue:
    place = visit.read.place
    writers = ", ".join(sorted(visit.known.later.get(place) or visit.known.later_opaque))
    return Issue(
        "ReadBeforeWrite",
        "error" if visit.known.is_reached else "warning",
        visit.node.id,
        place,
        f"{reads}, which only {writers} may write, after it: at the first visit nothing is there.",
        "Put the writer first, or begin with a value there.",
    )


def _never(visit: Visit, reads: str, known_places: frozenset[str]) -> Issue:
    place = visit.read.place
    near = nearest_place(place, known_places)
    fix = f"Did you mean {near}?" if near else "Let a node write it, or begin with a value there."
    says = f"{reads}, but no node before it leaves a value there."
    return Issue("ReadBeforeWrite", "error", visit.node.id, place, says, fix)


def _is_inside(place: str, known: Known) -> bool:
    """Whether the place is inside one that is written as a whole."""
    return bool(_parent(place, known))


def _parent(place: str, known: Known) -> str:
    parts = place.split(".")
    for length in range(len(parts) - 1, 1, -1):
        above = ".".join(parts[:length])
        if known.possibly.get(above):
            return above
    return ""
