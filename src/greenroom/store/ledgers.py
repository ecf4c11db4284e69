"""Finished trials on their way into the store, and their ledgers on the way out."""

import re
import zlib
from typing import TYPE_CHECKING

from msgspec import Struct

from greenroom.errors import BadLedger
from greenroom.ledger.codec import json_of
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import asked_data
from greenroom.results.result import UNKNOWN_CODE, CaseResult
from greenroom.results.wire import StoredVerdict, VerdictData, to_json_types
from greenroom.store.columns import from_column
from greenroom.store.runs import Key, Row

if TYPE_CHECKING:
    from greenroom.store.contents import StoreReader

_ZLIB = b"Z"
"""The first byte of a compressed ledger. One that is not begins with its first line, a `{`."""
_SMALL = 1_000
"""Shorter ledgers stay as they are: there is little to gain."""
_BEGAN = re.compile(rb'\{"kind":"\w+","at":([\d.]+)')
_LARGEST = 1_000_000_000
"""As many bytes as SQLite takes in one place: no ledger is longer than that, whatever a row says."""


class RunLedgers:
    """The ledgers of one run on their way out: read some at a time, in the order they were kept.

    Who reads a run reads most of it, and opening the store takes longer than reading a trial.
    """

    __slots__ = ("_ahead", "_store", "run_id")

    def __init__(self, store: "StoreReader", run_id: str) -> None:
        self._store = store
        self.run_id = run_id
        self._ahead: dict[Key, bytes] = {}

    def load(self, key: Key) -> Ledger:
        """The ledger of a trial; its text is not kept."""
        packed = self._ahead.pop(key, None)
        if packed is None:
            ahead = self._store.packed_ledgers(self.run_id, key)
            packed = ahead.pop(key)
            self._ahead = ahead  # last: other threads may read as well
        return loaded(packed, self.run_id, key)


class StoredLedger(Struct, frozen=True, eq=False, gc=False):
    """A ledger that is read from the store whenever it is asked for, and not kept.

    Its text says where it is.
    """

    run: RunLedgers
    case_id: str | bytes
    """As its column has it."""
    trial: int
    size: int

    @property
    def key(self) -> Key:
        """Which trial it is of."""
        return Key(from_column(self.case_id), self.trial)

    def load(self) -> Ledger:
        """The ledger."""
        return self.run.load(self.key)

    def __str__(self) -> str:
        return f"run {self.run.run_id!r}, case {self.key.case_id!r}"


def pack(lines: bytes) -> bytes:
    """A ledger as it is kept. Level 1 makes a third of it in 46 µs; level 6 gains a tenth more."""
    return lines if len(lines) < _SMALL else _ZLIB + zlib.compress(lines, 1)


def unpacked(packed: bytes) -> bytes | None:
    """The lines of a ledger that is kept as `packed`; None if it is damaged."""
    lines = packed
    if packed[:1] == _ZLIB:
        unpacking = zlib.decompressobj()
        try:
            lines = unpacking.decompress(packed[1:], _LARGEST)
        except zlib.error:
            return None
        if not unpacking.eof:
            return None
    # Elsewhere a last line without its end is the mark of a cut; here the trial had ended.
    return lines if not lines or lines.endswith(b"\n") else None


def loaded(packed: bytes, run_id: str, key: Key) -> Ledger:
    """The ledger that is kept in the store as `packed`."""
    where = f"run {run_id!r}, case {key.case_id!r}"
    lines = unpacked(packed)
    if lines is None:
        raise BadLedger(
            f"{where}: the ledger in the store is damaged. Restore an older copy of the store."
        )
    return Ledger.loads(lines.decode(errors="replace"), where)


def row_of(
    result: CaseResult, key: Key, place: int, digest: str, ledger: bytes, judging: bytes
) -> Row:
    """A finished trial as it is kept; the case is in its ledger, if there is one."""
    verdict = VerdictData.of(result)
    if not ledger:
        verdict = StoredVerdict.of(result, case=asked_data(result))
    return Row(
        key=key,
        place=place,
        digest=digest,
        covers_code=UNKNOWN_CODE.encode() not in ledger,
        status=result.status,
        error_type=None if result.error is None else result.error.type,
        cost=result.spent,
        spent=sum(price or 0.0 for price in result.prices),
        began=float(began[1]) if (began := _BEGAN.match(ledger)) else 0.0,
        verdict=json_of(verdict, to_json_types).decode(),
        ledger=ledger,
        judging=judging,
    )
