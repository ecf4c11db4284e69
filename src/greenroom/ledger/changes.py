"""State changes: how they are requested, recorded, merged and applied."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from typing import Any, Generic, Literal, TypeVar, cast

from msgspec import Struct

from greenroom.errors import BadValue
from greenroom.ledger.places import by_scope
from greenroom.ledger.plain import Json, is_array, is_object, plain, same

BUILT_IN_SCOPES = ("session", "user", "app", "temp")

State = dict[str, dict[str, Json]]
"""The state of a trial: values by scope and key."""
Place = tuple[str, tuple[str, ...]]
Operation = Literal["set", "append", "delete"]
T = TypeVar("T")


class Change(Struct, frozen=True, omit_defaults=True):
    """One leaf of one scope changed: the smallest fact about state."""

    scope: str
    path: tuple[str, ...]
    op: Operation = "set"
    value: Json = None

    @property
    def key(self) -> str:
        """The place inside its scope, dotted."""
        return ".".join(self.path)

    def meets(self, other: "Change") -> bool:
        """Whether one place equals the other or is inside it."""
        shared = min(len(self.path), len(other.path))
        return self.scope == other.scope and self.path[:shared] == other.path[:shared]


Changes = tuple[Change, ...]


class MarkedValue:
    """A value that says how it enters the state."""

    # Not a dataclass: where only a plain value belongs it must be refused, not recorded as data.
    __slots__ = ("op", "value")

    def __init__(self, op: Literal["append", "replace", "delete"], value: object = None) -> None:
        self.op: Literal["append", "replace", "delete"] = op
        self.value = value

    def __repr__(self) -> str:
        return "delete()" if self.op == "delete" else f"{self.op}({self.value!r})"


def append(value: object) -> MarkedValue:
    """Add to the list that is there instead of replacing it."""
    return MarkedValue("append", value)


def replace(value: object) -> MarkedValue:
    """Put this mapping in place of the old one instead of merging it."""
    return MarkedValue("replace", value)


def delete() -> MarkedValue:
    """Remove this key from the state."""
    return MarkedValue("delete")


class WithStateChange(Struct, Generic[T], frozen=True, omit_defaults=True):
    """A result that also asks for state changes."""

    result: T
    changes: tuple[Change, ...]


def with_state_change(result: T, changes: Mapping[Any, object]) -> WithStateChange[T]:
    """`result`, plus changes by scope that reach the agent's state when the user has answered.

    Schema fields may be used as keys: `{Billing.ticket: "T-1"}`.
    """
    return WithStateChange(result, changes_of(changes))


def unwrapped(value: object) -> tuple[object, tuple[Change, ...]]:
    """Split a result from the state changes it asks for."""
    if isinstance(value, WithStateChange):
        whole = cast("WithStateChange[Any]", value)
        return whole.result, whole.changes
    return value, ()


def changes_of(wanted: Mapping[Any, object]) -> tuple[Change, ...]:
    """The leaves of nested changes: mappings merge deeply, everything else replaces."""
    found: list[Change] = []
    for place, value in wanted.items():
        check = getattr(place, "check_change", None)
        if check is not None:  # a field of a schema knows its type
            check(value)
    for scope, content in by_scope(wanted).items():
        if not isinstance(content, Mapping):
            raise BadValue(
                f"state changes of scope {scope!r} are {content!r}; give a mapping, "
                f'for example {{"session": {{"order": 7}}}}.'
            )
        _leaves(scope, (), cast("Mapping[str, Any]", content), found)
    return tuple(found)


def _leaves(
    scope: str, path: tuple[str, ...], content: Mapping[str, object], found: list[Change]
) -> None:
    for key, value in content.items():
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadValue(
                f"state {scope} has the key {key!r}; keys must be strings. Use str(key)."
            )
        here = (*path, key)
        if isinstance(value, MarkedValue):
            op: Operation = "set" if value.op == "replace" else value.op
            leaf = plain(value.value, f"state {scope}.{'.'.join(here)}")
            found.append(Change(scope, here, op, leaf))
        elif isinstance(value, Mapping) and value:
            _leaves(scope, here, cast("Mapping[str, Any]", value), found)
        else:
            leaf = plain(cast(object, value), f"state {scope}.{key}")
            found.append(Change(scope, here, "set", leaf))


def state_in(value: Json) -> State:
    """A copy of the state in an event: objects by scope; anything else is left out."""
    scopes = value if is_object(value) else {}
    return {scope: deepcopy(held) for scope, held in scopes.items() if is_object(held)}


def apply_changes(state: State, changes: Iterable[Change]) -> None:
    """Apply `changes` to `state` in order; later ones win."""
    for change in changes:
        _apply(state.setdefault(change.scope, {}), change)


def _apply(scope: dict[str, Json], change: Change) -> None:
    *parents, last = change.path
    holder = scope
    for key in parents:
        inner = holder.get(key)
        if not is_object(inner):
            if change.op == "delete":
                return
            inner = {}
        # Copied on the way: a call that began earlier keeps the state as it was then.
        inner = holder[key] = dict(inner)
        holder = inner
    old = holder.get(last)
    if change.op == "delete":
        holder.pop(last, None)
    elif change.op == "append":
        # Ledgers from elsewhere may append to a value that is not a list (see `check_appends`): keep it.
        held = old if is_array(old) else [] if old is None else [old]
        holder[last] = [*held, deepcopy(change.value)]
    else:
        holder[last] = deepcopy(change.value)


def check_appends(state: State, changes: Iterable[Change], where: str) -> None:
    """Refuse to append to anything but a list; BadValue names the place and what is there."""
    before: list[Change] = []
    for change in changes:
        old = value_in(state, change.scope, change.path) if change.op == "append" else None
        made_here = any(change.meets(earlier) for earlier in before)
        if old is not None and not is_array(old) and not made_here:
            raise BadValue(
                f"{where} appends {change.value!r} to state {change.scope}.{change.key}, which is "
                f"{old!r}, not a list. Begin with a list there, or set the whole value."
            )
        before.append(change)


def value_in(state: State, scope: str, path: Iterable[str]) -> Json:
    """The value at a place in the state; None if there is none."""
    value: Json = state.get(scope, {})
    for key in path:
        value = value.get(key) if is_object(value) else None
    return value


class Conflict(Struct, frozen=True, omit_defaults=True):
    """Two writers of one round set the same leaf to different values."""

    scope: str
    path: tuple[str, ...]
    values: tuple[Json, ...]


def conflicts(writers: Iterable[Iterable[Change]]) -> tuple[Conflict, ...]:
    """The leaves that different writers set to different values; appends never conflict."""
    wishes = [{(c.scope, c.path): c.value for c in w if c.op != "append"} for w in writers]
    found: list[Conflict] = []
    for scope, path in dict.fromkeys(place for wish in wishes for place in wish):
        values = tuple(v for wish in wishes for v in _wished(wish, scope, path))
        if not all(same(value, values[0]) for value in values):
            found.append(Conflict(scope, path, values))
    return tuple(found)


def _wished(wish: Mapping[Place, Json], scope: str, path: tuple[str, ...]) -> Iterator[Json]:
    """The value one writer sets at `path`, directly or by setting a value that contains it."""
    for length in range(len(path), 0, -1):
        if (scope, path[:length]) in wish:
            value = wish[scope, path[:length]]
            for key in path[length:]:
                value = value.get(key) if is_object(value) else None
            yield value
            return
