"""Rows of an SQLite file, checked as they are read: a column holds whatever was written or damaged there."""

import re
import sqlite3
from typing import Any, Final, get_args

from greenroom.results.endings import Status
from greenroom.store.columns import from_column
from greenroom.store.runs import RunStatus
from greenroom.store.schema import CONVERSATIONS, SHARDS, TABLES

_READ_LATER: Final = frozenset({"plan", "notes", "verdict"})
"""Columns whose readers name the run or the trial that is damaged, or show the others without it."""
_KINDS: Final = {"text": str, "blob": bytes, "integer": int, "real": (float, int)}
_DECLARED: Final = re.compile(r"^    (\w+) (text|integer|real|blob)\b(.*)$", re.MULTILINE)
_COLUMNS: Final = {
    name: (_KINDS[kind], "not null" not in more and "primary key" not in more)
    for name, kind, more in _DECLARED.findall(TABLES + CONVERSATIONS + SHARDS)
    if name not in _READ_LATER
}
"""For each column, the type of its values, and whether it may hold none. A name means the same in every table."""
STORED: Final = tuple(re.findall(r"create table (\w+)", TABLES + CONVERSATIONS + SHARDS))
"""The names of all tables."""
_STATUSES: Final = {*get_args(Status), *get_args(RunStatus), ""}
_SHOWN: Final = 40
DAMAGED: Final = "it is damaged"
"""How the message of such an error begins."""


class CheckedCursor(sqlite3.Cursor):
    """A cursor of one statement, which raises DatabaseError for a value that Greenroom did not write."""

    names: tuple[str, ...] = ()
    kinds: tuple[Any, ...] = ()
    has_status: bool = False


def checked_row(cursor: sqlite3.Cursor, row: tuple[Any, ...]) -> tuple[Any, ...]:
    """The row, if each value is of the type that its column was declared with."""
    assert isinstance(cursor, CheckedCursor)
    if not cursor.kinds:
        cursor.names = tuple(name for name, *_ in cursor.description)
        cursor.kinds = tuple(_COLUMNS.get(name, (object, True))[0] for name in cursor.names)
        cursor.has_status = "status" in cursor.names
    if cursor.has_status or not all(map(isinstance, row, cursor.kinds)):
        for name, value, kind in zip(cursor.names, row, cursor.kinds, strict=True):
            if not _is_fit(name, value, kind):
                shown = repr(value)[:_SHOWN]
                raise sqlite3.DatabaseError(f"{DAMAGED}: its column {name!r} holds {shown}")
    return row


def _is_fit(name: str, value: object, kind: Any) -> bool:
    if isinstance(value, kind):
        return name != "status" or value in _STATUSES
    if value is None:
        return _COLUMNS[name][1]
    if kind is not str or not isinstance(value, bytes):
        return False
    try:
        from_column(value)  # half a surrogate pair is kept as bytes
    except UnicodeDecodeError:
        return False
    return True
