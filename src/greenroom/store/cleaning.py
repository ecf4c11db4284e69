"""What goes into the store goes without secrets: quickly where there is none, thoroughly elsewhere."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import Redactor
from greenroom.ledger.sieve import Sieve
from greenroom.store.runs import Row

_LITTLE = 500_000
"""So many bytes are looked at together, which is cheaper than one row after the other."""


class Cleaner:
    """Takes the secrets out of rows. For one thread."""

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._sieve = Sieve(redactor)

    def rows(self, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows as they may be kept."""
        parts = [part for row in rows for part in _parts(row)]
        if sum(map(len, parts)) <= _LITTLE and self._sieve.is_clean(b"\n".join(parts)):
            return rows
        return [self._row(row) for row in rows]

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
        data = json.loads(row.verdict)
        clean = self._redactor.value(data)
        return row.verdict if clean is data else json.dumps({**clean, "case_id": row.key.case_id})

    def _ledger(self, lines: bytes) -> bytes:
        ledger = Ledger.loads(lines.decode())
        clean = self._redactor.ledger(ledger)
        return lines if clean is ledger else clean.dumps().encode()


def _parts(row: Row) -> tuple[bytes, bytes, bytes]:
    return row.verdict.encode(), row.ledger, row.judging


def kept_ids(ids: Iterable[str], redactor: Redactor) -> dict[str, str]:
    """By which id the store knows each case: its own, unless there is a secret in it."""
    given = list(ids)
    return {
        own: own
        if clean == own
        else f"{clean} #{sha256(own.encode(errors='surrogatepass')).hexdigest()[:8]}"
        for own, clean in zip(given, redactor.value(given), strict=True)
    }
