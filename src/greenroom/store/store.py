"""The local store: runs and their finished trials, in `.greenroom/runs.db`."""

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cache
from os import urandom
from pathlib import Path
from time import strftime, time
from typing import Any

from greenroom.errors import NotFound
from greenroom.ledger.ledger import Ledger
from greenroom.results.data import verdict_from
from greenroom.results.report import UNFINISHED, Report
from greenroom.results.result import UNKNOWN_CODE, CaseResult
from greenroom.store.database import JOURNALS, Database, transaction
from greenroom.store.failpoints import failpoint
from greenroom.store.journal import Journal
from greenroom.store.ledgers import RunLedgers, StoredLedger, loaded
from greenroom.store.lock import is_held, under_way
from greenroom.store.runs import (
    Key,
    Plan,
    Row,
    Run,
    RunStatus,
    batches,
    notes_from,
    plan_from,
    verdict_text,
)

PLACE = ".greenroom"
PLACE_VARIABLE = "GREENROOM_STORE"
_OFF = "off"
_DATABASE = "runs.db"
_WHOLE = (
    "(json_extract(verdict, '$.error') is null "
    "or json_extract(verdict, '$.error.type') = 'InDoubt')"
)
PRICES = [f"json_extract(verdict, '$.{who}')" for who in ("cost", "user_cost", "judge_cost")]
COST = " + ".join(f"coalesce({price}, 0)" for price in PRICES)
"""What agent, user and judges of a trial cost, as far as prices are known."""
_TOGETHER = 32
_TOGETHER_BYTES = 250_000
"""So many trials go into one statement, which SQLite copies whole: other threads go on after each."""
_AHEAD = 64
_AHEAD_BYTES = 2_000_000
"""So many ledgers are read at once by whoever reads one: the next will be asked for soon."""
_ASIDE = -1
"""The place of a trial whose case is another now, or not among the cases: no report has it."""


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

    __slots__ = ("database", "place")

    def __init__(self, place: str | Path) -> None:
        self.place = Path(place).absolute()
        self.database = Database(self.place / _DATABASE)

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
                "insert into runs (id, name, status, begun, plan) values (?, ?, ?, ?, ?)",
                (
                    run.id,
                    _stored(plan.name),
                    run.status,
                    run.begun,
                    json.dumps(asdict(plan)),
                ),
            )
        failpoint("run.begun")
        return run

    def resume(
        self, run: Run, plan: Plan, places: Mapping[Key, int], connection: sqlite3.Connection
    ) -> Run:
        """Remember that a run goes on, as it is planned now; trials without a place are set aside."""
        with transaction(connection):
            query = "select case_id, trial, position from trials where run_id = ?"
            for case_id, trial, before in connection.execute(query, (run.id,)).fetchall():
                place = places.get(Key(_given(case_id), trial), _ASIDE)
                if place != before:
                    connection.execute(
                        "update trials set position = ? "
                        "where run_id = ? and case_id = ? and trial = ?",
                        (place, run.id, case_id, trial),
                    )
            connection.execute(
                "update runs set status = 'running', ended = null, plan = ? where id = ?",
                (json.dumps(asdict(plan)), run.id),
            )
        return replace(run, plan=plan, status="running", ended=None, begun_before=True)

    def add(
        self,
        run_id: str,
        rows: Sequence[Row],
        connection: sqlite3.Connection,
        *,
        replacing: bool = False,
    ) -> None:
        """Keep finished trials; they are on disk when this returns.

        `replacing` counts what was spent on an earlier trial that one of them replaces.
        """
        failpoint("commit.before")
        with transaction(connection):
            if replacing:
                # What a trial has cost is spent, also when it is played again.
                connection.executemany(
                    f"update runs set spent = spent + coalesce((select {COST} from trials "
                    "where run_id = ? and case_id = ? and trial = ?), 0) where id = ?",
                    [(run_id, _stored(row.key.case_id), row.key.trial, run_id) for row in rows],
                )
            for some in batches(rows, _TOGETHER_BYTES, _TOGETHER):
                connection.execute(_insertion(len(some)), _values(run_id, some))
            failpoint("commit.inside")
        failpoint("commit.after")

    def close(
        self,
        run_id: str,
        status: RunStatus,
        notes: Iterable[str],
        seconds: float,
        connection: sqlite3.Connection,
    ) -> None:
        """Remember how a run ended, for now or for good."""
        failpoint("run.closing")
        with transaction(connection):
            connection.execute(
                "update runs set status = ?, ended = ?, seconds = ?, notes = ? where id = ?",
                (status, time(), seconds, json.dumps(list(notes)), run_id),
            )
        # A file that was written over is not noticed by who has read it, but by another.
        with self.database.connected() as another:
            another.execute("select count(*) from trials where run_id = ?", (run_id,)).fetchone()

    def delete(self, *ids: str) -> None:
        """Forget runs with all their trials."""
        found = [self.run(given).id for given in ids]
        with self.database.connected() as connection:
            for run_id in found:
                journal = self.journal(run_id)  # refuses while the run is under way
                with transaction(connection):
                    connection.execute("delete from trials where run_id = ?", (run_id,))
                    connection.execute("delete from runs where id = ?", (run_id,))
                journal.close(remove=True)

    def journal(self, run_id: str) -> Journal:
        """The journal of a run; StoreFailed while another process holds it."""
        return Journal(self._folder(run_id))

    # Reading

    def runs(self) -> list[Run]:
        """Every run, the latest first."""
        if not self.database.path.exists():
            return []
        with self.database.connected() as connection:
            counts: dict[str, dict[str, int]] = {}
            query = (
                "select run_id, status, count(*) from trials where position >= 0 "
                "group by run_id, status"
            )
            for run_id, status, number in connection.execute(query):
                counts.setdefault(run_id, {})[status] = number
            rows = connection.execute(
                "select id, status, begun, ended, seconds, plan, notes from runs "
                "order by begun desc, id desc"
            )
            found = [self._run(row, counts.get(row[0], {})) for row in rows]
            return [_without_again(run, connection) if run.plan.confirm else run for run in found]

    def _run(self, row: tuple[Any, ...], counts: Mapping[str, int]) -> Run:
        run_id, status, begun, ended, seconds, plan, notes = row
        if status == "running" and not is_held(self._folder(run_id)):
            status = "interrupted"  # its process died without a word
        return Run(
            id=run_id,
            plan=plan_from(plan),
            status=status,
            begun=begun,
            ended=ended,
            seconds=seconds,
            notes=notes_from(notes),
            counts=counts,
        )

    def _folder(self, run_id: str) -> Path:
        return self.place / JOURNALS / run_id

    def run(self, given: str) -> Run:
        """The run with this id, or the only one whose id begins so."""
        known = self.runs()
        found = [run for run in known if run.id == given] or [
            run for run in known if given and run.id.startswith(given)
        ]
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
        return len(self.keys(run.id, broken=False)) < len(self.keys(run.id))

    def keys(self, run_id: str, *, broken: bool = True) -> dict[Key, str]:
        """The finished trials of a run, each with the digest of its case; those set aside too.

        `broken=False` leaves those out that ended in an error, but not where a real tool may act
        twice if they are played again.
        """
        with self.database.connected() as connection:
            query = "select case_id, trial, digest from trials where run_id = ?"
            rows = connection.execute(query if broken else f"{query} and {_WHOLE}", (run_id,))
            return {Key(_given(case_id), trial): digest for case_id, trial, digest in rows}

    def spent(self, run_id: str) -> tuple[float, float]:
        """What a run has cost in USD so far, and its dearest trial; those that count no more too."""
        query = (
            f"select runs.spent + coalesce(sum({COST}), 0), coalesce(max({COST}), 0) "
            "from runs left join trials on run_id = runs.id where runs.id = ?"
        )
        with self.database.connected() as connection:
            spent, dearest = connection.execute(query, (run_id,)).fetchone()
        return float(spent), float(dearest)

    def results(self, run_id: str) -> Iterator[tuple[Key, CaseResult]]:
        """The results of a run in the order of its cases; their ledgers are read when asked for."""
        with self.database.connected() as connection:
            query = (
                "select case_id, trial, verdict, length(ledger), "
                "case when instr(ledger, ?) then '' else digest end from trials "
                "where run_id = ? and position >= 0 order by position, trial"
            )
            ledgers = self.ledgers(run_id)
            given = UNKNOWN_CODE.encode(), run_id
            for case_id, trial, verdict, size, asks in connection.execute(query, given):
                key = Key(_given(case_id), trial)
                ledger = StoredLedger(ledgers, key, size) if size else None
                where = f"run {run_id!r}, case {key.case_id!r}"
                yield key, verdict_from(verdict_text(verdict, where), where, ledger, asks)

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

    def ledgers(self, run_id: str) -> RunLedgers:
        """The ledgers of a run's finished trials, which stay in the store until somebody looks."""
        return RunLedgers(self, run_id)

    def ledger_texts(self, run_id: str, key: Key) -> dict[Key, bytes]:
        """The ledger of a finished trial as it is kept, and some of those that were kept next."""
        query = (
            # The plus keeps SQLite from looking at the whole run for each of its parts.
            "with asked (place) as "
            "(select rowid from trials where run_id = ? and case_id = ? and trial = ?) "
            "select case_id, trial, ledger from asked join trials on rowid between place "
            f"and place + {_AHEAD} where +run_id = ? order by rowid"
        )
        found: dict[Key, bytes] = {}
        room = _AHEAD_BYTES
        with self.database.connected() as connection:
            given = run_id, _stored(key.case_id), key.trial, run_id
            for case_id, trial, text in connection.execute(query, given):
                found[Key(_given(case_id), trial)] = bytes(text)
                room -= len(text)
                if room <= 0:
                    break
        if key not in found:
            raise _missing(run_id, key)
        return found

    def ledger(self, run_id: str, key: Key, column: str = "ledger") -> Ledger:
        """The ledger of a finished trial, or with `judging` that of what its metrics asked."""
        with self.database.connected() as connection:
            query = f"select {column} from trials where run_id = ? and case_id = ? and trial = ?"
            found = connection.execute(query, (run_id, _stored(key.case_id), key.trial)).fetchone()
        if found is None:
            raise _missing(run_id, key)
        return loaded(bytes(found[0]), run_id, key)


