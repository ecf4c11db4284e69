"""The local store: runs and their finished trials, in `.greenroom/runs.db`."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import urandom
from pathlib import Path
from time import strftime, time
from typing import Any, Literal

from greenroom.errors import NotFound
from greenroom.ledger.blobs import FOLDER, BlobFolder
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import verdict_from
from greenroom.results.report import UNFINISHED, Report
from greenroom.results.result import CaseResult
from greenroom.store.cut_trials import CutTrial, being_written
from greenroom.store.database import JOURNALS, Database, transaction
from greenroom.store.failpoints import failpoint
from greenroom.store.journal import Journal
from greenroom.store.ledgers import RunLedgers, StoredLedger, loaded
from greenroom.store.lock import is_held, under_way
from greenroom.store.rows import (
    from_column,
    next_position,
    planned,
    put_spending,
    put_sums,
    put_trials,
    read_sums,
    to_column,
)
from greenroom.store.runs import (
    ASIDE,
    COUNTED,
    Change,
    Kept,
    Key,
    Plan,
    Row,
    Run,
    RunStatus,
    notes_from,
    plan_from,
    tally,
    verdict_json,
)
from greenroom.store.unmentioned import remove_unmentioned

PLACE = ".greenroom"
PLACE_VARIABLE = "GREENROOM_STORE"
_OFF = "off"
_DATABASE = "runs.db"
_AHEAD = 64
_AHEAD_BYTES = 2_000_000
"""So many ledgers are read together with the one that is asked for: the next will be soon."""
_MAY_BE_RETRIED = "error_type is not null and error_type <> 'InDoubt'"
_RUN = f"select id, status, begun, ended, seconds, plan, notes, attempt, {', '.join(COUNTED)} from runs"


def default_store() -> "Store | None":
    """`$GREENROOM_STORE`, else `.greenroom`; None if the variable says `off`."""
    return as_store(os.environ.get(PLACE_VARIABLE) or PLACE)


def as_store(given: "Store | str | Path | bool | None") -> "Store | None":
    """The store that is meant: this one, that of a folder, or the usual one if none is named.

    False and `off` mean none.
    """
    if given is None or given is True or given == "":
        return default_store()
    if given is False or given == _OFF:
        return None
    return given if isinstance(given, Store) else Store(given)


class Store:
    """Runs remembered in a folder: a database of what is finished, a journal of what is not."""

    __slots__ = ("blobs", "database", "place")

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place).absolute()
        self.database = Database(self.place / _DATABASE)
        self.blobs = BlobFolder(self.place / FOLDER)
        """The bytes of attachments that ledgers mention."""

    def __repr__(self) -> str:
        return f"Store({str(self.place)!r})"

    # Writing

    def begin(self, plan: Plan, connection: sqlite3.Connection) -> Run:
        """Remember a run before its first trial."""
        run = Run(id=_new_id(), plan=plan, status="running", begun=time())
        with transaction(connection):
            while connection.execute("select 1 from runs where id = ?", (run.id,)).fetchone():
                run = replace(run, id=_new_id())
            connection.execute(
                "insert into runs (id, position, status, begun, "
                "name, evalset_id, agent, agent_digest, set_digest, plan) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (run.id, next_position(connection), run.status, run.begun, *planned(plan)),
            )
        failpoint("run.begun")
        return run

    def resume(
        self, run: Run, plan: Plan, places: Mapping[Key, int], connection: sqlite3.Connection
    ) -> Run:
        """Remember that a run is resumed, as it is planned now; trials without a place are set aside."""
        with transaction(connection):
            query = (
                "select position, case_id, trial, status, place, cost from trials where run_id = ?"
            )
            counted: list[tuple[str, int, int, float | None]] = []
            moved: list[tuple[int, int]] = []
            rows = connection.execute(query, (run.id,))
            for position, case_id, trial, status, before, cost in rows:
                place = places.get(Key(from_column(case_id), trial), ASIDE)
                counted.append((status, place, trial, cost))
                if place != before:
                    moved.append((place, position))
            first = next_position(connection, len(moved) + 1)
            connection.executemany(
                "update trials set place = ?, position = ? where position = ?",
                [(place, first + n, before) for n, (place, before) in enumerate(moved)],
            )
            connection.execute(
                "update runs set status = 'running', ended = null, attempt = attempt + 1, "
                "name = ?, evalset_id = ?, agent = ?, agent_digest = ?, set_digest = ?, plan = ? "
                "where id = ?",
                (*planned(plan), run.id),
            )
            put_sums(run.id, tally(plan, counted), first + len(moved), connection)
            query = "select attempt from runs where id = ?"
            [attempt] = connection.execute(query, (run.id,)).fetchone()
        return replace(
            run, plan=plan, status="running", ended=None, attempt=attempt, begun_before=True
        )

    def add(self, run: Run, rows: Sequence[Row], connection: sqlite3.Connection) -> None:
        """Keep finished trials; they are on disk when this returns. The last row of a trial counts."""
        failpoint("commit.before")
        for row in rows:
            for written in (row.verdict, row.ledger, row.judging):
                self.blobs.keep_mentioned(written)
        latest = {row.key: row for row in rows}.values()
        with transaction(connection):
            sums = read_sums(run, connection)
            position = next_position(connection, len(latest) + 1)
            change = put_trials(run, latest, position, connection)
            put_spending(run.id, rows, connection)
            now = {name: sums[name] + change[name] for name in sums}
            put_sums(run.id, now, position + len(latest), connection)
            failpoint("commit.inside")
        failpoint("commit.after")

    def close(
        self,
        run: Run,
        status: RunStatus,
        notes: Iterable[str],
        seconds: float,
        connection: sqlite3.Connection,
    ) -> None:
        """Remember how a run ended, for now or for good."""
        failpoint("run.closing")
        with transaction(connection):
            read_sums(run, connection)  # refuses if the run is another process's now
            connection.execute(
                "update runs set position = ?, status = ?, ended = ?, seconds = ?, notes = ? "
                "where id = ?",
                (
                    next_position(connection),
                    status,
                    time(),
                    seconds,
                    json.dumps(list(notes)),
                    run.id,
                ),
            )
        # A connection does not notice that the file was overwritten after it has read it; a new one does.
        with self.database.connected() as another:
            another.execute("select count(*) from trials where run_id = ?", (run.id,)).fetchone()

    def delete(self, *ids: str) -> None:
        """Forget runs with all their trials, and the bytes of attachments that no other mentions."""
        found = [self.run(given).id for given in ids]
        with self.database.connected(to_write=True) as connection:
            for run_id in found:
                journal = self.journal(run_id)  # refuses while the run is under way
                with transaction(connection):
                    for table in ("trials", "spending"):
                        connection.execute(f"delete from {table} where run_id = ?", (run_id,))
                    connection.execute("delete from runs where id = ?", (run_id,))
                    connection.execute(
                        "insert into deleted values (?, ?) "
                        "on conflict (run_id) do update set position = excluded.position",
                        (run_id, next_position(connection)),
                    )
                journal.close(remove=True)
            self.database.shrink(connection)
        remove_unmentioned(self.database)

    def journal(self, run_id: str) -> Journal:
        """The journal of a run; StoreFailed while another process holds it."""
        return Journal(self._folder(run_id), self.blobs)

    # Reading

    def runs(self, *, unfinished: bool = False) -> list[Run]:
        """Every run, the latest first, or those that have not come to their end. No trial is read."""
        if not self.database.path.exists():
            return []
        wanted = " where status <> 'finished'" if unfinished else ""
        with self.database.connected() as connection:
            rows = connection.execute(f"{_RUN}{wanted} order by begun desc, id desc").fetchall()
        return list(map(self._run, rows))

    def _run(self, row: tuple[Any, ...]) -> Run:
        run_id, status, begun, ended, seconds, plan, notes, attempt, *sums, cost = row
        *counts, again, unpriced = sums
        if status == "running" and not is_held(self._folder(run_id)):
            status = "interrupted"  # its process died
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

    def changes(self, after: int = 0, limit: int = 1_000) -> list[Change]:
        """What was written after this position, by any process, in the order of the commits.

        The position of the last one is where to ask next. Of a row that was written several times
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
        """The trials that a process has under way now, up to their last event."""
        return being_written(self._folder(run_id))

    def _folder(self, run_id: str) -> Path:
        return self.place / JOURNALS / run_id

    def run(self, given: str) -> Run:
        """The run with this id, or the only one whose id begins so."""
        found: list[Run] = []
        if given and self.database.path.exists():
            with self.database.connected() as connection:
                query = f"{_RUN} where substr(id, 1, ?) = ? order by begun desc, id desc"
                rows = connection.execute(query, (len(given), to_column(given))).fetchall()
            found = list(map(self._run, rows))
        found = [run for run in found if run.id == given] or found
        if len(found) == 1:
            return found[0]
        if found:
            ids = ", ".join(run.id for run in found)
            raise NotFound(f"several runs begin with {given!r}: {ids}. Give more of its id.")
        raise NotFound(
            f"there is no run {given!r} in {self.place}. `greenroom runs list` shows what is there."
        )

    def latest_open(self, plan: Plan, *, errors: bool = False) -> Run:
        """The latest run of this set that is not finished; with `errors`, or that can retry some."""
        wanted = (plan.evalset_id, plan.name)
        runs = [run for run in self.runs() if (run.plan.evalset_id, run.plan.name) == wanted]
        for run in runs:
            if run.status == "interrupted" or (errors and self.has_errors(run)):
                return run
        for run in runs:
            if run.status == "running":
                raise under_way(run.id)
        wish = "unfinished, or has an error that can be tried again" if errors else "unfinished"
        raise NotFound(
            f"no run of {plan.name or plan.evalset_id or 'this set'!r} in {self.place} is "
            f"{wish}. `greenroom runs list` shows what is there; leave --resume out to begin one."
        )

    def has_errors(self, run: Run) -> bool:
        """Whether a run that is not under way has trials that ended in an error and may be retried."""
        if run.status == "running":
            return False
        query = f"select 1 from trials where run_id = ? and {_MAY_BE_RETRIED} limit 1"
        with self.database.connected() as connection:
            return connection.execute(query, (run.id,)).fetchone() is not None

    def keys(self, run_id: str, *, broken: bool = True) -> dict[Key, str]:
        """The finished trials of a run, each with the digest of its case; those set aside too.

        `broken=False` leaves those out that ended in an error, but not where a real tool may act
        twice if they run again.
        """
        query = "select case_id, trial, digest from trials where run_id = ?"
        with self.database.connected() as connection:
            rows = connection.execute(
                query if broken else f"{query} and not ({_MAY_BE_RETRIED})", (run_id,)
            )
            return {Key(from_column(case_id), trial): digest for case_id, trial, digest in rows}

    def spent(self, run_id: str) -> tuple[float, float]:
        """What a run has cost in USD so far, and its dearest trial; those that were replaced too."""
        # What format 1 knew of replaced trials is one sum, as trial 0.
        query = (
            "select coalesce(sum(usd), 0.0), coalesce(max(case when trial > 0 then usd end), 0.0) "
            "from spending where run_id = ?"
        )
        with self.database.connected() as connection:
            spent, dearest = connection.execute(query, (run_id,)).fetchone()
        return spent, dearest

    def costs(self, run_id: str) -> list[tuple[Key, float | None]]:
        """What each trial of a run cost in USD; None if a price is unknown."""
        query = "select case_id, trial, cost from trials where run_id = ? and place >= 0"
        with self.database.connected() as connection:
            rows = connection.execute(query, (run_id,)).fetchall()
        return [(Key(from_column(case_id), trial), cost) for case_id, trial, cost in rows]

    def results(self, run_id: str) -> Iterator[tuple[Key, CaseResult]]:
        """The results of a run in the order of its cases; their ledgers are read when asked for."""
        for kept in self._kept(run_id, "place >= 0 order by place, trial"):
            yield kept.key, kept.result

    def results_after(self, run_id: str, position: int) -> Iterator[Kept]:
        """What was kept of a run after this position, as it was written; trials set aside too."""
        return self._kept(run_id, "position > ? order by position", position)

    def results_of(self, run_id: str, case_id: str) -> list[CaseResult]:
        """The trials of one case."""
        wanted = "case_id = ? and place >= 0 order by trial"
        return [kept.result for kept in self._kept(run_id, wanted, to_column(case_id))]

    def _kept(self, run_id: str, wanted: str, *values: object) -> Iterator[Kept]:
        ledgers = RunLedgers(self, run_id)
        query = (
            "select position, place, case_id, trial, verdict, ledger_size, digest, covers_code "
            f"from trials where run_id = ? and {wanted}"
        )
        with self.database.connected() as connection:
            rows = connection.execute(query, (run_id, *values))
            for position, place, case_id, trial, verdict, size, digest, covers_code in rows:
                key = Key(from_column(case_id), trial)
                ledger = StoredLedger(ledgers, key, size) if size else None
                where = f"run {run_id!r}, case {key.case_id!r}"
                asks = digest if covers_code else ""
                result = verdict_from(verdict_json(verdict, where), where, ledger, asks)
                yield Kept(position, place, key, result)

    def report(self, given: str) -> Report:
        """What a run has come to so far."""
        run = self.run(given)
        results, confirmed = list[CaseResult](), list[CaseResult]()
        for key, result in self.results(run.id):
            (results if key.trial <= run.plan.trials else confirmed).append(result)
        return Report(
            results,
            run.plan.name,
            run.seconds,
            [*run.notes, *_unfinished(run)],
            id=run.id,
            evalset_id=run.plan.evalset_id,
            at=run.begun,
            adaptive=run.plan.adaptive,
            confirmed=tuple(confirmed),
            against=run.plan.against,
        )

    def packed_ledgers(self, run_id: str, key: Key) -> dict[Key, bytes]:
        """The ledger of a finished trial as it is kept, and some of those that were kept next."""
        query = (
            # The plus keeps SQLite from looking at the whole run for each of its parts.
            "with asked (first) as "
            "(select position from trials where run_id = ? and case_id = ? and trial = ?) "
            "select case_id, trial, ledger from asked join trials on position between first "
            f"and first + {_AHEAD} where +run_id = ? order by position"
        )
        found: dict[Key, bytes] = {}
        room = _AHEAD_BYTES
        with self.database.connected() as connection:
            given = run_id, to_column(key.case_id), key.trial, run_id
            for case_id, trial, packed in connection.execute(query, given):
                found[Key(from_column(case_id), trial)] = bytes(packed)
                room -= len(packed)
                if room <= 0:
                    break
        if key not in found:
            raise _missing(run_id, key)
        return found

    def ledger(
        self, run_id: str, key: Key, column: Literal["ledger", "judging"] = "ledger"
    ) -> Ledger:
        """The ledger of a finished trial, or with `judging` that of what its metrics asked."""
        with self.database.connected() as connection:
            query = f"select {column} from trials where run_id = ? and case_id = ? and trial = ?"
            found = connection.execute(
                query, (run_id, to_column(key.case_id), key.trial)
            ).fetchone()
        if found is None:
            raise _missing(run_id, key)
        return loaded(bytes(found[0]), run_id, key)


def _missing(run_id: str, key: Key) -> NotFound:
    return NotFound(f"run {run_id!r} has no trial {key.trial} of case {key.case_id!r} any more.")


def _new_id() -> str:
    """Sorts by the time it was made, and is short enough to type."""
    return f"{strftime('%Y%m%d-%H%M%S')}-{urandom(2).hex()}"


def _unfinished(run: Run) -> list[str]:
    if run.done >= run.total:
        if run.plan.confirm and run.status != "finished":
            return [f"{UNFINISHED}: cases that fail may have to run again"]
        return []
    return [f"{UNFINISHED}: {run.done} of {run.total} trials are done"]
