"""Records: frozen, slotted dataclasses that cost less to make.

A frozen dataclass fills itself through `object.__setattr__`, which looks every field up by its name;
and a run makes dozens. A record is the same dataclass whose `__init__` goes to the slots directly.
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
    """An `__init__` that puts each value into its slot."""
    parts = fields(frozen)
    names: dict[str, Any] = {"_missing": MISSING}
    asked = [p for p in parts if p.init]
    positional = [_parameter(p, names) for p in asked if not p.kw_only]
    keywords = [_parameter(p, names) for p in asked if p.kw_only]
    head = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    body = [_assignment(p, frozen, names) for p in asked]
    after = ["self.__post_init__()"] if hasattr(frozen, "__post_init__") else []
    source = f"def __init__({head}):\n" + "".join(f"    {line}\n" for line in [*body, *after])
    exec(source, names)  # noqa: S102 - as the dataclasses module does, of names only
    made = names["__init__"]
    made.__qualname__ = f"{frozen.__qualname__}.__init__"
    return made


def _parameter(part: "Field[Any]", names: dict[str, Any]) -> str:
    if part.default is not MISSING:
        names[f"_default_{part.name}"] = part.default
        return f"{part.name}=_default_{part.name}"
    if part.default_factory is not MISSING:
        return f"{part.name}=_missing"
    return part.name


def _assignment(part: "Field[Any]", frozen: type[Any], names: dict[str, Any]) -> str:
    name = part.name
    names[f"_put_{name}"] = getattr(frozen, name).__set__
    if part.default_factory is MISSING:
        return f"_put_{name}(self, {name})"
    names[f"_make_{name}"] = part.default_factory
    return f"_put_{name}(self, _make_{name}() if {name} is _missing else {name})"
