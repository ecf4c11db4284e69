"""What goes into the store goes without secrets: quickly where there is none, thoroughly elsewhere."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

from greenroom.errors import BadFile, GreenroomError
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import Redactor
from greenroom.ledger.sieve import Sieve
from greenroom.store.runs import Row, batches

_LITTLE = 200_000
"""So many bytes are looked at together, which is cheaper than one row after the other."""


class Cleaner:
    """Takes the secrets out of rows. For one thread.

    `redactor` is asked each time: agents and tools may put secrets into the environment as they run.
    """

    def __init__(self, redactor: Callable[[], Redactor]) -> None:
        self._asked = redactor
        self._redactor = redactor()
        self._sieve = Sieve(self._redactor)

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows as they may be kept."""
        self._keep_up()
        return [clean for some in batches(rows, _LITTLE) for clean in self._some(some)]

    def _some(self, rows: Sequence[Row]) -> Sequence[Row]:
        if len(rows) > 1 and self._sieve.is_clean(b"\n".join([p for r in rows for p in _parts(r)])):
            return rows
        return [self._row(row) for row in rows]

    def _keep_up(self) -> None:
        try:
            now = self._asked()
        except BadFile:  # somebody is writing on it just now
            return
        if now is not self._redactor:
            self._redactor, self._sieve = now, Sieve(now)

    def _row(self, row: Row) -> Row:
        if all(map(self._sieve.is_clean, _parts(row))):
            return row
        return replace(
            row,
            verdict=self._verdict(row),
            ledger=self._ledger(row.ledger),
            judging=self._ledger(row.judging),
        )

    def _verdict(self, row: Row) -> str:
        try:
            data = json.loads(row.verdict)
        except (ValueError, RecursionError):
            return self._redactor.text(row.verdict)
        clean = self._redactor.value(data)
        return row.verdict if clean is data else json.dumps({**clean, "case_id": row.key.case_id})

    def _ledger(self, lines: bytes) -> bytes:
        try:
            ledger = Ledger.loads(lines.decode())
            clean = self._redactor.ledger(ledger)
        except (GreenroomError, ValueError, RecursionError):
            # Nobody can read it anyway, and those beside it must not suffer for that.
            return self._redactor.text(lines.decode(errors="replace")).encode(errors="replace")
        return lines if clean is ledger else clean.dumps().encode()


def _parts(row: Row) -> tuple[bytes, bytes, bytes]:
    return row.verdict.encode(), row.ledger, row.judging
