"""Maps state between a ledger's scopes and the framework's prefixed keys, and finds conflicting writes.

The framework lets concurrent tools write into the session and then merges what they wrote, in the order
of the calls: if two wrote the same key, the later call wins. If the winner had not seen the other's write,
that conflict is recorded.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, cast

from google.adk.sessions import InMemorySessionService, Session
from google.adk.sessions.state import State as SessionState
from msgspec import Struct

from greenroom.backends.foreign import jsonable
from greenroom.backends.invocation import Invocation
from greenroom.ledger.changes import Change, State
from greenroom.ledger.events import ModelReplied, StateConflicted
from greenroom.ledger.plain import Json, plain, same

Place = tuple[str, tuple[str, ...]]
"""A scope, and the way to a value in it."""

_PREFIXES = {"session": "", "user": "user:", "app": "app:", "temp": "temp:"}


def prefixed(state: State) -> dict[str, Any]:
    """A copy of the scopes the framework knows, as one mapping; other scopes stay with us."""
    return {
        f"{prefix}{key}": deepcopy(value)
        for scope, prefix in _PREFIXES.items()
        for key, value in state.get(scope, {}).items()
    }


def pour(state: Mapping[str, Any], session: Session, service: InMemorySessionService) -> None:
    """Set the state of a session that is kept in memory."""
    scopes: dict[str, dict[str, Any]] = {
        "user": service.user_state.setdefault(session.app_name, {}).setdefault(session.user_id, {}),
        "app": service.app_state.setdefault(session.app_name, {}),
    }
    for name, value in state.items():
        scope, key = place_of(name)
        if scope in scopes:
            scopes[scope][key] = value
        else:
            session.state[name] = value


def state_changes(delta: Mapping[str, Any], state: State) -> tuple[Change, ...]:
    """What a delta of the framework changes in the ledger's state."""
    found: list[Change] = []
    for name, value in delta.items():
        scope, key = place_of(name)
        new = plain(jsonable(value), f"state {name!r}")
        known = state.get(scope, {})
        if key not in known or known[key] != new:
            found.append(Change(scope, (key,), "set", new))
    return tuple(found)


def place_of(name: str) -> tuple[str, str]:
    """Scope and key of a prefixed name."""
    for scope, prefix in _PREFIXES.items():
        if prefix and name.startswith(prefix):
            return scope, name.removeprefix(prefix)
    return "session", name


def name_of(scope: str, key: str) -> str | None:
    """The prefixed name of a place, or None where the framework has no such scope."""
    return f"{_PREFIXES[scope]}{key}" if scope in _PREFIXES else None


class _Watched(SessionState):
    """A state that remembers which keys were read, and how many calls had ended by then."""

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
    """What one call wrote, and how many calls had ended when it last read each key."""

    call_id: str
    number: int
    written: dict[Place, Json]
    seen: dict[str, int]
    by_world: frozenset[tuple[str, str]]
    """Places that the answer itself, such as a mock's, changed; the World resolves conflicts there."""


class StateWrites:
    """The calls of one reply that have written to the state so far, in the order they ended."""

    __slots__ = ("_of", "_writers", "ended")

    def __init__(self) -> None:
        self._of: ModelReplied | None = None
        self._writers: list[_Writer] = []
        self.ended = 0
        """How many calls have ended that wrote anything, of all replies."""

    def watch(self, context: Any) -> None:
        """Track what a call reads from here on; a state of another class is left as it is."""
        held: Any = getattr(context, "_state", None)
        kind = cast("type[Any]", type(held))
        if kind is SessionState:
            held.__class__ = _Watched
            held._seen, held._writes = {}, self

    def add(self, invocation: Invocation, path: str, call_id: str, context: Any) -> None:
        """Add what a finished call wrote, and record conflicts with other calls."""
        asking = (r for r in reversed(invocation.index.replied) if call_id in _order(r))
        reply = next(asking, None)
        if reply is None:
            return
        if reply is not self._of:
            self._of, self._writers = reply, []
        actions: Any = getattr(context, "actions", None)
        delta: dict[str, Any] = getattr(actions, "state_delta", None) or {}
        written: dict[Place, Json] = {}
        for name, value in delta.items():
            scope, key = place_of(name)
            written |= _leaves((scope, (key,)), plain(jsonable(value), f"state {name!r}"))
        if not written:
            return
        seen = dict(getattr(getattr(context, "_state", None), "_seen", {}))
        event = invocation.index.results.get(call_id)
        changes = event.changes if event is not None else ()
        by_world = frozenset((change.scope, change.path[0]) for change in changes)
        self.ended += 1
        mine = _Writer(call_id, self.ended, written, seen, by_world)
        for other in self._writers:
            for place in _lost(other, mine, reply):
                _record_conflict(invocation, path, place, [other, mine], reply)
        self._writers.append(mine)


def _order(reply: ModelReplied) -> dict[str, int]:
    """The calls of a reply by id, each with its number."""
    return {call.id: n for n, call in enumerate(reply.calls)}


def _leaves(place: Place, value: Json) -> Iterator[tuple[Place, Json]]:
    """Every value that was written; each value inside an object separately, because objects are merged."""
    if isinstance(value, dict) and value:
        for key, item in cast("dict[str, Json]", value).items():
            yield from _leaves((place[0], (*place[1], key)), item)
    else:
        yield place, value


def _lost(other: _Writer, mine: _Writer, reply: ModelReplied) -> list[Place]:
    """Where one of two calls overwrote the other's write without having seen it."""
    order = _order(reply)
    in_order = order[other.call_id] < order[mine.call_id]
    found: list[Place] = []
    for place, value in mine.written.items():
        scope, path = place
        for theirs, their_value in other.written.items():
            if not Change(*place).meets(Change(*theirs)) or same(value, their_value):
                continue
            knew = mine.seen.get(f"{_PREFIXES[scope]}{path[0]}", -1) >= other.number
            is_settled = (scope, path[0]) in mine.by_world & other.by_world
            if not is_settled and not (knew and in_order):
                found.append(min(place, theirs, key=lambda one: len(one[1])))
    return list(dict.fromkeys(found))


def _record_conflict(
    invocation: Invocation, path: str, place: Place, writers: list[_Writer], reply: ModelReplied
) -> None:
    scope, key, order = place[0], ".".join(place[1]), _order(reply)
    if invocation.index.conflicted.get((path, scope, key), -1) > reply.seq:
        return  # the World has recorded it too
    here = Change(*place)
    values: list[Json] = [
        next(value for at, value in writer.written.items() if Change(*at).meets(here))
        for writer in sorted(writers, key=lambda writer: order[writer.call_id])
    ]
    invocation.world.record(StateConflicted(path=path, scope=scope, key=key, values=values))