def _missing(run_id: str, key: Key) -> NotFound:
    return NotFound(f"run {run_id!r} has no trial {key.trial} of case {key.case_id!r} any more.")


def _without_again(run: Run, connection: sqlite3.Connection) -> Run:
    """The run whose counts leave out the trials that were played again; these are counted apart."""
    query = (
        "select status, count(*) from trials where run_id = ? and position >= 0 and trial > ? "
        "group by status"
    )
    again: dict[str, int] = dict(connection.execute(query, (run.id, run.plan.trials)).fetchall())
    counts = {status: count - again.get(status, 0) for status, count in run.counts.items()}
    return replace(run, counts={s: n for s, n in counts.items() if n}, again=sum(again.values()))


def _new_id() -> str:
    """Sorts by the time of its making, and is short enough to be typed."""
    return f"{strftime('%Y%m%d-%H%M%S')}-{urandom(2).hex()}"


@cache
def _insertion(count: int) -> str:
    places = ", ".join(["(?, ?, ?, ?, ?, ?, ?, ?, ?)"] * count)
    return f"insert or replace into trials values {places}"


def _values(run_id: str, rows: Iterable[Row]) -> list[object]:
    found: list[object] = []
    for row in rows:
        case_id, trial = _stored(row.key.case_id), row.key.trial
        found += (run_id, case_id, trial, row.position, row.digest, row.status)
        found += (row.verdict, row.ledger, row.judging)
    return found


def _stored(text: str) -> str | bytes:
    """Half a character, as a cut stream leaves it, has no place in a text of a database."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode(errors="surrogatepass")
    return text


def _given(stored: str | bytes) -> str:
    return stored if isinstance(stored, str) else stored.decode(errors="surrogatepass")


def _unfinished(run: Run) -> list[str]:
    if run.done >= run.total:
        if run.plan.confirm and run.status != "finished":
            return [f"{UNFINISHED}: cases that fail may have to be played again"]
        return []
    return [f"{UNFINISHED}: {run.done} of {run.total} trials are done"]
