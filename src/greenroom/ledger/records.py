"""Records: frozen, slotted dataclasses that cost little to define and little to make.

A frozen dataclass fills itself through `object.__setattr__`, which looks every field up by its name,
and compiles half a dozen methods when it is defined. A run makes dozens of them and the package
defines a hundred. A record is the same dataclass; its `__init__` goes to the slots directly, and
its other methods are shared.

Of all records a run makes most of its events, and they are made by keyword only. Those build on
`Facts`: Python fills them in one go, and what is not said is not stored.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, FrozenInstanceError, dataclass, field, fields
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast, dataclass_transform, overload

T = TypeVar("T")


@overload
def record(cls: type[T], /) -> type[T]: ...
@overload
def record(
    *, kw_only: bool = False, eq: bool = True, repr: bool = True
) -> Callable[[type[T]], type[T]]: ...
@dataclass_transform(frozen_default=True, field_specifiers=(field, Field))
def record(
    cls: type[Any] | None = None, /, *, kw_only: bool = False, eq: bool = True, repr: bool = True
) -> Any:
    """Like `dataclass(frozen=True, slots=True)`."""

    def made(given: type[Any]) -> type[Any]:
        slots = not issubclass(given, Facts)
        bare = dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(given)
        own: Mapping[str, Any] = bare.__dict__
        methods: dict[str, Callable[..., Any]] = {
            "__setattr__": _frozen,
            "__delattr__": _frozen,
        }
        if slots:
            methods["__init__"] = _filling(bare)
        if repr and "__repr__" not in own:
            methods["__repr__"] = _shown
        if eq and "__eq__" not in own:
            methods |= _comparing(bare)
        for name, method in methods.items():
            setattr(bare, name, method)
        return bare

    return made if cls is None else made(cls)


if TYPE_CHECKING:

    class Facts:
        """Base of records that are made by keyword only; see `misnamed`."""

else:

    class Facts(SimpleNamespace):
        """Base of records that are made by keyword only; see `misnamed`."""

        # A visible `__slots__` tells pydantic to fill fields one by one, as in any other record.
        __slots__ = ()


def misnamed(facts: Facts) -> str:
    """What is wrong with the names `facts` was made with: nobody looked at them then."""
    kind, given = type(facts).__name__, vars(facts)
    known = fields(cast(Any, facts))
    if unknown := given.keys() - {p.name for p in known}:
        return f"{kind} has no field {min(unknown)!r}"
    lacking = [p.name for p in known if p.name not in given and p.default is MISSING]
    return f"{kind} lacks {lacking[0]!r}" if lacking else ""


def _frozen(self: Any, name: str, *_: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r} of a {type(self).__name__}")


def _shown(self: Any) -> str:
    parts = [f"{p.name}={getattr(self, p.name)!r}" for p in fields(self) if p.repr]
    return f"{type(self).__qualname__}({', '.join(parts)})"


def _comparing(bare: type[Any]) -> dict[str, Callable[..., Any]]:
    names = [p.name for p in fields(bare) if p.compare]
    # With one name `attrgetter` gives the bare value, which compares and hashes just as well.
    values = cast("Callable[[Any], Any]", attrgetter(*names) if names else type)

    def __eq__(self: Any, other: object) -> Any:  # noqa: N807
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def __hash__(self: Any) -> int:  # noqa: N807
        return hash(values(self))

    return {"__eq__": __eq__, "__hash__": __hash__}


def _filling(bare: type[Any]) -> Callable[..., None]:
    """An `__init__` that puts each value into its slot."""
    names: dict[str, Any] = {"_missing": MISSING}
    asked = [p for p in fields(bare) if p.init]
    positional = [_parameter(p, names) for p in asked if not p.kw_only]
    keywords = [_parameter(p, names) for p in asked if p.kw_only]
    head = ", ".join(["self", *positional, *(["*", *keywords] if keywords else [])])
    body = [_assignment(p, bare, names) for p in asked] or ["pass"]
    after = ["self.__post_init__()"] if hasattr(bare, "__post_init__") else []
    source = f"def __init__({head}):\n" + "".join(f"    {line}\n" for line in [*body, *after])
    exec(source, names)  # noqa: S102 - as the dataclasses module does, of names only
    made = names["__init__"]
    made.__qualname__ = f"{bare.__qualname__}.__init__"
    return made


def _parameter(part: "Field[Any]", names: dict[str, Any]) -> str:
    if part.default is not MISSING:
        names[f"_default_{part.name}"] = part.default
        return f"{part.name}=_default_{part.name}"
    if part.default_factory is not MISSING:
        return f"{part.name}=_missing"
    return part.name


def _assignment(part: "Field[Any]", bare: type[Any], names: dict[str, Any]) -> str:
    name = part.name
    names[f"_put_{name}"] = getattr(bare, name).__set__
    if part.default_factory is MISSING:
        return f"_put_{name}(self, {name})"
    names[f"_make_{name}"] = part.default_factory
    return f"_put_{name}(self, _make_{name}() if {name} is _missing else {name})"
