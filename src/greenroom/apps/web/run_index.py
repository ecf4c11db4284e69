"""The cases of one run as rows, kept up to date from the store, narrowed and sorted here.

A run may have a hundred thousand cases: the page asks for the rows it can show. Only rows are kept, not
results; a case with a new trial is read again.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from threading import Lock

from greenroom.ledger.redaction import redactor
from greenroom.reports.page.rows import case_row
from greenroom.reports.page.shapes import WORST, Query, Row, Rows
from greenroom.results.result import CaseResult
from greenroom.store import Store
from greenroom.store.runs import ASIDE

_MOST_ROWS = 500
_MOST_VIEWS = 16


class RunIndex:
    """The rows of one run. Safe to use from several threads."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.run_id = run_id
        self.position = 0
        self._store = store
        self._rows: dict[str, Row] = {}
        self._words: dict[str, str] = {}
        self._views: dict[bytes, list[Row]] = {}
        self._lock = Lock()

    def update(self) -> int:
        """Read what was written since the last time; the position up to which everything is known."""
        with self._lock:
            _, latest = self._store.latest_position()
            if latest == self.position:
                return latest
            if self._rows:
                self._read_again(latest)
            else:
                self._read_all()
            self.position = latest
            return latest

    def _read_all(self) -> None:
        found = (result for _, result in self._store.results(self.run_id))
        for place, (case_id, results) in enumerate(groupby(found, lambda one: one.case_id)):
            self._put(case_id, list(results), place)
        self._views.clear()

    def _read_again(self, latest: int) -> None:
        changed: dict[str, int] = {}
        for kept in self._store.results_after(self.run_id, self.position):
            changed[kept.key.case_id] = kept.place
        for case_id, place in changed.items():
            if place == ASIDE or not (results := self._store.results_of(self.run_id, case_id)):
                self._rows.pop(case_id, None)
                self._words.pop(case_id, None)
            else:
                self._put(case_id, results, place)
        if changed:
            self._views.clear()

    def _put(self, case_id: str, results: Sequence[CaseResult], place: int) -> None:
        row = case_row(results, place)
        self._rows[case_id] = row
        self._words.pop(case_id, None)

    def rows(self, query: Query, first: int = 0, count: int = 100) -> Rows:
        """Some of the rows that answer a query, in its order."""
        at = self.update()
        with self._lock:
            found = self._answers(query)
        some = found[max(first, 0) : max(first, 0) + min(max(count, 0), _MOST_ROWS)]
        return Rows(total=len(found), rows=some, at=at)
