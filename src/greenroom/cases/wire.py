"""Records as data: a field is read and written by its type, unless its record says how.

So a new field of a case is declared in one line, and files, ledgers and reports have it.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field
from operator import attrgetter
from types import NoneType, UnionType
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

from greenroom.cases.fields import Fields, ProblemList
from greenroom.cases.problems import mapping_at, shown, wrong
from greenroom.ledger.plain import Json, plain

T = TypeVar("T")
Reader = Callable[[Json, str], Any]
"""A reader: takes data and its place, returns a value or raises BadFile."""
Writer = Callable[[Any, str], Json]
"""A writer: takes a value and its name, returns data. None leaves the field out."""

_REFUSED: Any = object()


def read_text(data: Json, where: str) -> str:
    """Data that is a string."""
    return _typed(data, where, str, "a string")


def read_flag(data: Json, where: str) -> bool:
    """Data that is true or false."""
    return _typed(data, where, bool, "true or false")


def read_whole(data: Json, where: str) -> int:
    """Data that is a whole number."""
    return _typed(data, where, int, "a whole number")


def read_number(data: Json, where: str) -> float:
    """Data that is a number."""
    return _typed(data, where, int | float, "a number")


def _typed(data: Json, where: str, kind: Any, words: str) -> Any:
    if not isinstance(data, kind) or (isinstance(data, bool) and kind is not bool):
        raise wrong(where, f"{shown(data)} should be {words}")
    return data


def read_mapping(data: Json, where: str) -> Mapping[str, Json]:
    """Data that is a mapping."""
    return mapping_at(where, data)


def list_of(
    read: Callable[[Json, str], T], *, of_names: bool = False
) -> Callable[[Json, str], list[T]]:
    """A reader of lists whose items `read` reads; it raises all their problems at once.

    `of_names` says that each item may be a string: a single one lacks its brackets.
    """

    def read_list(data: Json, where: str) -> list[T]:
        if isinstance(data, str) and of_names:
            raise wrong(where, f"{shown(data)} should be a list", "Write", example=[data])
        problems = ProblemList()
        found = problems.each(data, where, read)
        problems.settle()
        return found

    return read_list


_BY_TYPE: dict[Any, Reader] = {
    str: read_text,
    bool: read_flag,
    int: read_whole,
    float: read_number,
    Sequence: list_of(read_text, of_names=True),
    Mapping: read_mapping,
}


def _reader_of(hint: object) -> Reader:
    kinds = [kind for kind in get_args(hint) if kind is not NoneType]
    kind = kinds[0] if isinstance(hint, UnionType) else hint
    return _BY_TYPE[get_origin(kind) or kind]


class RecordReader:
    """Reads the fields of a record, each by its type unless `readers` says how."""

    def __init__(
        self, kind: type[Any], readers: Mapping[str, Reader], without: Sequence[str] = ()
    ) -> None:
        hints = get_type_hints(kind)
        parts = [
            part for part in dataclasses.fields(kind) if part.init and part.name not in without
        ]
        self.names = tuple(part.name for part in parts)
        self._needed = [part.name for part in parts if _usual(part) is MISSING]
        self._parts = [
            (part.name, _usual(part), readers.get(part.name) or _reader_of(hints[part.name]))
            for part in parts
        ]

    def read(self, fields: Fields) -> dict[str, Any]:
        """The values of a record's fields; problems are remembered by `fields`."""
        given: dict[str, Any] = dict.fromkeys(self._needed, "")
        for name, usual, read in self._parts:
            value = fields.read(name, read, _REFUSED) if fields.has(name) else None
            if value is _REFUSED:
                if name in given:  # so it must not be reported as missing, too
                    given[name] = "unnamed"
            elif value or (value is not None and (usual or usual is None)):
                given[name] = value  # unless it is as empty as the default
        return given


class RecordWriter:
    """Writes a record as JSON, each field unchanged unless `writers` says how.

    A field that is not set is left out, and so is an empty one whose default is empty.
    """

    def __init__(
        self, kind: type[Any], writers: Mapping[str, Writer], without: Sequence[str] = ()
    ) -> None:
        parts = [
            part for part in dataclasses.fields(kind) if part.init and part.name not in without
        ]
        self._values: Callable[[object], tuple[Any, ...]] = attrgetter(*(p.name for p in parts))
        self._parts = [(part.name, _usual(part), writers.get(part.name, plain)) for part in parts]

    def write(self, record: object, label: str) -> dict[str, Json]:
        """The record as JSON; `label` says whose fields an error is about."""
        data: dict[str, Json] = {}
        for value, (name, usual, write) in zip(self._values(record), self._parts, strict=True):
            if value is usual or (value == usual if usual else not value and usual is not None):
                continue  # it is the default, or as empty as that
            written = write(value, f"{name} of {label}")
            if written is not None:
                data[name] = written
        return data


def _usual(part: "Field[Any]") -> Any:
    return part.default if part.default_factory is MISSING else part.default_factory()
