"""The cases of one run as rows, kept up to date from the store, narrowed and sorted here.

A run may have a hundred thousand cases: the page asks for the rows it can show. Only rows are kept, not
results; a case with a new trial is read again.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import groupby
from operator import attrgetter
from threading import Lock

import msgspec

from greenroom.reports.page.head import CaseCounts
from greenroom.reports.page.rows import case_row
from greenroom.reports.page.shapes import WORST, Query, Row, Rows, Sort
from greenroom.results.facts import Facts
from greenroom.results.report import Report
from greenroom.results.totals import Totals
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
        """The position up to which the store has been read."""
        self.changed_at = -1
        """The position at which this run last changed; other runs may have changed since."""
        self.read = 0
        """How many trials have been read so far, while all of them are being read."""
        self.is_marked = False
        """Whether the rows say how each case changed since another run."""
        self._store = store
        self._rows: dict[str, Row] = {}
        self._changes: Mapping[str, str] = {}
        self._counted: tuple[int, Report, CaseCounts] | None = None
        self._words: dict[str, str] = {}
        self._said: dict[str, set[str]] = {}
        self._views: dict[bytes, list[Row]] = {}
        self._lock = Lock()

    def update(self) -> int:
        """Read what was written since the last time; returns the position at which the run last changed."""
        with self._lock:
            _, latest = self._store.latest_position()
            if latest != self.position:
                if self.position < 0:
                    self._read_all(latest)
                else:
                    self._read_again(latest)
                self.position = latest
            return self.changed_at

    def counted(self) -> tuple[Report, CaseCounts]:
        """The report of the run and the other counts of its head, all from one reading."""
        self.update()
        with self._lock:
            if self._counted is None or self._counted[0] != self.changed_at:
                self._read_all(self.position)
            assert self._counted is not None
            return self._counted[1:]

    def _read_all(self, latest: int) -> None:
        """Read every trial once: for the rows, and for all that is counted."""
        report, trials = self._store.report(self.run_id), self._store.run(self.run_id).plan.trials
        totals, counts = Totals(), CaseCounts()
        self._rows.clear()
        self.read = 0
        found = groupby(self._store.facts(self.run_id), attrgetter("case_id"))
        for place, (_, case) in enumerate(found):
            results = list(case)
            self.read += len(results)
            counts.add_row(self._put(results, place))
            # Those that ran again are listed, and count in the cost only.
            if planned := [result for result in results if result.trial <= trials]:
                totals.add_case(planned)
                counts.add_trials(planned)
        report.keep_totals(totals.paid_again(report))
        self._counted = latest, report, counts
        self.changed_at = latest
        self._views.clear()

    def _read_again(self, latest: int) -> None:
        changed: dict[str, int] = {}
        for kept in self._store.results_after(self.run_id, self.position):
            changed[kept.key.case_id] = kept.place
        for case_id, place in changed.items():
            if place == ASIDE or not (results := self._store.results_of(self.run_id, case_id)):
                self._rows.pop(case_id, None)
            else:
                self._put(results, place)
        if changed:
            self.changed_at = latest
            self._views.clear()

    def _put(self, results: Sequence[Facts], place: int) -> Row:
        case_id = results[0].case_id
        row = case_row(results, place, change=self._changes.get(case_id, ""))
        self._rows[case_id] = row
        self._words.pop(case_id, None)
        return row

    def copy(self) -> "RunIndex":
        """A copy of the rows, to be marked with what became of each case."""
        self.update()
        made = RunIndex(self._store, self.run_id)
        with self._lock:
            made.position, made.changed_at = self.position, self.changed_at
            made._counted = self._counted
            made._rows = {name: msgspec.structs.replace(row) for name, row in self._rows.items()}
        return made

    def mark(self, changes: Mapping[str, str]) -> Counter[str]:
        """Mark each case with how it changed; returns how often each change occurs."""
        with self._lock:
            self._changes, self.is_marked = changes, True
            for row in self._rows.values():
                row.change = changes.get(row.id, "")
            self._views.clear()
            return Counter(row.change for row in self._rows.values() if row.change)

    # Asking

    def rows(self, query: Query, first: int = 0, count: int = 100, around: str = "") -> Rows:
        """Some of the rows that answer a query, in its order; with `around` those around that case."""
        self.update()
        with self._lock:
            found, at = self._answers(query), self.position
        count, place = min(max(count, 1), _MOST_ROWS), -1
        if around in self._rows:
            place = next((n for n, row in enumerate(found) if row.id == around), -1)
        first = max(first, 0) if place < 0 else place // count * count
        some = found[first : first + count]
        return Rows(total=len(found), rows=some, first=first, place=place, at=at)

    def _answers(self, query: Query) -> list[Row]:
        """Every row that matches a query; cached until something changes."""
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
        """Search what was said for each word; yields the share that is done."""
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
