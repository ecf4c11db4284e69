"""Typed state: a class whose annotations say what is kept where, and a view that enforces it.

A schema owns no data. It is a way to look at the state of a run, which agents without one share.
"""

import inspect
from collections.abc import Iterable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Self,
    TypeGuard,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import Struct

from greenroom.agents.field_types import FieldType
from greenroom.agents.prefixed import PrefixedScopes
from greenroom.errors import BadAgent, BadInput, BadValue
from greenroom.ledger.changes import MarkedValue
from greenroom.ledger.choices import near
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.query import MISSING
from greenroom.world.scopes import Scopes


class SchemaConflict(BadAgent):
    """Two combined schemas say different things about one name."""


class StateKeyError(LookupError):
    """Nothing is kept at a place of the state that is read; the message says what is there."""


class Scoped(Struct, frozen=True):
    """Marks a field as one of a scope: `Annotated[str, UserScoped]`."""

    scope: str


SessionScoped = Scoped("session")
"""A field of the conversation, as is every field without a mark."""
UserScoped = Scoped("user")
"""A field that belongs to the user, whatever the conversation."""
AppScoped = Scoped("app")
"""A field that all users share."""
Temp = Scoped("temp")
"""A field that is gone when the agent has answered."""


def scoped(name: str) -> Scoped:
    """Mark a field as one of a custom scope: `Annotated[dict, scoped("patient")]`."""
    if not isinstance(name, str) or not name.isidentifier():  # pyright: ignore[reportUnnecessaryIsInstance]
        raise BadAgent(f"scoped({name!r}): name a scope by letters, digits and _.")
    return Scoped(name)


class Field:
    """A field of a schema, and a reference to its place in the state, usable wherever a place is."""

    __slots__ = ("default", "name", "owner", "scope", "type")

    def __init__(self, owner: str, name: str, scope: str, kind: FieldType, default: Any) -> None:
        self.owner = owner
        self.name = name
        self.scope = scope
        self.type = kind
        self.default = default

    @property
    def place(self) -> str:
        """Where it is kept: scope and name."""
        return f"{self.scope}.{self.name}"

    @property
    def has_default(self) -> bool:
        """Whether it can be read before anything was written."""
        return self.default is not MISSING

    def check(self, value: Json) -> None:
        """Refuse JSON of another type: a TypeError that names the field and the value."""
        try:
            self.type.check(value)
        except TypeError as error:
            raise self._mistyped(value, error) from None

    def check_change(self, value: object) -> None:
        """Refuse a change to another type: a TypeError that names the field and the value.

        A mapping is merged with the one that is there, so it may be a part of what the type needs.
        """
        if isinstance(value, MarkedValue):
            if value.op != "delete":
                self.check(plain([value.value] if value.op == "append" else value.value, str(self)))
        elif not isinstance(value, Mapping) or not value or self.type.kinds is not None:
            self.check(plain(cast("object", value), str(self)))

    def dump(self, value: object) -> Json:
        """A value as it is kept; a TypeError names the field and the value."""
        try:
            return self.type.dump(value)
        except TypeError as error:
            raise self._mistyped(value, error) from None

    def _copied(self, value: object) -> Json:
        # The value's type is not checked again here, only that it can be kept as JSON.
        try:
            return plain(value)
        except BadValue:
            return self.dump(value)

    def _mistyped(self, value: object, error: TypeError) -> TypeError:
        shown = repr(value)
        shown = shown if len(shown) <= 200 else f"{shown[:197]}..."
        detail = f" ({error})" if self.type.kinds is None else ""
        return TypeError(f"{self} is {self.type}, but was given {shown}{detail}")

    def shape(self) -> dict[str, Json]:
        """The field in a snapshot."""
        shown: dict[str, Json] = {"type": plain(self.type.schema())}
        return {**shown, "default": self.default} if self.has_default else shown

    def __get__(self, view: "StateSchema | None", _: object = None) -> Any:
        if view is None:
            return self
        scopes = _scopes_of(view)
        scope = scopes[self.scope]
        lent = scope.lent(self.name)
        if lent is not MISSING:
            return lent
        if self.name in scope:
            kept = scope[self.name]
        elif self.has_default:
            kept = plain(self.default)
        else:
            raise missing_key(self.place, scopes, f"{self} has no value")
        if self.type.kinds is not None or (self.type.is_plain and type(kept) not in (list, dict)):
            return kept
        try:
            value = self.type.load(kept)
        except TypeError as error:
            raise self._mistyped(kept, error) from None
        as_json = self._copied if self.type.is_plain else self.dump
        return scope.lend(self.name, value, as_json, self.dump)

    def __set__(self, view: "StateSchema", value: object) -> None:
        _scopes_of(view)[self.scope][self.name] = self.dump(value)

    def __delete__(self, view: "StateSchema") -> None:
        scopes = _scopes_of(view)
        if self.name not in scopes[self.scope]:
            raise missing_key(self.place, scopes, f"{self} has no value")
        del scopes[self.scope][self.name]

    def __repr__(self) -> str:
        return f"{self.owner}.{self.name}"


