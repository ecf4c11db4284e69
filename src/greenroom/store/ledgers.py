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
"""The first byte of a compressed ledger. One that is not compressed begins with its first line, a `{`."""
_SMALL = 1_000
"""Shorter ledgers are not compressed: there is little to gain."""
_BEGAN = re.compile(rb'\{"kind":"\w+","at":([\d.]+)')
_LARGEST = 1_000_000_000
"""SQLite's limit for one value: no ledger is longer, whatever a row says."""


class RunLedgers:
    """Reads the ledgers of one run, some at a time, in the order they were stored.

    A reader of a run reads most of it, and opening the store takes longer than reading a trial.
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
            self._ahead = ahead  # set last: other threads may read as well
        return loaded(packed, self.run_id, key)


class StoredLedger(Struct, frozen=True, eq=False, gc=False):
    """A ledger that is read from the store each time it is asked for, and not kept in memory.

    `str()` of it says where it is.
    """

    run: RunLedgers
    case_id: str | bytes
    """The case id as its column stores it."""
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
    """A ledger as it is stored. Level 1 shrinks it to a third in 46 µs; level 6 gains a tenth more."""
    return lines if len(lines) < _SMALL else _ZLIB + zlib.compress(lines, 1)


def unpacked(packed: bytes) -> bytes | None:
    """The lines of a ledger stored as `packed`; None if it is damaged."""
    lines = packed
    if packed[:1] == _ZLIB:
        unpacking = zlib.decompressobj()
        try:
            lines = unpacking.decompress(packed[1:], _LARGEST)
        except zlib.error:
            return None
        if not unpacking.eof:
            return None
    # Elsewhere a last line without its end means an interruption; here the trial had ended.
    return lines if not lines or lines.endswith(b"\n") else None


def loaded(packed: bytes, run_id: str, key: Key) -> Ledger:
    """The ledger stored as `packed`."""
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
    """A finished trial as it is stored; the case is in its ledger, if there is one."""
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
