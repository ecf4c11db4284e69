"""Finished trials on their way into the store, and their ledgers on the way out."""

from typing import TYPE_CHECKING

from greenroom.ledger.codec import json_of
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import asked_data, verdict_data
from greenroom.results.result import CaseResult
from greenroom.store.runs import Key, Row

if TYPE_CHECKING:
    from greenroom.store.store import Store


class Shelved:
    """A ledger that is read from the store when somebody asks for it, and not kept."""

    __slots__ = ("key", "run_id", "store")

    def __init__(self, store: "Store", run_id: str, key: Key) -> None:
        self.store = store
        self.run_id = run_id
        self.key = key

    def load(self) -> Ledger:
        """The ledger."""
        return self.store.ledger(self.run_id, self.key)


def row_of(
    result: CaseResult, key: Key, position: int, digest: str, ledger: bytes, judging: bytes
) -> Row:
    """A finished trial as it is kept; the case is in its ledger, if there is one."""
    verdict = verdict_data(result)
    if not ledger:
        verdict["case"] = asked_data(result)
    return Row(
        key=key,
        position=position,
        digest=digest,
        status=result.status,
        verdict=json_of(verdict).decode(),
        ledger=ledger,
        judging=judging,
    )
