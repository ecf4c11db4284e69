"""The one place where values enter a ledger: as plain JSON copies, or not at all."""

import json
import re
from collections.abc import Mapping
from datetime import date, datetime, time
from enum import Enum
from math import isfinite
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeGuard, cast
from unicodedata import normalize
from uuid import UUID

from greenroom.errors import BadValue
from greenroom.ledger.records import field_names, is_record, written_names

if not TYPE_CHECKING:
    Json = Any  # msgspec reads the annotations of structs, and refuses a type that names itself
else:
    Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
    """A JSON value: None, bool, int, float, str, list or dict of these. Checked by `plain`."""

JSON_TYPES = frozenset((str, int, float, bool, type(None), dict, list))
"""The types JSON values have in Python, for a quick check before a thorough one."""

_DEPTH = 100
_MOST_DIGITS = 18
_TEXT = json.JSONEncoder(ensure_ascii=False)
_BYTES = "; or attach(data, media_type)"
# Only where Python's own repr ends one: other text may merely look like an address.
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]{6,}(?=>|, file | \[|; )")


def is_object(value: Json) -> "TypeGuard[dict[str, Json]]":
    """Whether a JSON value is an object."""
    return isinstance(value, dict)


def is_array(value: Json) -> "TypeGuard[list[Json]]":
    """Whether a JSON value is an array."""
    return isinstance(value, list)


def as_object(value: Json, where: str = "value") -> dict[str, Json]:
    """The value as the object it has to be; anything else is a BadValue naming its place."""
    if isinstance(value, dict):
        return value
    raise BadValue(f"{where} is {short_repr(value)}, which is not a JSON object.")


def as_array(value: Json, where: str = "value") -> list[Json]:
    """The value as the array it has to be; anything else is a BadValue naming its place."""
    if is_array(value):
        return value
    raise BadValue(f"{where} is {short_repr(value)}, which is not a JSON array.")


def same(one: Json, other: Json) -> bool:
    """Whether two JSON values are equal; unlike in Python, True is not 1."""
    if one != other or isinstance(one, bool) != isinstance(other, bool):
        return False
    if is_object(one) and is_object(other):
        return all(same(value, other[key]) for key, value in one.items())
    return all(map(same, one, other)) if is_array(one) and is_array(other) else True


def alike(one: Json, other: Json) -> bool:
    """Whether two JSON values are equal to a reader, however Unicode writes their letters."""
    return same(one, other) or same(_composed(one), _composed(other))


def _composed(value: Json) -> Json:
    if isinstance(value, str):
        return composed(value)
    if is_object(value):
        return {composed(key): _composed(held) for key, held in value.items()}
    return list(map(_composed, value)) if is_array(value) else value


def composed(text: str) -> str:
    """The text with every letter and its accents as one character, where Unicode has one."""
    return text if text.isascii() else normalize("NFC", text)


def composed_keys(values: Mapping[str, Json]) -> Mapping[str, Json]:
    """The same values, each letter of their keys written as one character."""
    if all(map(str.isascii, values)):
        return values
    return {composed(key): value for key, value in values.items()}


def as_text(value: Json) -> str:
    """A value as a model reads it."""
    return value if isinstance(value, str) else _TEXT.encode(value)


def without_addresses(text: str) -> str:
    """The repr of an object without its memory address, which differs in every process."""
    return _ADDRESS.sub("", text)


_LEAVES = frozenset((str, bool, type(None)))
_DIGITS = 4300
_MOST = 10**_DIGITS - 1
_LEAST = -_MOST
"""The whole numbers between the two are read back from text by Python and msgspec."""


class OwnedJson:
    """Plain JSON that was made for the ledger: it is used as is, and not copied."""

    __slots__ = ("value",)

    def __init__(self, value: Json) -> None:
        self.value = value


def plain(value: Any, where: str = "value", _depth: int = 0) -> Json:
    """A copy of `value` made of JSON types only; anything else is a BadValue naming its place."""
    kind = type(value)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
    if kind is dict and _depth <= _DEPTH:
        # First, because nearly every value is a flat dict.
        for key in value:
            if type(key) is not str:
                return _copied(value, where, _depth + 1)
            item = value[key]  # pyright: ignore[reportUnknownVariableType]
            inner = type(item)  # pyright: ignore[reportUnknownVariableType]
            if inner not in _LEAVES and not (inner is int and _LEAST <= item <= _MOST):
                return _copied(value, where, _depth + 1)
        return value.copy()
    if kind in _LEAVES or (kind is int and _LEAST <= value <= _MOST):
        return value
    if kind is float and isfinite(value):
        return value
    if _depth > _DEPTH:
        raise BadValue(f"{where[:80]} is nested deeper than {_DEPTH} levels, or contains itself.")
    if kind is list or kind is tuple:
        return _listed(value, where, _depth + 1)
    if kind is float:
        return _finite(value, where)
    return _unusual(value, where, _depth)


def _copied(value: dict[Any, Any], where: str, depth: int) -> dict[str, Json]:
    copy: dict[str, Json] = {}
    for key, item in value.items():
        if type(key) is not str:
            key = _key(key, where)
        kind = type(item)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
        is_leaf = kind in _LEAVES or (kind is int and _LEAST <= item <= _MOST)
        copy[key] = item if is_leaf else plain(item, where, depth)
    return copy


def _listed(value: "list[Any] | tuple[Any, ...]", where: str, depth: int) -> list[Json]:
    copy: list[Json] = []
    for item in value:
        kind = type(item)  # pyright: ignore[reportUnknownVariableType] - a cast is a call
        is_leaf = kind in _LEAVES or (kind is int and _LEAST <= item <= _MOST)
        copy.append(item if is_leaf else plain(item, where, depth))
    return copy


def _key(key: object, where: str) -> str:
    if isinstance(key, Enum):
        key = key.value
    if isinstance(key, str):
        return str(key)
    raise BadValue(f"{where} has the key {key!r}; JSON keys must be strings. Use str(key).")


def _finite(value: float, where: str) -> float:
    if isfinite(value):
        return value
    raise BadValue(f"{where} holds {value!r}, which is not a JSON number. Use None or a string.")


def _whole(value: int, where: str) -> int:
    if _LEAST <= value <= _MOST:
        return value
    raise BadValue(
        f"{where} holds a whole number of more than {_DIGITS} digits, which cannot be read back from "
        f"JSON. Use a string."
    )


def _unusual(value: object, where: str, depth: int) -> Json:
    """Types outside JSON that have one obvious JSON form."""
    if isinstance(value, Enum):
        return plain(value.value, where, depth + 1)
    if isinstance(value, int):
        return _whole(int(value), where)
    if isinstance(value, str):
        # A subclass of a JSON type as that type itself.
        return str(value)
    if isinstance(value, float):
        return _finite(float(value), where)
    if isinstance(value, Mapping):
        return plain(dict(cast("Mapping[object, object]", value)), where, depth)
    if isinstance(value, list | tuple):
        items = cast("list[object]", value)
        return [plain(item, where, depth + 1) for item in items]
    if is_record(value):
        kind = type(value)
        names = zip(written_names(kind), field_names(kind), strict=True)
        return plain({name: getattr(value, field) for name, field in names}, where, depth + 1)
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, UUID | PurePath):
        return str(value)
    # Declared by the type: an object that makes up its attributes has this one too.
    dump = getattr(type(value), "model_dump", None)
    if callable(dump):
        return plain(dump(value, mode="json"), where, depth + 1)
    raise BadValue(
        f"{where} holds {short_repr(value)} of type {type(value).__name__}, which is not JSON. "
        f"Return a dict, list, string, number, bool or None{_BYTES if isinstance(value, bytes) else ''}."
    )


def short_repr(value: object) -> str:
    """A value as Python shows it, for a message: without a memory address, and if it is long, its beginning."""
    text = without_addresses(repr(value))
    return text if len(text) <= 60 else f"{text[:59]}…"


def number_in(written: str) -> int | None:
    """The whole number that these digits write; None if they are none, or more than any that is meant.

    Python refuses to read a number of thousands of digits, with a ValueError.
    """
    is_number = written.isascii() and written.isdecimal() and len(written) <= _MOST_DIGITS
    return int(written) if is_number else None
