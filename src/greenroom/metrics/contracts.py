"""Did each node change only what it declares? Declarations are read from the agent's snapshot."""

from collections.abc import Iterator, Mapping
from typing import ClassVar

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.ledger.changes import Change, value_in
from greenroom.ledger.events import NodeEnded, RunStarted, StateChanged, ToolReturned
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, as_array, is_array, is_object, same
from greenroom.ledger.query import split_place
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.needs import CALL_NAMES, NODES, STATE, Needs
from greenroom.world.world import World

Places = tuple[str, ...]
Writer = NodeEnded | StateChanged | ToolReturned


class Declared(Struct, frozen=True):
    """What a node and each of its tools declare to write; None declares nothing."""

    writes: Places | None
    tools: Mapping[str, Places]

    def allows(self, event: Writer) -> Places | None:
        """The places that this node, or this tool in it, may change; None if that is not declared."""
        tool = self.tools.get(event.tool) if isinstance(event, ToolReturned) else None
        if self.writes is None:
            return tool
        return (*self.writes, *(tool or ()))


class KeptContract(BuiltIn, frozen=True, kw_only=True):
    """Compares what nodes changed in the state with what they declare to write."""

    needs: ClassVar[Needs] = STATE | NODES | CALL_NAMES

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """The share of visits to declaring nodes that changed only what is declared; all of them must."""
        declared = _declarations(ledger)
        if not declared:
            return Unmeasured(
                "no node of the agent declares what it reads or writes; give reads= or writes= to "
                "its agents, steps or tools"
            )
        started = ledger.index_of().started
        runs = {path: run.node for path, run in started.items() if run.node in declared}
        if not runs:
            names = ", ".join(_name(node) for node in declared)
            return Unmeasured(f"none of the nodes that declare what they write ran: {names}")
        wrong: dict[str, list[str]] = {}
        for path, event, allowed in _judged(ledger, runs, declared):
            for place in _beyond(ledger, event, allowed):
                said = ", ".join(allowed) or "no place"
                by = f" by {event.tool!r}" if isinstance(event, ToolReturned) else ""
                text = f"{_name(runs[path])!r} changed {place}{by}, but declares to write {said}"
                wrong.setdefault(path, []).append(text)
        problems = list(dict.fromkeys(text for texts in wrong.values() for text in texts))
        return Score(
            1 - len(wrong) / len(runs),
            not problems,
            threshold=1.0,
            name=self.name,
            reason="; ".join(problems) or "every node changed only what it declares",
            details={"nodes": sorted({_name(node) for node in runs.values()})},
        )


def kept_contract(*, name: str = "kept_contract") -> KeptContract:
    """Every node that declares what it reads or writes changed only the places it declares to write.

    What a tool changed counts for the agent that called it, and may be declared by either. Nodes that
    declare nothing are not judged; if none does, it is unmeasured.
    """
    shown = written("kept_contract", name=None if name == "kept_contract" else name)
    return KeptContract(name=name, shown=shown["shown"])


def _judged(
    ledger: Ledger, runs: Mapping[str, str], declared: Mapping[str, Declared]
) -> Iterator[tuple[str, Writer, Places]]:
    """The events that changed the state inside a declaring node, and what they may change."""
    started = ledger.index_of().started
    for event in ledger:
        if event.voice == "agent" and isinstance(event, Writer) and event.changes:
            path = event.path
            while path and path not in started:
                path = path.rpartition("/")[0]
            allowed = declared[runs[path]].allows(event) if path in runs else None
            if allowed is not None:
                yield path, event, allowed


def _beyond(ledger: Ledger, event: Writer, allowed: Places) -> Iterator[str]:
    """The places that an event changed without being allowed to."""
    for change in event.changes:
        places = [split_place(place) for place in allowed]
        inside = [path for scope, path in places if scope == change.scope]
        if any(change.path[: len(path)] == path for path in inside):
            continue
        deeper = [path for path in inside if path[: len(change.path)] == change.path]
        if not deeper:
            yield f"{change.scope}.{change.key}"
            continue
        # A whole value was written of which only parts are allowed: which other parts of it changed?
        before = Ledger(ledger[: event.seq]).fold("agent", branch_of(event.path))
        old = value_in(before, change.scope, change.path)
        for path in _differences(old, _written(change), change.path, deeper):
            yield f"{change.scope}.{'.'.join(path)}"


def _written(change: Change) -> Json:
    return None if change.op == "delete" else change.value


def _differences(
    old: Json, new: Json, path: tuple[str, ...], allowed: list[tuple[str, ...]]
) -> Iterator[tuple[str, ...]]:
    """The paths below `path` at which two values differ, except the allowed ones."""
    if path in allowed or same(old, new):
        return
    if not (is_object(old) or old is None) or not (is_object(new) or new is None):
        yield path
        return
    before, after = old or {}, new or {}
    for key in {**before, **after}:
        yield from _differences(before.get(key), after.get(key), (*path, key), allowed)


def _declarations(ledger: Ledger) -> dict[str, Declared]:
    """What the nodes of the agent declare, by their static ids; those that declare nothing left out."""
    found: dict[str, Declared] = {}
    begun = ledger.of(RunStarted)
    for facts in _nodes(begun[0].agent if begun else None):
        if facts.get("kind") == "transform":
            continue  # it has no code: what it declares is what it does
        tools: dict[str, Places] = {}
        for tool in as_array(facts.get("tools") or []):
            if is_object(tool) and ("reads" in tool or "writes" in tool):
                tools[str(tool.get("name"))] = _places(tool.get("writes"))
        own = _places(facts.get("writes")) if facts.get("writes") or "reads" in facts else None
        if own is not None or tools:
            found[str(facts.get("id"))] = Declared(own, tools)
    return found


def _nodes(snapshot: Json) -> Iterator[dict[str, Json]]:
    """The nodes in the snapshot of a Greenroom graph; none for another framework's."""
    if not is_object(snapshot) or "id" not in snapshot:
        return
    yield snapshot
    parts = snapshot.get("parts")
    for part in parts.values() if is_object(parts) else ():
        yield from _nodes(part)


def _places(given: Json) -> Places:
    several = given if is_array(given) else [given]
    texts = [place for place in several if isinstance(place, str) and place]
    return tuple(".".join((scope, *path)) for scope, path in map(split_place, texts))


def _name(node: str) -> str:
    return node.rpartition("/")[2]
