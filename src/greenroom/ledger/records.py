"""Records: frozen dataclasses that are made in C.

A run makes dozens of small immutable objects, and making one as a frozen dataclass costs more than most
of what is done with it. A record is declared as a dataclass is and looks like one from outside (`fields`,
`replace`, pattern matching); inside it is a struct of msgspec, which makes, compares, hashes and
writes it as JSON without running Python code.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields, replace
from operator import attrgetter
from typing import Any, TypeVar, cast, dataclass_transform, overload

import msgspec
from msgspec.structs import force_setattr

from greenroom.ledger.validation import record_json_schema, record_schema

T = TypeVar("T")

_Meta: Any = type(msgspec.Struct)
_NOT_TAKEN = frozenset(("__dict__", "__weakref__", "__slots__"))

# What `pprint`, and with it pytest, asks of every dataclass.
_PARAMS: Any = {
    frozen: vars(dataclass(frozen=frozen)(type("_Bare", (), {})))["__dataclass_params__"]
    for frozen in (True, False)
}

fill: Callable[[Any, str, Any], None] = force_setattr
"""Fill a field of a record that nobody else has seen yet: `fill(self, name, value)`."""

EMPTY: Callable[[], dict[str, Any]] = dict
"""For `default_factory`: a bare `dict`, unlike `dict[str, int]`, is made without calling anybody. In JSON an
empty one is left out."""


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(
    *, kw_only: bool = False, eq: bool = True, repr: bool = True, frozen: bool = True
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def record(
    cls: type[Any] | None = None,
    /,
    *,
    kw_only: bool = False,
    eq: bool = True,
    repr: bool = True,
    frozen: bool = True,
) -> Any:
    """Like `dataclass(frozen=True, slots=True)`; `frozen=False` for what one owner changes.

    A class attribute `kind` stands first in the JSON of a record.
    """

    def made(given: type[Any]) -> type[Any]:
        space = _declared_in(given)
        known = _fields(given, space, kw_only)
        own = [part for name, part in known.items() if name in space["__annotations__"]]
        space = {k: v for k, v in space.items() if k not in known}
        space["__qualname__"] = given.__qualname__
        space["__dataclass_fields__"] = known
        space["__dataclass_params__"] = _PARAMS[frozen]
        space["__replace__"] = _replaced
        space["__rich_repr__"] = None  # a struct's would show what `__repr__` hides, such as keys
        space["__get_pydantic_core_schema__"] = classmethod(record_schema)
        space["__get_pydantic_json_schema__"] = classmethod(record_json_schema)
        if repr and "__repr__" not in space:
            space["__repr__"] = _shown
        if eq and "__eq__" not in space and not all(part.compare for part in known.values()):
            space |= _comparing(known)
        kind = space.get("kind")
        # What is written as JSON holds no rings, so nobody has to look for them.
        tag = {"tag_field": "kind", "tag": kind, "gc": False} if isinstance(kind, str) else {}
        return _struct(given, own, space, {"eq": eq, "frozen": frozen, **tag})

    return made if cls is None else made(cls)


def _declared_in(given: type[Any]) -> dict[str, Any]:
    """What stands in the body of a class."""
    space = {k: v for k, v in vars(given).items() if k not in _NOT_TAKEN}
    space.setdefault("__annotations__", {})
    if isinstance(given, _Meta):
        # The child of a record: msgspec has already taken its defaults away.
        names, defaults = given.__struct_fields__, given.__struct_defaults__
        kept = dict(zip(names[len(names) - len(defaults) :], defaults, strict=True))
        for name in space["__annotations__"].keys() & set(names):
            space.pop(name, None)  # a parent's field keeps its place there
            if kept.get(name, msgspec.NODEFAULT) is not msgspec.NODEFAULT:
                space[name] = kept[name]
    return space


def _fields(given: type[Any], space: dict[str, Any], kw_only: bool) -> dict[str, "Field[Any]"]:
    """The fields of a record, its parents' first."""
    found: dict[str, Field[Any]] = {}
    for base in reversed(given.__bases__):
        found |= getattr(base, "__dataclass_fields__", {})
    names = ("__annotations__", "__module__", *space["__annotations__"])
    body = {name: space[name] for name in names if name in space}
    # A class without words of its own would be described by its signature, which takes long to find.
    alone = type(given.__name__, (), {"__doc__": "A record.", **body})
    bare: Any = dataclass(init=False, repr=False, eq=False, kw_only=kw_only)(alone)
    return found | {part.name: part for part in fields(bare)}  # without those of the class


def _struct(
    given: type[Any], parts: "list[Field[Any]]", space: dict[str, Any], options: dict[str, Any]
) -> type[Any]:
    """The struct that has these fields, those by position before those by name."""
    bases = given.__bases__
    if not any(isinstance(base, _Meta) for base in bases):
        bases = (*(base for base in bases if base is not object), msgspec.Struct)
    by_place = [p for p in parts if not p.kw_only]
    by_name = [p for p in parts if p.kw_only]
    if by_place and by_name:
        hidden = {"__module__": given.__module__, "__qualname__": given.__qualname__}
        frozen = options["frozen"]
        bases = (_Meta(given.__name__, bases, hidden | _declared(by_place), frozen=frozen),)
        by_place = []
    made = _Meta(
        given.__name__,
        bases,
        space | _declared(by_place or by_name),
        kw_only=bool(by_name),
        omit_defaults=True,
        **options,
    )
    # Those by position too: a reader of annotations expects them where they were declared.
    made.__annotations__ = {p.name: p.type for p in parts}
    if options["frozen"]:
        # msgspec refuses changes too, but does not say of what.
        made.__setattr__ = made.__delattr__ = _frozen
    return made


def _declared(parts: "list[Field[Any]]") -> dict[str, Any]:
    """Fields as msgspec wants to be told of them."""
    told: dict[str, Any] = {"__annotations__": {p.name: p.type for p in parts}}
    for part in parts:
        if part.default is not MISSING:
            told[part.name] = part.default
        elif part.default_factory is not MISSING:
            told[part.name] = msgspec.field(default_factory=part.default_factory)
        elif not part.init:
            told[part.name] = None  # `__post_init__` fills it
    return told


def _frozen(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r} of a {type(self).__name__}")


def _replaced(self: Any, /, **changes: Any) -> Any:
    return replace(self, **changes)  # a struct's own would hand on what `__post_init__` filled in


def _shown(self: Any) -> str:
    parts = [f"{p.name}={getattr(self, p.name)!r}" for p in fields(self) if p.repr]
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _comparing(known: dict[str, "Field[Any]"]) -> dict[str, Callable[..., Any]]:
    names = [name for name, part in known.items() if part.compare]
    # With one name `attrgetter` gives the bare value, which compares and hashes just as well.
    values = cast("Callable[[Any], Any]", attrgetter(*names) if names else type)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}
