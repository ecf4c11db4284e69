"""Reading a store: its runs, their trials, and the report of each."""

from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from greenroom.errors import NotFound
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import facts_in, verdict_in
from greenroom.results.endings import EVALUATED
from greenroom.results.facts import Facts
from greenroom.results.report import UNFINISHED, Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.intervals import Tally, mean_rate
from greenroom.results.summary import Summary
from greenroom.results.words import listed
from greenroom.store.columns import from_column, to_column
from greenroom.store.cut_trials import CutTrial
from greenroom.store.database import Database, Holdable
from greenroom.store.ledgers import RunLedgers, StoredLedger, loaded
from greenroom.store.lock import under_way
from greenroom.store.results import OF_REPORT, StoredResults
from greenroom.store.runs import (
    COUNTED,
    Change,
    Kept,
    Key,
    Plan,
    ReadVerdict,
    Run,
    journal_names,
    notes_from,
    plan_from,
    verdict_of,
)

T = TypeVar("T")

_JOURNALS: Holdable = "journals"
_ALL = 2**62
_AHEAD = 64
_AHEAD_BYTES = 2_000_000
"""How many ledgers are read ahead: the next ones are usually asked for soon."""
_AT_ONCE = 1_000
"""Results of runs with fewer trials are read at once and kept: they are asked for more than once."""
_SPREAD = 10
"""The trials of a run count as stored together if they span at most this many positions each."""
_LAST = 2**63 - 1
_EVALUATED = ", ".join(map(repr, EVALUATED))
_MAY_BE_RETRIED = "error_type is not null and error_type <> 'InDoubt'"
_VERDICT = (
    "verdict, case when covers_code <> 0 then digest else '' end, case_id, trial, ledger_size"
)
"""The columns read for a trial: its verdict, the digest of its case if known, and where its ledger is."""
RUN = f"select id, status, begun, ended, seconds, plan, notes, attempt, {', '.join(COUNTED)} from runs"


