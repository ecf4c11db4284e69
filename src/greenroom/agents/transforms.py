"""Transforms: nodes that only change the state, and pass their input on.

What they read, write and remove is known before anything runs. A place is "key" for one of the
session, "scope.key", or a field of a state schema.
"""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field

from greenroom.agents.deciders import STEP_NAMES, named_arguments
from greenroom.agents.flow import Flow
from greenroom.agents.places import declared_places, typed_fields
from greenroom.agents.signature import function_name, wanted_names
from greenroom.errors import BadAgent, BadValue
from greenroom.ledger.changes import Change, MarkedValue, State, append, replace
from greenroom.ledger.functions import Anything, ByName
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import MISSING, split_place, value_at

Changing = Callable[[State, object], Iterable[Change]]
"""The function of a transform, from a state to changes; the second argument is the context of its run."""


class Transform(Flow, Struct, frozen=True, eq=False):
    """A change of the state as a node; its output is its input."""

    name: str
    changes: Changing
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    """The places that hold something afterwards."""
    removes: tuple[str, ...] = ()
    """The places that are empty afterwards; `session.*` is a whole scope except what it reads."""
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    is_code: bool = False
    """Whether a function of the author computes the values."""

    @property
    def segment(self) -> str:
        """Its operation: `put`, `drop` and so on."""
        return self.name

    def facts(self) -> dict[str, Any]:
        """Its operation as data; a function by its code."""
        places = {"reads": self.reads, "writes": self.writes, "removes": self.removes}
        found = {what: list(named) for what, named in places.items() if named}
        return {"name": self.name, **found, **self.details}

    def code(self) -> dict[str, Callable[..., Any]]:
        """Its function, if it runs the author's code."""
        return {"changes": self.changes} if self.is_code else {}

    def __repr__(self) -> str:
        return f"{self.name}({', '.join(self.writes or self.reads or self.removes)})"


def put(values: Mapping[Any, Anything] | None = None, /, **session: Anything) -> Transform:
    """Set places of the state: `put(intent="refund")`, `put({"user.tier": lambda input: input["tier"]})`.

    A value may be a function that asks for `input`, `state` or `ctx`, or `append(...)` to add to a list.
    """
    wanted = _values("put", values, session)

    def changes(_: State, context: object) -> Iterable[Change]:
        return [_set(place, value, context) for place, value in wanted.items()]

    return _setting("put", changes, wanted)


def default(values: Mapping[Any, Anything] | None = None, /, **session: Anything) -> Transform:
    """Set places of the state that are still empty; takes what `put` takes."""
    wanted = _values("default", values, session)

    def changes(state: State, context: object) -> Iterable[Change]:
        missing = [place for place in wanted if value_at(state, place) is MISSING]
        return [_set(place, wanted[place], context) for place in missing]

    return _setting("default", changes, wanted)


def drop(*places: object) -> Transform:
    """Remove places from the state; empty ones are left as they are."""
    gone = _places("drop", places)

    def changes(state: State, _: object) -> Iterable[Change]:
        return [_remove(place) for place in gone if value_at(state, place) is not MISSING]

    return Transform("drop", changes, removes=gone)


def keep(*places: object) -> Transform:
    """Remove everything except these keys from their scopes: `keep("intent")` leaves one in the session."""
    kept: dict[str, set[str]] = {}
    named = _places("keep", places)
    for place in named:
        scope, [key, *deeper] = split_place(place)
        if deeper:
            raise BadAgent(f"keep({place!r}) names a part of a key; keep whole keys: {key!r}.")
        kept.setdefault(scope, set()).add(key)

    def changes(state: State, _: object) -> Iterable[Change]:
        return [
            Change(scope, (key,), "delete")
            for scope, keys in kept.items()
            for key in state.get(scope, {})
            if key not in keys
        ]

    return Transform("keep", changes, reads=named, removes=tuple(f"{scope}.*" for scope in kept))


def rename(names: Mapping[Any, object] | None = None, /, **session: object) -> Transform:
    """Move what is in one place to another: `rename(draft="answer")`; it must be there."""
    moves = {_places("rename", [old])[0]: new for old, new in {**(names or {}), **session}.items()}
    olds = _places("rename", moves)
    news = tuple(_places("rename", [new])[0] for new in moves.values())
    if len(set(news)) < len(news):
        raise BadAgent(f"rename(...) moves several places to one: {', '.join(news)}.")

    def changes(state: State, _: object) -> Iterable[Change]:
        found = [_at(state, old, "rename") for old in olds]
        gone = [_remove(old) for old in olds]
        moved = [
            _typed(new, Change(*split_place(new), "set", value))
            for new, value in zip(news, found, strict=True)
        ]
        return [*gone, *moved]

    removes = tuple(old for old in olds if old not in news)
    return Transform("rename", changes, olds, news, removes)


