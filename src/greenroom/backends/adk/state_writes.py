"""Calls made at once that write one key of the framework's state.

The framework lets each tool write into the session at once and then merges what they wrote, in the
order of the calls: where two meet, the later call wins. Where one of them did not know of the other,
that is written down.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from google.adk.sessions.state import State
from msgspec import Struct

from greenroom.backends.adk.state import place_of
from greenroom.backends.foreign import Invocation, jsonable
from greenroom.ledger.changes import Change
from greenroom.ledger.events import ModelReplied, StateConflicted, ToolReturned
from greenroom.ledger.plain import Json, plain, same

Place = tuple[str, tuple[str, ...]]


class _Watched(State):
    """A state that remembers which keys were looked at, and after how many calls had ended."""

    _seen: dict[str, int]
    _writes: "StateWrites"

    def __getitem__(self, key: str) -> Any:
        self._seen[key] = self._writes.ended
        return super().__getitem__(key)

    def __contains__(self, key: object) -> bool:
        self._seen[str(key)] = self._writes.ended
        return super().__contains__(cast("str", key))

    def to_dict(self) -> dict[str, Any]:
        found = super().to_dict()
        self._seen.update(dict.fromkeys(found, self._writes.ended))
        return found


class _Writer(Struct, frozen=True):
    """What one call wrote, and how many calls had ended when it last looked at each key."""

    call_id: str
    number: int
    written: dict[Place, Json]
    seen: dict[str, int]
    by_world: frozenset[tuple[str, str]]
    """Where the answer itself, such as a mock's, changed the state: those the World settles."""


class StateWrites:
    """The calls of one reply that have written to the state so far, in the order they ended."""

    __slots__ = ("_of", "_writers", "ended")

    def __init__(self) -> None:
        self._of: ModelReplied | None = None
        self._writers: list[_Writer] = []
        self.ended = 0
        """How many calls have ended that wrote anything, of all replies."""

    def watch(self, context: Any) -> None:
        """Remember what a call looks at from here on; a state of another kind is left as it is."""
        held: Any = getattr(context, "_state", None)
        kind = cast("type[Any]", type(held))
        if kind is State:
            held.__class__ = _Watched
            held._seen, held._writes = {}, self

    def take(self, invocation: Invocation, path: str, call_id: str, context: Any) -> None:
        """Take what a call that has ended wrote, and write down where it met another."""
        reply = next((r for r in reversed(invocation.index.replied) if _asks(r, call_id)), None)
        if reply is None:
            return
        if reply is not self._of:
            self._of, self._writers = reply, []
        actions: Any = getattr(context, "actions", None)
        written = dict(_leaves(getattr(actions, "state_delta", None) or {}))
        if not written:
            return
        seen = dict(getattr(getattr(context, "_state", None), "_seen", {}))
        event = invocation.index.results.get(call_id)
        changes = event.changes if isinstance(event, ToolReturned) else ()
        by_world = frozenset((change.scope, change.path[0]) for change in changes)
        self.ended += 1
        mine = _Writer(call_id, self.ended, written, seen, by_world)
        for other in self._writers:
            for place in _lost(other, mine, reply):
                _record(invocation, path, place, sorted((other, mine), key=_order(reply)), reply)
        self._writers.append(mine)


def _asks(reply: ModelReplied, call_id: str) -> bool:
    return any(wanted.id == call_id for wanted in reply.calls)


def _leaves(delta: Mapping[str, Any]) -> Iterator[tuple[Place, Json]]:
    """Every value that was written; of an object each of its own, for those are merged."""
    for name, value in delta.items():
        scope, key = place_of(name)
        yield from _within((scope, (key,)), plain(jsonable(value), f"state {name!r}"))


def _within(place: Place, value: Json) -> Iterator[tuple[Place, Json]]:
    if isinstance(value, dict) and value:
        for key, item in cast("dict[str, Json]", value).items():
            yield from _within((place[0], (*place[1], key)), item)
    else:
        yield place, value


def _lost(other: _Writer, mine: _Writer, reply: ModelReplied) -> list[Place]:
    """Where one of two calls overwrote what the other did, unseen."""
    in_order = _order(reply)(other) < _order(reply)(mine)
    found: list[Place] = []
    for place, value in mine.written.items():
        for theirs, told in other.written.items():
            if not Change(*place).meets(Change(*theirs)) or same(value, told):
                continue
            knew = mine.seen.get(_name(place), -1) >= other.number
            is_settled = (place[0], place[1][0]) in mine.by_world & other.by_world
            if not is_settled and not (knew and in_order):
                found.append(min(place, theirs, key=lambda one: len(one[1])))
    return list(dict.fromkeys(found))


def _name(place: Place) -> str:
    scope, path = place
    return path[0] if scope == "session" else f"{scope}:{path[0]}"


def _order(reply: ModelReplied) -> Callable[[_Writer], int]:
    asked = {call.id: n for n, call in enumerate(reply.calls)}

    def place(writer: _Writer) -> int:
        return asked[writer.call_id]

    return place


def _record(
    invocation: Invocation, path: str, place: Place, writers: list[_Writer], reply: ModelReplied
) -> None:
    scope, key = place[0], ".".join(place[1])
    if invocation.index.conflicted.get((path, scope, key), -1) > reply.seq:
        return  # the World has seen it too
    here = Change(*place)
    values: list[Json] = [
        next(value for at, value in writer.written.items() if Change(*at).meets(here))
        for writer in writers
    ]
    invocation.world.record(StateConflicted(path=path, scope=scope, key=key, values=values))
