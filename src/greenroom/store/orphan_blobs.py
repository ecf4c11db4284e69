"""Removes the bytes of attachments that nothing in a store mentions any longer."""

import sqlite3
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain
from pathlib import Path
from time import time
from typing import TYPE_CHECKING

from greenroom.ledger.blobs import FOLDER, BlobFolder, digests_in
from greenroom.store.ledgers import unpacked
from greenroom.store.lock import is_held

if TYPE_CHECKING:
    from greenroom.store.sqlite import SqliteDatabase

_AT_WORK = ("journals", "conversations")
# Seconds: bytes are stored just before what mentions them is written.
_MOMENT = 60.0


def remove_unmentioned(database: "SqliteDatabase") -> None:
    """Remove the bytes that no run and no conversation of the store mentions."""
    place, begun = database.folder, time()
    left = {path.name: path for path in BlobFolder(place / FOLDER).files()}
    if not left:
        return
    with database.connected() as connection:
        for written in _written(connection, database.path):
            if written is None:
                return  # unreadable: it may mention anything
            for digest in digests_in(written.decode(errors="replace")):
                left.pop(digest, None)
            if not left:
                return
    is_at_work = any(map(is_held, _folders(place)))
    for path in left.values():
        if _age(path, begun) > (_MOMENT if is_at_work else 0.0):
            path.unlink(missing_ok=True)


def _written(connection: sqlite3.Connection, kept: Path) -> Iterator[bytes | None]:
    """Everything that may mention an attachment."""
    for ledger, judging, verdict in connection.execute(
        "select ledger, judging, verdict from trials"
    ):
        yield from (unpacked(bytes(ledger)), unpacked(bytes(judging)), verdict.encode())
    for [line] in connection.execute("select line from conversation_events"):
        yield bytes(line)
    # Journals, and files that were written into the store's folder.
    place = kept.parent
    for file in chain(place.glob("*.*"), *(folder.glob("*") for folder in _folders(place))):
        is_ours = file.name.startswith(kept.name)
        if not is_ours and file.is_file() and not file.is_symlink():
            # If a process removes a journal now, it has just stored what that mentions.
            with suppress(FileNotFoundError):
                yield file.read_bytes()


def _folders(place: Path) -> list[Path]:
    return [folder for room in _AT_WORK for folder in (place / room).glob("*")]


def _age(path: Path, now: float) -> float:
    """Seconds since the bytes were last stored, counted from the start of this search."""
    try:
        return now - path.stat().st_mtime
    except FileNotFoundError:
        return -1.0
