"""The cases of one run as rows, kept up to date from the store, narrowed and sorted here.

A run may have a hundred thousand cases: the page asks for the rows it can show. Only rows are kept, not
results; a case with a new trial is read again.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from threading import Lock

import msgspec

from greenroom.reports.page.rows import case_row
from greenroom.reports.page.shapes import WORST, Query, Row, Rows, Sort
from greenroom.results.result import CaseResult
from greenroom.store import Store
from greenroom.store.runs import ASIDE

_MOST_ROWS = 500
_MOST_VIEWS = 16
_RANK = {status: rank for rank, status in enumerate(WORST)}
_KEYS: Mapping[Sort, Callable[[Row], int | float | str | None]] = {
    "status": lambda row: _RANK[row.status],
    "order": lambda row: row.place,
    "case": lambda row: row.id,
    "score": lambda row: row.score,
    "time": lambda row: row.s,
    "cost": lambda row: row.cost,
}


class RunIndex:
    """The rows of one run. Safe to use from several threads."""

    def __init__(self, store: Store, run_id: str) -> None:
        self.run_id = run_id
        self.position = -1
        self.changes: Mapping[str, str] = {}
        """Of a comparison: what became of each case."""
        self._store = store
        self._rows: dict[str, Row] = {}
        self._words: dict[str, str] = {}
        self._said: dict[str, set[str]] = {}
        self._views: dict[bytes, list[Row]] = {}
        self._lock = Lock()

    def update(self) -> int:
        """Read what was written since the last time; the position up to which everything is known."""
        with self._lock:
            _, latest = self._store.latest_position()
            if latest == self.position:
                return latest
            if self.position < 0:
                self._read_all()
            else:
                self._read_again()
            self.position = latest
            return latest

    def _read_all(self) -> None:
        found = (result for _, result in self._store.results(self.run_id))
        for place, (_, results) in enumerate(groupby(found, lambda one: one.case_id)):
            self._put(list(results), place)

    def _read_again(self) -> None:
        changed: dict[str, int] = {}
        for kept in self._store.results_after(self.run_id, self.position):
            changed[kept.key.case_id] = kept.place
        for case_id, place in changed.items():
            if place == ASIDE or not (results := self._store.results_of(self.run_id, case_id)):
                self._rows.pop(case_id, None)
            else:
                self._put(results, place)
        if changed:
            self._views.clear()

    def _put(self, results: Sequence[CaseResult], place: int) -> None:
        row = case_row(results, place)
        if change := self.changes.get(row.id, ""):
            row = msgspec.structs.replace(row, change=change)
        self._rows[row.id] = row
        self._words.pop(row.id, None)

    def refresh(self) -> None:
        """Read everything again: what became of the cases is known now."""
        with self._lock:
            self.position = -1
            self._rows.clear()
            self._views.clear()
        self.update()

    # Asking

    def all(self) -> list[Row]:
        """Every row, in the order of the run."""
        with self._lock:
            return sorted(self._rows.values(), key=lambda row: row.place)

    def row(self, case_id: str) -> Row | None:
        """The row of one case."""
        return self._rows.get(case_id)

    def rows(self, query: Query, first: int = 0, count: int = 100, around: str = "") -> Rows:
        """Some of the rows that answer a query, in its order; with `around` the row of that case alone."""
        at = self.update()
        if around:
            row = self.row(around)
            return Rows(total=1 if row else 0, rows=[row] if row else [], at=at)
        with self._lock:
            found = self._answers(query)
        first = max(first, 0)
        some = found[first : first + min(max(count, 0), _MOST_ROWS)]
        return Rows(total=len(found), rows=some, at=at)

    def _answers(self, query: Query) -> list[Row]:
        """Every row that answers a query; asked again while nothing has changed, it is known."""
        name = msgspec.json.encode(query)
        if (known := self._views.get(name)) is not None:
            return known
        terms = query.q.lower().split()
        found = [row for row in self._rows.values() if self._fits(row, query, terms)]
        found = _sorted(found, query)
        if len(self._views) >= _MOST_VIEWS:
            self._views.pop(next(iter(self._views)))
        self._views[name] = found
        return found

    def _fits(self, row: Row, query: Query, terms: Sequence[str]) -> bool:
        return (
            _any(query.status, (row.status,))
            and _any(query.tag, row.tags)
            and _any(query.metric, row.missed)
            and _any(query.change, (row.change,))
            and _at_least(query.min_s, row.s)
            and _at_least(query.min_cost, row.cost)
            and all(self._has(row, term) for term in terms)
        )

    def _has(self, row: Row, term: str) -> bool:
        words = self._words.get(row.id)
        if words is None:
            parts = [row.id, row.name, *row.tags, *(trial.why for trial in row.trials)]
            words = self._words[row.id] = "\n".join(parts).lower()
        return term in words or row.id in self._said.get(term, ())

    # Searching conversations

    def find(self, text: str) -> Iterator[float]:
        """Search what was said for each word; the share that is done, as it goes."""
        terms = [term for term in text.lower().split() if term not in self._said]
        if not terms:
            yield 1.0
            return
        found: dict[str, set[str]] = {term: set() for term in terms}
        total = max(len(self._rows), 1)
        for done, (_, result) in enumerate(self._store.results(self.run_id), 1):
            if (ledger := result.ledger_or_none) is not None:
                said = ledger.dumps().lower()
                for term, cases in found.items():
                    if term in said:
                        cases.add(result.case_id)
            if done % 200 == 0:
                self._hear(found)
                yield min(done / total, 1.0)
        self._hear(found)
        yield 1.0

    def _hear(self, found: Mapping[str, set[str]]) -> None:
        with self._lock:
            self._said |= {term: set(cases) for term, cases in found.items()}
            self._views.clear()


def _any(wanted: Collection[str], held: Collection[str]) -> bool:
    return not wanted or any(one in wanted for one in held)


def _at_least(wanted: float | None, value: float | None) -> bool:
    return wanted is None or (value is not None and value >= wanted)


def _sorted(rows: list[Row], query: Query) -> list[Row]:
    """In the order that is asked for; what is unknown comes last, what is equal stays in the run's order."""
    key = _KEYS[query.sort]
    rows.sort(key=lambda row: row.place)
    unknown = [row for row in rows if key(row) is None]
    known = [row for row in rows if key(row) is not None]
    known.sort(key=lambda row: key(row) or 0, reverse=query.down)
    return [*known, *unknown]
