"""Removes secrets from what goes into the store: a quick check first, a thorough one where it finds any."""

import json
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from msgspec import structs

from greenroom.errors import BadFile, GreenroomError
from greenroom.ledger.codec import decode, encoded, json_of
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import Redactor, Sieve
from greenroom.results.data import declared_verdict
from greenroom.results.wire import StoredVerdict, to_json_types
from greenroom.store.cut_trials import TRIAL
from greenroom.store.runs import Row, batches

_LITTLE = 200_000
"""How many bytes are checked together, which is cheaper than row by row."""
_MUCH = 500_000
"""Above this many bytes, there are too many new words for the quick check to be quick."""


class _CurrentRedactor:
    """A redactor and its sieve. For one thread.

    `redactor` is asked each time: agents and tools may add secrets to the environment while they run.
    """

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        self._asked = redactor
        self._redactor = redactor()
        self._sieve = Sieve(self._redactor)

    def keep_up(self) -> None:
        """Learn what has become a secret since the last call."""
        try:
            now = self._asked()
        except BadFile:  # pyproject.toml may be half written at this moment
            return
        if now is not self._redactor:
            self._redactor, self._sieve = now, Sieve(now)


class LineCleaner(_CurrentRedactor):
    """Removes secrets from journal lines that others may read."""

    def lines(self, lines: bytes) -> bytes:
        """The lines, with secrets replaced by marks; a trial cannot continue from replaced ones."""
        if len(lines) <= _MUCH and self._sieve.is_clean(lines):
            return lines
        clean = b"".join(
            [line[:1] + self._line(line[:1], line[1:]) for line in lines.splitlines(True)]
        )
        return lines if clean == lines else clean

    def _line(self, mark: bytes, line: bytes) -> bytes:
        if mark == TRIAL:  # its case has the id that the store knows, without secrets
            return line
        try:
            [event] = decode([line.decode(), ""])
            clean = self._redactor.value(event)
        except (GreenroomError, ValueError, RecursionError):
            # Too deep, or a number that is too long.
            return self._redactor.text(line.decode(errors="replace")).encode(errors="replace")
        return line if clean is event else encoded(clean)


class Cleaner(_CurrentRedactor):
    """Removes secrets from rows."""

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows as they may be stored."""
        self.keep_up()
        return [clean for some in batches(rows, _LITTLE) for clean in self._some(some)]

    def _some(self, rows: Sequence[Row]) -> Sequence[Row]:
        if len(rows) > 1 and self._sieve.is_clean(b"\n".join([p for r in rows for p in _parts(r)])):
            return rows
        return [self._row(row) for row in rows]

    def _row(self, row: Row) -> Row:
        if row.size <= _MUCH and all(map(self._sieve.is_clean, _parts(row))):
            return row
        # All at once: the verdict often repeats what the ledger says.
        read = (_verdict(row.verdict), _events(row.ledger), _events(row.judging))
        try:
            verdict, ledger, judging = self._redactor.value(read)
        except RecursionError:
            texts = (row.verdict, _text(row.ledger), _text(row.judging))
            verdict, ledger, judging = map(self._one_part, read, texts)
        return structs.replace(
            row,
            verdict=row.verdict if verdict is read[0] else _written(verdict, row.key.case_id),
            ledger=row.ledger if ledger is read[1] else _lines(ledger),
            judging=row.judging if judging is read[2] else _lines(judging),
        )

    def _one_part(self, read: object, text: str) -> Any:
        """One part of a row without secrets; as text if it is nested too deeply."""
        try:
            return self._redactor.value(read)
        except RecursionError:
            return self._redactor.text(text)


def _parts(row: Row) -> tuple[bytes, bytes, bytes]:
    return row.verdict.encode(), row.ledger, row.judging


def _verdict(verdict: str) -> Any:
    """The verdict as its declared type, or as JSON if it is none."""
    try:
        return declared_verdict(verdict)
    except (GreenroomError, msgspec.MsgspecError, UnicodeError, RecursionError):
        pass
    try:
        return json.loads(verdict)
    except (ValueError, RecursionError):
        return verdict


def _written(verdict: Any, case_id: str) -> str:
    if isinstance(verdict, StoredVerdict):
        verdict.case_id = case_id
        return json_of(verdict, to_json_types).decode()
    return verdict if isinstance(verdict, str) else json.dumps({**verdict, "case_id": case_id})


def _events(lines: bytes) -> list[Event] | str:
    """The events of a ledger; its text if it cannot be read, so that the other rows are still stored."""
    try:
        return list(Ledger.loads(lines.decode()))
    except (GreenroomError, ValueError, RecursionError):
        return _text(lines)


def _text(lines: bytes) -> str:
    return lines.decode(errors="replace")


def _lines(ledger: list[Event] | str) -> bytes:
    if isinstance(ledger, str):
        return ledger.encode(errors="replace")
    return Ledger(ledger).dumps().encode()
