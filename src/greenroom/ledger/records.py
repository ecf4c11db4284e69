"""Records: frozen, slotted dataclasses that cost no more to make than others.

A frozen dataclass fills itself through `object.__setattr__`, field by field, which takes two thirds
of its making; and a run makes dozens. A record is the same dataclass with another `__init__`: while
it is being filled the object belongs to a twin of its class that may be written to.
"""

from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, field, fields
from typing import Any, TypeVar, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(*, kw_only: bool = False, eq: bool = True, repr: bool = True) -> Callable[[type[T]], type[T]]: ...  # fmt: skip
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def record(
    cls: type[Any] | None = None, /, *, kw_only: bool = False, eq: bool = True, repr: bool = True
) -> Any:
    """Like `dataclass(frozen=True, slots=True)`."""

    def made(given: type[Any]) -> type[Any]:
        frozen = dataclass(frozen=True, slots=True, kw_only=kw_only, eq=eq, repr=repr)(given)
        frozen.__init__ = _filling(frozen)
        return frozen

    return made if cls is None else made(cls)


def _filling(frozen: type[Any]) -> Callable[..., None]:
    """An `__init__` that fills the object as its writable twin."""
    parts = fields(frozen)
    names: dict[str, Any] = {
        "_turn": object.__setattr__,
        "_twin": _twin(frozen),
        "_frozen": frozen,
        "_missing": MISSING,
    }
    asked = [p for p in parts if p.init]
    positional = [_parameter(p, names) for p in asked if not p.kw_only]
    keywords = [_parameter(p, names) for p in asked if p.kw_only]
    head = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    lines = [line for p in parts for line in _assignment(p, names)]
    after = ["self.__post_init__()"] if hasattr(frozen, "__post_init__") else []
    body = ['_turn(self, "__class__", _twin)', *lines, "self.__class__ = _frozen", *after]
    source = f"def __init__({head}):\n" + "".join(f"    {line}\n" for line in body)
    exec(source, names)  # noqa: S102 - as the dataclasses module does, of names only
    made = names["__init__"]
    made.__qualname__ = f"{frozen.__qualname__}.__init__"
    return made


def _twin(frozen: type[Any]) -> type[Any]:
    """The same layout, with plain assignment."""
    writable = {"__setattr__": object.__setattr__, "__delattr__": object.__delattr__}
    return type(frozen.__name__, (frozen,), {"__slots__": (), **writable})


def _parameter(part: "Field[Any]", names: dict[str, Any]) -> str:
    if part.default is not MISSING:
        names[f"_default_{part.name}"] = part.default
        return f"{part.name}=_default_{part.name}"
    if part.default_factory is not MISSING:
        return f"{part.name}=_missing"
    return part.name


def _assignment(part: "Field[Any]", names: dict[str, Any]) -> list[str]:
    name = part.name
    if part.default_factory is not MISSING:
        names[f"_make_{name}"] = part.default_factory
        return [f"self.{name} = _make_{name}() if {name} is _missing else {name}"]
    return [f"self.{name} = {name}"] if part.init else []
