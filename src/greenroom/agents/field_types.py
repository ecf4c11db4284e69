"""The types of state fields: what may be written, and how it is kept as JSON and read back."""

import json
import types
from collections.abc import Mapping, Sequence
from typing import (
    Annotated,
    Any,
    Literal,
    Union,
    get_args,
    get_origin,
)

from greenroom.errors import BadValue
from greenroom.ledger.plain import Json, plain

_NONE = type(None)
_KINDS: dict[Any, tuple[type, ...]] = {
    str: (str,),
    int: (int,),
    # As in type checkers: an int is accepted where a float is declared.
    float: (float, int),
    bool: (bool,),
    None: (_NONE,),
    _NONE: (_NONE,),
}
_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", _NONE: "null"}


class FieldType:
    """The annotation of a field: it checks what is written, and reads it back."""

    __slots__ = ("_built", "annotation", "is_plain", "kinds")

    def __init__(self, annotation: Any) -> None:
        self.annotation = annotation
        self._built: Any = None
        self.kinds = _kinds(annotation)
        """The Python types that are accepted, if the type is all there is to check."""
        self.is_plain = _is_json(annotation)
        """Whether what is kept as JSON is of this type already."""
        if not self.is_plain:
            self._adapter()  # a type that cannot be kept as JSON is refused where it is declared

    def dump(self, value: object) -> Json:
        """A value as it is kept; TypeError if it is of another type."""
        try:
            if self.kinds is not None:
                self._check_kind(value)
                return plain(value)
            if self.annotation is Any:
                return plain(value)
            adapter = self._adapter()
            found = adapter.validate_python(value, strict=True)
            kept = plain(adapter.dump_python(found, mode="json", warnings=False))
            if not self.is_plain:
                # Attributes of objects are not checked when they are assigned; what is kept must be readable.
                adapter.validate_json(json.dumps(kept), strict=True)
            return kept
        except (BadValue, ValueError) as error:
            raise TypeError(str(error)) from error

    def load(self, value: Json) -> Any:
        """The stored value, converted to the annotated type; TypeError if that is not possible."""
        if self.is_plain:
            return value
        try:
            return self._adapter().validate_json(json.dumps(value), strict=True)
        except ValueError as error:
            raise TypeError(str(error)) from error

    def check(self, value: Json) -> None:
        """Refuse JSON that is of another type."""
        if self.kinds is not None:
            self._check_kind(value)
        elif self.annotation is not Any:
            try:
                self._adapter().validate_json(json.dumps(value), strict=True)
            except ValueError as error:
                raise TypeError(str(error)) from error

    def schema(self) -> Any:
        """The JSON schema of what is kept."""
        if self.kinds is None:
            return {} if self.annotation is Any else self._adapter().json_schema()
        names = [name for kind, name in _NAMES.items() if kind in self.kinds]
        if float in self.kinds and int in self.kinds:
            names.remove("integer")
        return {"type": names[0] if len(names) == 1 else names}

    def _check_kind(self, value: object) -> None:
        kinds: Any = self.kinds
        if type(value) in kinds:
            return
        # True is a number for Python, but not for people.
        if isinstance(value, bool) or not isinstance(value, kinds):
            raise TypeError(f"{type(value).__name__} is not {self}")

    def _adapter(self) -> Any:
        if self._built is None:
            from pydantic import TypeAdapter  # slow to load, and most fields do not need it

            self._built = TypeAdapter(self.annotation)
        return self._built

    def __reduce__(self) -> tuple[type["FieldType"], tuple[Any]]:
        return FieldType, (self.annotation,)

    def __str__(self) -> str:
        if isinstance(self.annotation, type):
            return self.annotation.__name__
        return "None" if self.annotation is None else str(self.annotation).replace("typing.", "")


def _kinds(annotation: object) -> tuple[type, ...] | None:
    if _is_union(annotation):
        found = [_kinds(part) for part in get_args(annotation)]
        return None if None in found else tuple(kind for kinds in found for kind in kinds or ())
    return _KINDS.get(annotation) if annotation is None or isinstance(annotation, type) else None


def _is_union(annotation: object) -> bool:
    return get_origin(annotation) in (Union, types.UnionType)


def _is_json(annotation: Any) -> bool:
    """Whether JSON values have this type in Python without being converted."""
    if annotation is Any or _kinds(annotation) is not None or annotation in (list, dict):
        return True
    origin, parts = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return all(type(part) in _KINDS for part in parts)
    if origin is Annotated:
        return _is_json(parts[0])
    if origin in (list, Sequence) or _is_union(annotation):
        return all(map(_is_json, parts))
    if origin in (dict, Mapping):
        return parts[0] is str and _is_json(parts[1])
    return False