class StateSchema:
    """Base class for typed state, with an annotation for each field that an agent keeps.

    `Billing.intent` is a reference to the field; `Billing.bind(ctx).intent` reads it, and assigning
    to it checks the type. A default is read where nothing was written. Schemas are combined by
    inheriting from several.
    """

    __slots__ = ("_source",)
    __fields__: ClassVar[Mapping[str, Field]] = MappingProxyType({})
    _source: Any

    def __init_subclass__(cls, **options: object) -> None:
        super().__init_subclass__(**options)
        found: dict[str, Field] = {}
        for base in reversed(cls.__mro__[1:]):
            if issubclass(base, StateSchema):
                _merge(cls, found, base.__fields__.values())
        own = _own_fields(cls)
        _merge(cls, found, own)
        for field in own:
            setattr(cls, field.name, field)
        cls.__fields__ = MappingProxyType(found)

    def __init__(self) -> None:
        raise TypeError(f"{type(self).__name__} holds no data itself; use .bind(ctx).")

    @classmethod
    def bind(cls, source: object) -> Self:
        """A view of the state of a tool's or step's `ctx`, or of `state` itself, through the schema."""
        view = object.__new__(cls)
        object.__setattr__(view, "_source", source)
        _scopes_of(view)
        return view

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__} has no field {name!r}{_meant(self, name)}")

    def __setattr__(self, name: str, value: object) -> None:
        if name not in type(self).__fields__:
            raise AttributeError(f"{type(self).__name__} has no field {name!r}{_meant(self, name)}")
        object.__setattr__(self, name, value)

    def __contains__(self, field: object) -> bool:
        """Whether a value was written: `Billing.ticket in state`."""
        found = field if isinstance(field, Field) else type(self).__fields__.get(str(field))
        return found is not None and found.name in _scopes_of(self)[found.scope]

    def __repr__(self) -> str:
        there = (name for name in type(self).__fields__ if name in self)
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in there)
        return f"{type(self).__name__}({shown})"


def is_schema(given: object) -> TypeGuard[type[StateSchema]]:
    """Whether this is a class with fields of the state."""
    return isinstance(given, type) and issubclass(given, StateSchema)


def fields_of(schema: type[StateSchema]) -> Mapping[str, Field]:
    """The fields of a schema by their names, including those of its bases."""
    return schema.__fields__


def missing_key(place: str, state: Any, what: str) -> StateKeyError:
    """The error for a place of the state (or of a run's scopes) where nothing is."""
    scope, _, key = place.partition(".")
    there = [str(name) for name in (state[scope] if scope in state else ())]
    text = f"{what}: nothing is at {place} of the state."
    if not there:
        return StateKeyError(f"{text} The scope {scope!r} is empty.")
    shown = ", ".join(sorted(there)[:20]) + (", ..." if len(there) > 20 else "")
    return StateKeyError(f"{text} {scope!r} holds {shown}.{_nearest(key, there)}")


