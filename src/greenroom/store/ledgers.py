"""Finished trials on their way into the store, and their ledgers on the way out."""

from typing import TYPE_CHECKING

from greenroom.errors import BadLedger
from greenroom.ledger.codec import json_of
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import asked_data
from greenroom.results.result import CaseResult
from greenroom.results.wire import StoredVerdict, VerdictData, to_json_types
from greenroom.store.runs import Key, Row

if TYPE_CHECKING:
    from greenroom.store.store import Store


class RunLedgers:
    """The ledgers of one run on their way out: read some at a time, in the order they were kept.

    Who reads a run reads most of it, and opening the store takes longer than reading a trial.
    """

    __slots__ = ("_ahead", "_run_id", "_store")

    def __init__(self, store: "Store", run_id: str) -> None:
        self._store = store
        self._run_id = run_id
        self._ahead: dict[Key, bytes] = {}

    def load(self, key: Key) -> Ledger:
        """The ledger of a trial; its text is not kept."""
        text = self._ahead.pop(key, None)
        if text is None:
            self._ahead = self._store.ledger_texts(self._run_id, key)
            text = self._ahead.pop(key)
        return loaded(text, self._run_id, key)


class StoredLedger:
    """A ledger that is read from the store when somebody asks for it, and not kept."""

    __slots__ = ("_run", "key", "size")

    def __init__(self, run: RunLedgers, key: Key, size: int) -> None:
        self._run = run
        self.key = key
        self.size = size

    def load(self) -> Ledger:
        """The ledger."""
        return self._run.load(self.key)


def loaded(text: bytes, run_id: str, key: Key) -> Ledger:
    """The ledger that the store has as this text."""
    where = f"run {run_id!r}, case {key.case_id!r}"
    if text and not text.endswith(b"\n"):  # elsewhere that is how a run was cut; here it had ended
        raise BadLedger(
            f"{where}: the ledger in the store is torn. Bring back an older copy of it."
        )
    return Ledger.loads(text.decode(errors="replace"), where)


def row_of(
    result: CaseResult, key: Key, position: int, digest: str, ledger: bytes, judging: bytes
) -> Row:
    """A finished trial as it is kept; the case is in its ledger, if there is one."""
    verdict = VerdictData.of(result)
    if not ledger:
        verdict = StoredVerdict.of(result, case=asked_data(result))
    return Row(
        key=key,
        position=position,
        digest=digest,
        status=result.status,
        verdict=json_of(verdict, to_json_types).decode(),
        ledger=ledger,
        judging=judging,
    )
