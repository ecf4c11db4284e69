"""Reads the results of a large run from the store."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, TypeVar

from greenroom.errors import NotFound
from greenroom.results.data import verdict_in
from greenroom.results.facts import Facts
from greenroom.results.result import CaseResult
from greenroom.results.stored_results import ReadResults
from greenroom.store.ledgers import RunLedgers

if TYPE_CHECKING:
    from greenroom.store.contents import StoreReader

T = TypeVar("T")

OF_REPORT = "place >= 0 and trial <= ? and position <= ?"
"""The trials that a report has: not those that were set aside, ran again, or were written later."""


class StoredResults(ReadResults):
    """The results that a run had at one moment; `latest` is the position of the last one."""

    def __init__(
        self, store: "StoreReader", run_id: str, trials: int, latest: int, count: int
    ) -> None:
        self._store, self._run_id, self._count = store, run_id, count
        self._asked = trials, latest
        # Shared by all cases that are asked for by name: each reader holds some ledgers in advance.
        self._ledgers = RunLedgers(store, run_id)

    def __len__(self) -> int:
        return self._count

    def read(self, first: int = 0, count: int | None = None) -> Iterator[CaseResult]:
        """This many results, from this one on."""
        wanted = f"{OF_REPORT} order by place, trial limit ? offset ?"
        most = self._count - first if count is None else count
        rows = self._store.trials(verdict_in, self._run_id, wanted, *self._asked, most, first)
        yield from self._whole((result for *_, result in rows), most)

    def facts(self) -> Iterator[Facts]:
        """The facts of all results."""
        rows = self._store.facts(self._run_id, OF_REPORT, *self._asked)
        yield from self._whole(rows, self._count)

    def of_case(self, case_id: str) -> list[CaseResult]:
        """The trials of one case."""
        trials, _ = self._asked
        found = self._store.results_of(self._run_id, case_id, self._ledgers)
        return [result for result in found if result.trial <= trials]

    def _whole(self, rows: Iterator[T], count: int) -> Iterator[T]:
        """The rows, if none is missing: half a run says nothing about the whole."""
        for row in rows:
            count -= 1
            yield row
        if count > 0:
            raise changed(self._run_id)


def changed(run_id: str) -> NotFound:
    """The error for a reader whose results no longer exist."""
    return NotFound(
        f"run {run_id!r} has changed while it was read: trials ran again, or it was deleted. Read its "
        f"report again."
    )