def schema_facts(fields: Iterable[Field]) -> dict[str, Any]:
    """The typed fields in a snapshot; nothing if there are none."""
    shapes = {field.place: field.shape() for field in fields}
    return {"schema": shapes} if shapes else {}


def state_schema(fn: Any) -> type[StateSchema] | None:
    """The schema with which a function takes the state: the annotation of its `state`."""
    target = getattr(fn, "func", fn)
    code = target if inspect.isroutine(target) else target.__call__
    code = getattr(code, "__func__", code)
    return _annotated_schema(code) if "state" in getattr(code, "__annotations__", ()) else None


@lru_cache(maxsize=512)
def _annotated_schema(fn: Any) -> type[StateSchema] | None:
    found = fn.__annotations__["state"]
    if isinstance(found, str):
        try:
            found = get_type_hints(fn)["state"]
        except (NameError, TypeError) as error:
            raise BadAgent(
                f"the annotation state: {found} of {fn.__name__!r} cannot be read: {error}. Define or "
                f"import it at module level, or leave it out."
            ) from error
    return found if is_schema(found) else None


def _scopes_of(view: StateSchema) -> Any:
    source = view._source  # pyright: ignore[reportPrivateUsage] - the view has no public names but its fields
    # Checked by type, since Scopes treats every attribute as a scope, even `state`.
    if isinstance(source, Scopes):
        return source
    state = getattr(source, "state", None)
    if isinstance(state, Scopes):
        return state
    if hasattr(state, "__getitem__") and hasattr(state, "__setitem__"):
        return PrefixedScopes(state)
    raise TypeError(
        f"{type(view).__name__}.bind() needs the ctx or the state that a tool or a step receives, "
        f"but got {source!r}."
    )


def _own_fields(cls: type[StateSchema]) -> list[Field]:
    names = inspect.get_annotations(cls)
    try:
        hints = get_type_hints(cls, include_extras=True)
    except (NameError, TypeError) as error:
        raise BadAgent(
            f"the annotations of {cls.__name__} cannot be read: {error}. Define the types at module "
            f"level."
        ) from error
    return [
        _field(cls, name, hints[name]) for name in names if get_origin(hints[name]) is not ClassVar
    ]


def _field(cls: type[StateSchema], name: str, annotation: object) -> Field:
    here = f"{cls.__name__}.{name}"
    if name.startswith("_") or name in vars(StateSchema):
        raise BadAgent(f"{here} cannot be a field, because of its name; choose another.")
    scope = "session"
    if get_origin(annotation) is Annotated:
        kept, *marks = get_args(annotation)
        scope = next((mark.scope for mark in marks if isinstance(mark, Scoped)), scope)
        others = [mark for mark in marks if not isinstance(mark, Scoped)]
        annotation = Annotated[kept, *others] if others else kept
    try:
        field = Field(cls.__name__, name, scope, FieldType(annotation), MISSING)
    except BadInput:
        raise
    except Exception as error:
        raise BadAgent(
            f"{here} is {annotation!r}, which cannot be kept as JSON: {error}"
        ) from error
    if name in vars(cls):
        try:
            field.default = field.dump(vars(cls)[name])
        except TypeError as error:
            raise BadAgent(f"the default of {error}") from None
    return field


def _merge(cls: type[StateSchema], found: dict[str, Field], more: Iterable[Field]) -> None:
    for field in more:
        known = found.get(field.name)
        if known is not None and not (
            known.scope == field.scope and known.type.annotation == field.type.annotation
        ):
            raise SchemaConflict(
                f"{cls.__name__}.{field.name} would be {_describe(known)} and {_describe(field)}. "
                f"Rename one, or give both the same type and scope."
            )
        found[field.name] = field


def _describe(field: Field) -> str:
    return f"{field.type} in the scope {field.scope!r} (as {field})"


def _meant(view: StateSchema, name: str) -> str:
    fields = type(view).__fields__
    return f"; its fields are {', '.join(fields)}.{_nearest(name, fields)}"


def _nearest(name: str, known: Iterable[str]) -> str:
    found = near(name, known)
    return f" Did you mean {found[0]!r}?" if found else ""