class StoreReader:
    """Everything that can be read from a store; it changes nothing."""

    __slots__ = ("database",)

    def __init__(self, database: Database) -> None:
        self.database = database

    @property
    def address(self) -> str:
        """What `--store` takes to name this store: a folder, or an address without its password."""
        return self.database.address

    @property
    def place(self) -> Path:
        """The folder of the store; for a server, the one for files that belong to this machine."""
        return self.database.folder

    def runs(self, *, unfinished: bool = False, limit: int | None = None) -> list[Run]:
        """Every run, the latest first, or only the unfinished ones. No trial is read."""
        if not self.database.exists():
            return []
        wanted = " where status <> 'finished'" if unfinished else ""
        with self.database.connected() as connection:
            query = f"{RUN}{wanted} order by begun desc, id desc limit ?"
            rows = connection.execute(query, (limit or _ALL,)).fetchall()
        return self._runs(rows)

    def _runs(self, rows: Sequence[tuple[object, ...]]) -> list[Run]:
        found = [run_from(row) for row in rows]
        names = {
            run.id: journal_names(run.id, run.plan.shards)
            for run in found
            if run.status == "running"
        }
        held = self.database.held(_JOURNALS, [*chain(*names.values())]) if names else set[str]()
        return [
            replace(run, status="interrupted")  # its process died
            if run.status == "running" and held.isdisjoint(names[run.id])
            else run
            for run in found
        ]

    def changes(self, after: int = 0, limit: int = 1_000) -> list[Change]:
        """The changes written after this position, by any process, in the order of the commits.

        The position of the last one is where to ask next. If a row was written several times,
        the last writing counts.
        """
        query = (
            "select position, 'trial', run_id, case_id, trial, status from trials "
            "where position > ? union all "
            "select position, 'run', id, '', 0, status from runs where position > ? union all "
            "select position, 'deleted', run_id, '', 0, '' from deleted where position > ? "
            "order by position limit ?"
        )
        with self.database.connected() as connection:
            rows = connection.execute(query, (after, after, after, limit)).fetchall()
        return [
            Change(
                position,
                kind,
                run_id,
                Key(from_column(case_id), trial) if kind == "trial" else None,
                status,
            )
            for position, kind, run_id, case_id, trial, status in rows
        ]

    def latest_position(self) -> tuple[str, int]:
        """The id of this store, and the position of its latest change.

        Positions of a store with another id mean nothing here.
        """
        with self.database.connected() as connection:
            store_id, position = connection.execute("select id, position from store").fetchone()
        return store_id, position

    def under_way(self, run_id: str) -> list[CutTrial]:
        """The trials that a process is running now, up to their last event."""
        names = journal_names(run_id, self.run(run_id).plan.shards)
        return [cut for name in names for cut in self.database.under_way(name)]

    def run(self, given: str) -> Run:
        """The run with this id, or the only one whose id begins with it."""
        found: list[Run] = []
        if given and self.database.exists():
            with self.database.connected() as connection:
                query = f"{RUN} where substr(id, 1, ?) = ? order by begun desc, id desc"
                rows = connection.execute(query, (len(given), to_column(given))).fetchall()
            found = self._runs(rows)
        found = [run for run in found if run.id == given] or found
        if len(found) == 1:
            return found[0]
        if found:
            ids = listed([run.id for run in found])
            raise NotFound(
                f"the ids of several runs begin with {given!r}: {ids}. Give more of the id."
            )
        raise NotFound(
            f"there is no run {given!r} in {self.address}. `greenroom runs list` shows what is there."
        )

    def latest_open(self, plan: Plan, *, errors: bool = False) -> Run:
        """The latest run of this set that is not finished; with `errors`, also one with errors that can be retried."""
        wanted = (plan.evalset_id, plan.name)
        runs = [run for run in self.runs() if (run.plan.evalset_id, run.plan.name) == wanted]
        for run in runs:
            if run.status == "interrupted" or (errors and self.has_errors(run)):
                return run
        for run in runs:
            if run.status == "running":
                raise under_way(run.id)
        wish = "unfinished, or has an error that can be retried" if errors else "unfinished"
        raise NotFound(
            f"no run of {plan.name or plan.evalset_id or 'this set'!r} in {self.address} is "
            f"{wish}. `greenroom runs list` shows what is there; leave out --resume to start a new run."
        )

    def latest_called(self, name: str, plan: Plan) -> Run | None:
        """The latest run of this set with this name, if it is not finished; StoreFailed if it is running."""
        wanted = (name, plan.evalset_id, plan.name)
        for run in self.runs(unfinished=True):
            if (run.plan.called, run.plan.evalset_id, run.plan.name) == wanted:
                if run.status == "running":
                    raise under_way(run.id)
                return run
        return None

    def has_errors(self, run: Run) -> bool:
        """Whether a run that is not running has trials that ended in an error and may be retried."""
        if run.status == "running":
            return False
        query = f"select 1 from trials where run_id = ? and {_MAY_BE_RETRIED} limit 1"
        with self.database.connected() as connection:
            return connection.execute(query, (run.id,)).fetchone() is not None

    def keys(self, run_id: str, *, broken: bool = True) -> dict[Key, str]:
        """The finished trials of a run, each with the digest of its case; including those set aside.

        `broken=False` leaves those out that ended in an error, except where a real tool may act
        twice if they run again.
        """
        query = "select case_id, trial, digest from trials where run_id = ?"
        with self.database.connected() as connection:
            rows = connection.execute(
                query if broken else f"{query} and not ({_MAY_BE_RETRIED})", (run_id,)
            )
            return {Key(from_column(case_id), trial): digest for case_id, trial, digest in rows}

    def spent(self, run_id: str) -> tuple[float, float]:
        """The cost of a run in USD so far, and of its most expensive trial, including replaced trials."""
        # What format 1 knew of replaced trials is one sum, as trial 0.
        query = (
            "select coalesce(sum(usd), 0.0), coalesce(max(case when trial > 0 then usd end), 0.0) "
            "from spending where run_id = ?"
        )
        with self.database.connected() as connection:
            spent, dearest = connection.execute(query, (run_id,)).fetchone()
        return spent, dearest

    def tallies(self, run: Run) -> list[Tally]:
        """How many trials of each case passed, of how many evaluated; cases without an evaluated trial are left out."""
        query = (
            "select passed, evaluated, count(*) from ("
            "select sum(case when status = 'passed' then 1 else 0 end) as passed, count(*) as evaluated "
            f"from trials where run_id = ? and {OF_REPORT} "
            f"and status in ({_EVALUATED}) group by case_id"
            ") as cases group by passed, evaluated"
        )
        with self.database.connected() as connection:
            rows = connection.execute(query, (run.id, run.plan.trials, _LAST)).fetchall()
        return [(passed, count) for passed, count, cases in rows for _ in range(cases)]

    def pass_rate(self, run: Run) -> float | None:
        """The pass rate of a run, as its report has it: each case counts once; None if nothing was evaluated."""
        counts = Summary.of(run.done, run.counts)
        if run.plan.trials == 1 or counts.pass_rate is None:  # the sums of the run are enough
            return counts.pass_rate
        return mean_rate(self.tallies(run))

    def costs(self, run_id: str) -> list[tuple[Key, float | None]]:
        """What each trial of a run cost in USD; None if a price is unknown."""
        query = "select case_id, trial, cost from trials where run_id = ? and place >= 0"
        with self.database.connected() as connection:
            rows = connection.execute(query, (run_id,)).fetchall()
        return [(Key(from_column(case_id), trial), cost) for case_id, trial, cost in rows]

    def results(self, run_id: str) -> Iterator[tuple[Key, CaseResult]]:
        """The results of a run in the order of its cases; ledgers are read when they are asked for."""
        for kept in self._kept(run_id, "place >= 0 order by place, trial"):
            yield kept.key, kept.result

    def facts(self, run_id: str, wanted: str = "place >= 0", *values: object) -> Iterator[Facts]:
        """The facts of a run's trials, for figures and lists, in a fraction of the time."""
        ledgers = RunLedgers(self, run_id)
        query = f"select {_VERDICT} from trials where {self.found_by(run_id)} and {wanted} order by place, trial"
        with self.database.connected() as connection:
            rows = connection.stream(query, (run_id, *values))
            for verdict, asks, case_id, trial, size in rows:
                ledger = StoredLedger(ledgers, case_id, trial, size)
                yield verdict_of(facts_in, verdict, ledger, asks)

    def found_by(self, run_id: str) -> str:
        """The SQL condition that finds all trials of a run: by position, if they are stored together.

        By its id alone they are found in the order of their cases, each in another place of the table,
        which takes twice as long for a large run.
        """
        query = "select count(*), min(position), max(position) from trials where run_id = ?"
        with self.database.connected() as connection:
            count, first, last = connection.execute(query, (run_id,)).fetchone()
        if not count or last - first > _SPREAD * count:
            return "run_id = ?"
        # The id is concatenated so that SQLite does not use its index.
        return f"position between {first} and {last} and run_id || '' = ?"

    def results_after(self, run_id: str, position: int) -> Iterator[Kept]:
        """The trials of a run stored after this position, in that order, including those set aside."""
        return self._kept(run_id, "position > ? order by position", position)

    def results_of(
        self, run_id: str, case_id: str, ledgers: RunLedgers | None = None
    ) -> list[CaseResult]:
        """The trials of one case. To read several cases, pass the same `ledgers` each time."""
        wanted = "case_id = ? and place >= 0 order by trial"
        rows = self.trials(verdict_in, run_id, wanted, to_column(case_id), ledgers=ledgers)
        return [result for *_, result in rows]

    def _kept(self, run_id: str, wanted: str, *values: object) -> Iterator[Kept]:
        for found in self.trials(verdict_in, run_id, wanted, *values):
            yield Kept(*found)

    def trials(
        self,
        read: ReadVerdict[T],
        run_id: str,
        wanted: str,
        *values: object,
        ledgers: RunLedgers | None = None,
    ) -> Iterator[tuple[int, int, Key, T]]:
        """Position, place and key of the trials that are `wanted`, and what was read from their verdicts."""
        ledgers = ledgers or RunLedgers(self, run_id)
        query = f"select position, place, {_VERDICT} from trials where run_id = ? and {wanted}"
        with self.database.connected() as connection:
            rows = connection.stream(query, (run_id, *values))
            for position, place, verdict, asks, case_id, trial, size in rows:
                ledger = StoredLedger(ledgers, case_id, trial, size)
                yield position, place, ledger.key, verdict_of(read, verdict, ledger, asks)

    def report(self, given: str) -> Report:
        """The report of a run so far. The results of a large run are read when they are asked for."""
        run = self.run(given)
        results = self._results(run)
        again = self._kept(
            run.id, "place >= 0 and trial > ? order by place, trial", run.plan.trials
        )
        confirmed = [kept.result for kept in again]
        return Report(
            list(results) if len(results) <= _AT_ONCE else results,
            run.plan.name,
            run.seconds,
            [*run.notes, *_unfinished(run)],
            id=run.id,
            evalset_id=run.plan.evalset_id,
            at=run.begun,
            adaptive=run.plan.adaptive,
            confirmed=tuple(confirmed),
            against=run.plan.against if run.plan.confirm else None,
            measures=run.plan.metrics,
        )

    def _results(self, run: Run) -> StoredResults:
        """The results of a run as they are now."""
        query = (
            "select count(*), coalesce(max(position), 0) from trials "
            f"where {self.found_by(run.id)} and {OF_REPORT}"
        )
        with self.database.connected() as connection:
            count, latest = connection.execute(query, (run.id, run.plan.trials, _LAST)).fetchone()
        return StoredResults(self, run.id, run.plan.trials, latest, count)

    def packed_ledgers(self, run_id: str, key: Key) -> dict[Key, bytes]:
        """The ledger of a finished trial as it is stored, and some of those stored next."""
        query = (
            # The id is concatenated so that SQLite does not scan the whole run for each part.
            "with asked (first) as "
            "(select position from trials where run_id = ? and case_id = ? and trial = ?) "
            "select case_id, trial, ledger from asked join trials on position between first "
            f"and first + {_AHEAD} where run_id || '' = ? order by position"
        )
        found: dict[Key, bytes] = {}
        room = _AHEAD_BYTES
        with self.database.connected() as connection:
            given = run_id, to_column(key.case_id), key.trial, run_id
            for case_id, trial, packed in connection.stream(query, given):
                stored = self.database.fetched(bytes(packed))
                found[Key(from_column(case_id), trial)] = stored
                room -= len(stored)
                if room <= 0:
                    break
        if key not in found:
            raise _missing(run_id, key)
        return found

    def ledger(
        self, run_id: str, key: Key, column: Literal["ledger", "judging"] = "ledger"
    ) -> Ledger:
        """The ledger of a finished trial, or with `judging` the ledger of its metrics."""
        with self.database.connected() as connection:
            query = f"select {column} from trials where run_id = ? and case_id = ? and trial = ?"
            found = connection.execute(
                query, (run_id, to_column(key.case_id), key.trial)
            ).fetchone()
        if found is None:
            raise _missing(run_id, key)
        return loaded(self.database.fetched(bytes(found[0])), run_id, key)


def run_from(row: tuple[Any, ...]) -> Run:
    run_id, status, begun, ended, seconds, plan, notes, attempt, *sums, cost = row
    *counts, again, unpriced = sums
    return Run(
        id=run_id,
        plan=plan_from(plan),
        status=status,
        begun=begun,
        ended=ended,
        seconds=seconds,
        notes=notes_from(notes),
        counts={name: count for name, count in zip(COUNTED, counts, strict=False) if count},
        again=again,
        cost=None if unpriced else cost,
        attempt=attempt,
    )


def _missing(run_id: str, key: Key) -> NotFound:
    return NotFound(f"run {run_id!r} no longer has trial {key.trial} of case {key.case_id!r}.")


def _unfinished(run: Run) -> list[str]:
    if run.done >= run.total:
        if run.plan.confirm and run.status != "finished":
            return [f"{UNFINISHED}: cases that fail may have to run again"]
        return []
    return [f"{UNFINISHED}: {run.done} of {run.total} trials are done"]
