"""Which node may read what another one wrote, from the reads and writes in a snapshot."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from msgspec import Struct

from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.identity import code_name
from greenroom.ledger.plain import Json
from greenroom.ledger.snapshots import Facts

Writers = dict[str, frozenset[str]]
"""For each place in the state, the nodes that may have written it last."""


class DataLink(Struct, frozen=True):
    """Data that passes from one node to another by a place in the state."""

    writer: str
    reader: str
    place: str
    later: bool = False
    """Whether it gets there in a later turn only."""


def data_links(snapshot: Facts) -> list[DataLink]:
    """The data links of a graph, in the order of its nodes."""
    found: dict[DataLink, None] = {}
    after = _walk(snapshot, {}, found, later=False)
    # The state outlives the turn, except for what is temporary: what a node wrote at the end of one turn
    # may be read at the beginning of the next.
    after = {place: writers for place, writers in after.items() if not place.startswith("temp.")}
    now = {(link.reader, link.place) for link in found}
    again: dict[DataLink, None] = {}
    _walk(snapshot, after, again, later=True)
    return [*found, *(link for link in again if (link.reader, link.place) not in now)]


def _walk(facts: Facts, before: Writers, found: dict[DataLink, None], *, later: bool) -> Writers:
    """Note what is read here; returns the last writers of each place after it."""
    name = str(facts.get("id") or facts.get("name") or "")
    for place in places_read(facts):
        for writer in sorted(before.get(place, ())):
            found[DataLink(writer, name, place, later)] = None
    parts: list[Any] = [part for part in _values(facts.get("parts")) if isinstance(part, Mapping)]
    after = _parts(facts, parts, before, found, later=later)
    sure, possible = places_written(facts)
    for place in possible:
        after = {**after, place: after.get(place, frozenset()) | {name}}
    return {**after, **{place: frozenset((name,)) for place in sure}}


def _parts(
    facts: Facts,
    parts: list[Facts],
    before: Writers,
    found: dict[DataLink, None],
    *,
    later: bool,
) -> Writers:
    kind = facts.get("kind")
    if kind == "sequence":
        for part in parts:
            before = _walk(part, before, found, later=later)
        return before
    if kind == "fallback":
        ends, tried = list[Writers](), before
        for part in parts:
            ends.append(_walk(part, tried, found, later=later))
            tried = _united([tried, ends[-1]])
        return _united(ends) if ends else before
    if kind == "team":
        # The agent that gets the conversation may come after any of the others.
        behind = _united([before, *(_walk(part, before, found, later=later) for part in parts)])
        return _united([_walk(part, behind, found, later=later) for part in parts])
    if kind == "loop":
        for part in parts:
            first = _walk(part, before, found, later=later)
            before = _walk(part, _united([before, first]), found, later=later)
        return before
    ends = [_walk(part, before, found, later=later) for part in parts]
    if kind == "parallel" and ends:
        return _merged(before, ends)
    # In a route or a race only one part counts; the part of another kind may not run at all: its list is
    # empty, its time is up, it was not approved, or there was no hand-off.
    takes_one = kind in ("route", "race") and ends
    return _united(ends if takes_one else [before, *ends])


def _merged(before: Writers, ends: list[Writers]) -> Writers:
    """The last writers after branches that all ran: those in a branch, else those before it."""
    after = dict(before)
    for place in {place for end in ends for place in end}:
        new = [end[place] for end in ends if place in end and end[place] != before.get(place)]
        if new:
            after[place] = frozenset().union(*new)
    return after


def _united(many: Iterable[Writers]) -> Writers:
    found: Writers = {}
    for writers in many:
        for place, names in writers.items():
            found[place] = found.get(place, frozenset()) | names
    return found


def places_read(facts: Facts) -> list[str]:
    """The places that a node reads, as far as it declares them."""
    own = [*_texts(facts.get("reads"))]
    for tool in _values(facts.get("tools")):
        if isinstance(tool, Mapping):
            own += _texts(cast("Facts", tool).get("reads"))
    if facts.get("kind") == "map_over":
        own += _texts(facts.get("over"))
    for decider in ("on", "until", "when"):
        own += _asked(facts.get(decider))
    return list(dict.fromkeys(place_in_full(place) for place in own if place))


def places_written(facts: Facts) -> tuple[list[str], list[str]]:
    """The places that a node writes when it ends, and those that its tools may write."""
    tools: list[str] = []
    for tool in _values(facts.get("tools")):
        if isinstance(tool, Mapping):
            tools += _texts(cast("Facts", tool).get("writes"))
    own = [place_in_full(place) for place in _texts(facts.get("writes")) if place]
    return own, [place_in_full(place) for place in tools if place]


def place_in_full(place: str) -> str:
    """`key` as `session.key`."""
    return place if "." in place else f"session.{place}"


def _asked(decider: object) -> Iterator[str]:
    """The places that a decision reads; those of a function cannot be seen."""
    if isinstance(decider, str) and not code_name(decider):
        yield decider
    elif isinstance(decider, Mapping):
        for scope, query in cast("Mapping[str, Any]", decider).items():
            if isinstance(query, Mapping):
                keys = cast("Mapping[str, Any]", query)
                yield from (f"{scope}.{key}" for key in keys if not str(key).startswith("$"))
            elif scope not in BUILT_IN_SCOPES:
                yield scope


def _texts(given: object) -> list[str]:
    return [given] if isinstance(given, str) else [t for t in _values(given) if isinstance(t, str)]


def _values(given: object) -> list[Json]:
    if isinstance(given, Mapping):
        return list(cast("Mapping[str, Any]", given).values())
    return list(cast("list[Any]", given)) if isinstance(given, list | tuple) else []