def merge(*places: object, into: object, by: ByName | None = None) -> Transform:
    """Put what is in several places into one: an object with their names, or what `by` makes of them."""
    olds, [new] = _places("merge", places), _places("merge", [into])
    names = [old.rpartition(".")[2] for old in olds]
    if by is None and len(set(names)) < len(names):
        raise BadAgent(f"merge(...) has two places of the same name: {', '.join(olds)}; give by=.")
    if by is not None and inspect.iscoroutinefunction(by):
        raise BadAgent(f"merge(by={function_name(by)}) is async; merge with a plain function.")

    def changes(state: State, _: object) -> Iterable[Change]:
        found: list[Json] = [_at(state, old, "merge") for old in olds]
        whole: object = dict(zip(names, found, strict=True)) if by is None else by(*found)
        merged = Change(*split_place(new), "set", plain(whole, f"merge(..., into={new!r})"))
        return [_typed(new, merged)]

    details = {} if by is None else {"by": code_identity(by)}
    return Transform("merge", changes, olds, (new,), details=details, is_code=by is not None)


# Places and values as they were given


def _places(what: str, given: Iterable[object]) -> tuple[str, ...]:
    found = declared_places(list(given), f"{what}(...)")
    if not found:
        raise BadAgent(f"{what}(...) names no place in the state.")
    return found


def _values(
    what: str, given: Mapping[Any, object] | None, session: Mapping[str, object]
) -> dict[str, Any]:
    wanted = {
        _places(what, [place])[0]: value for place, value in {**(given or {}), **session}.items()
    }
    _places(what, wanted)
    for place, value in wanted.items():
        inner = value.value if isinstance(value, MarkedValue) else value
        if isinstance(value, MarkedValue) and value.op == "delete":
            raise BadAgent(f"{what}(...) sets {place} to delete(); use drop({place!r}).")
        if callable(inner):
            if inspect.iscoroutinefunction(inner):
                raise BadAgent(f"{what}(...): the value for {place} is async; use a step for that.")
            wanted_names(inner, STEP_NAMES, f"{what}(...): the value for {place}")
            continue
        try:
            plain(inner, place)
            for typed in typed_fields(place):
                typed.check_change(value if isinstance(value, MarkedValue) else replace(value))
        except (BadValue, TypeError) as error:
            raise BadAgent(f"{what}(...): {error}") from None
    return wanted


def _setting(name: str, changes: Changing, wanted: Mapping[str, object]) -> Transform:
    values = [v.value if isinstance(v, MarkedValue) else v for v in wanted.values()]
    return Transform(
        name,
        changes,
        writes=tuple(wanted),
        details={"values": _as_data(wanted)},
        is_code=any(map(callable, values)),
    )


def _as_data(wanted: Mapping[str, object]) -> dict[str, Any]:
    def as_data(value: object) -> object:
        if isinstance(value, MarkedValue):
            return {f"${value.op}": as_data(value.value)}
        return {"$live": code_identity(value)} if callable(value) else plain(value)

    return {place: as_data(value) for place, value in wanted.items()}


def _set(place: str, value: object, context: object) -> Change:
    op = "set"
    if isinstance(value, MarkedValue):
        op, value = ("set" if value.op == "replace" else value.op), value.value
    if callable(value):
        value = value(**named_arguments(wanted_names(value, STEP_NAMES, place), context, value))
    return _typed(place, Change(*split_place(place), op, plain(value, place)))


def _typed(place: str, change: Change) -> Change:
    """The change; a TypeError if the field at its place is of another type."""
    for typed in typed_fields(place):
        is_added = change.op == "append"
        typed.check_change(append(change.value) if is_added else replace(change.value))
    return change


def _remove(place: str) -> Change:
    return Change(*split_place(place), "delete")


def _at(state: State, place: str, what: str) -> Json:
    found = value_at(state, place)
    if found is MISSING:
        scope, _ = split_place(place)
        held = ", ".join(state.get(scope, {})) or "nothing"
        raise LookupError(f"{what}(...) needs {place}, but {scope} holds {held}")
    return plain(found)
