"""Records: dataclasses and msgspec structs, handled alike.

What users make and change is a frozen dataclass; what a trial creates in large numbers, or what is
written as JSON, is a frozen `msgspec.Struct`, which is implemented in C.
"""

import dataclasses
from functools import lru_cache
from typing import Any

from msgspec import Struct, structs, to_builtins


def is_record(value: object) -> bool:
    """Whether `value` is an instance of a dataclass or of a struct."""
    kind = type(value)
    return issubclass(kind, Struct) or dataclasses.is_dataclass(kind)


@lru_cache(maxsize=512)
def field_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of a record's fields."""
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    return tuple(part.name for part in dataclasses.fields(kind))


@lru_cache(maxsize=512)
def written_names(kind: type[Any]) -> tuple[str, ...]:
    """What a record's fields are called in JSON, in the same order."""
    return kind.__struct_encode_fields__ if issubclass(kind, Struct) else field_names(kind)


@lru_cache(maxsize=512)
def given_names(kind: type[Any]) -> tuple[str, ...]:
    """The names of the fields that are passed to the constructor; the record sets the others itself."""
    if issubclass(kind, Struct):
        return kind.__struct_fields__
    return tuple(part.name for part in dataclasses.fields(kind) if part.init)


def changed(value: Any, changes: dict[str, Any]) -> Any:
    """A copy of a record with these fields changed."""
    if isinstance(value, Struct):
        return structs.replace(value, **changes)
    return dataclasses.replace(value, **changes)


def json_fallback(value: object) -> Any:
    """What pydantic writes for a value that it does not know: a struct's fields, or its str()."""
    return to_builtins(value, enc_hook=str) if isinstance(value, Struct) else str(value)
