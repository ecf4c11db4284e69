"""Places in the state that Python refers to by objects: the fields of a schema."""

from collections.abc import Mapping
from typing import Any, Protocol, TypeGuard, cast

from greenroom.errors import BadQuery


class FieldLike(Protocol):
    """A reference to one key of one scope, such as a field of a state schema."""

    @property
    def scope(self) -> str: ...
    @property
    def name(self) -> str: ...


def is_field(given: object) -> TypeGuard[FieldLike]:
    """Whether this names a scope and a key in it."""
    scope, name = getattr(given, "scope", None), getattr(given, "name", None)
    return isinstance(scope, str) and isinstance(name, str)


def by_scope(given: Mapping[Any, Any]) -> Mapping[str, Any]:
    """Values by scope; those given by schema field are moved to the field's scope."""
    fields = [key for key in given if type(key) is not str and is_field(key)]
    if not fields:
        return given
    found: dict[str, Any] = {key: part for key, part in given.items() if key not in fields}
    for field in fields:
        part = found.get(field.scope, {})
        if not isinstance(part, Mapping) or field.name in part:
            raise BadQuery(
                f"{field!r} is at {field.scope}.{field.name}, which {dict(given)!r} gives twice; "
                f"give it once."
            )
        found[field.scope] = {**cast("Mapping[str, Any]", part), field.name: given[field]}
    return found
