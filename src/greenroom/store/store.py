"""The store: runs and their finished trials, in a folder or on a server; this part writes."""

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from os import urandom
from pathlib import Path
from time import strftime, time
from typing import Any, TypeVar

from msgspec.structs import replace

from greenroom.errors import BadInput, StoreFailed
from greenroom.store.columns import from_column
from greenroom.store.configuration import is_server, place_of
from greenroom.store.contents import RUN, StoreReader, run_from
from greenroom.store.database import Connection, Database, transaction
from greenroom.store.entry import RunJournal
from greenroom.store.failpoints import failpoint
from greenroom.store.rows import (
    close_shard,
    next_position,
    planned,
    put_spending,
    put_sums,
    put_trials,
    read_sums,
    shards_together,
    take_shard,
)
from greenroom.store.runs import (
    ASIDE,
    Key,
    Plan,
    Row,
    Run,
    RunStatus,
    journal_names,
    tally,
)
from greenroom.store.sqlite import SqliteDatabase

T = TypeVar("T")


def default_store() -> "Store | None":
    """`$GREENROOM_STORE`, else `store` in `[tool.greenroom]` of the nearest pyproject, else `.greenroom`.

    None if that is `off`.
    """
    return as_store(None)


def as_store(given: "Store | str | Path | bool | None") -> "Store | None":
    """The store for this argument: a store itself, that of a folder, or the default one for None.

    False and `off` mean none.
    """
    if isinstance(given, Store):
        return given
    place = place_of(given)
    return Store(place) if place else None


def store_for_run(given: "Store | str | Path | bool | None") -> "Store":
    """The store in which a run is looked up; refused where stores are switched off."""
    found = as_store(given)
    if found is None:
        raise BadInput("there is no store to look for the run in; give store=.")
    return found


class Store(StoreReader):
    """A store of runs: a database of finished trials, and a journal of the others.

    `place` is a folder, or the address of a Postgres server: `postgresql://host/database`.
    """

    __slots__ = ()

    def __init__(self, place: str | Path) -> None:
        super().__init__(_database(place))

    def __repr__(self) -> str:
        return f"Store({self.address!r})"

    def begin(self, plan: Plan, connection: Connection) -> Run:
        """Record a run before its first trial; a run with a name is recorded by the first process.

        The others get that run, as one to be resumed.
        """
        run = Run(id=_new_id(), plan=plan, status="running", begun=time())
        with transaction(connection):
            if plan.called and (named := _named_run(plan, connection)):
                return replace(named, begun_before=True)
            while _is_taken(run, connection):
                run = replace(run, id=_new_id())
            connection.execute(
                "insert into runs (id, position, status, begun, "
                "name, evalset_id, agent, agent_digest, set_digest, plan) "
                "values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) on conflict (id) do nothing",
                (run.id, next_position(connection), run.status, run.begun, *planned(plan)),
            )
        failpoint("run.begun")
        return run

    def resume(
        self, run: Run, plan: Plan, places: Mapping[Key, int], connection: Connection
    ) -> Run:
        """Record that a run is resumed, with its current plan; trials without a place are set aside.

        For a shared run, only this process's part is taken over.
        """
        if run.shard:
            with transaction(connection):
                attempt = take_shard(run.id, run.shard, connection)
            return replace(run, status="running", ended=None, attempt=attempt, begun_before=True)
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

    def add(self, run: Run, rows: Sequence[Row], connection: Connection) -> None:
        """Store finished trials; they are on disk when this returns. The last row of a trial counts."""
        failpoint("commit.before")
        for row in rows:
            for written in (row.verdict, row.ledger, row.judging):
                self.database.keep_attachments(written, run.id)
        latest = {row.key: row for row in rows}.values()
        with transaction(connection):
            sums = read_sums(run, connection)
            position = next_position(connection, len(latest) + 1)
            change = put_trials(
                run,
                latest,
                position,
                connection,
                lambda ledger: self.database.put_aside(run.id, ledger, connection),
            )
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
        connection: Connection,
    ) -> None:
        """Record how a run ended, for now or for good."""
        failpoint("run.closing")
        written = json.dumps(list(notes))
        with transaction(connection):
            read_sums(run, connection)  # refuses if the run now belongs to another process
            if run.shard:
                is_whole = close_shard(run, status, written, seconds, connection)
                written, seconds = shards_together(run.id, connection)
                status = status if is_whole or status != "finished" else "running"
            connection.execute(
                "update runs set position = ?, status = ?, ended = ?, seconds = ?, notes = ? "
                "where id = ?",
                (
                    next_position(connection),
                    status,
                    time(),
                    seconds,
                    written,
                    run.id,
                ),
            )
        # An open connection does not notice that the file was overwritten; a new one does.
        with self.database.connected() as another:
            another.execute("select count(*) from trials where run_id = ?", (run.id,)).fetchone()

    def delete(self, *ids: str) -> None:
        """Delete runs with all their trials, and the bytes of attachments that no other run mentions."""
        found = [self.run(given).id for given in ids]
        with self.database.connected(to_write=True) as connection:
            for run_id in found:
                # Refused while the run is in progress.
                names = journal_names(run_id, self.run(run_id).plan.shards)
                with ExitStack() as held, transaction(connection):
                    for name in names:
                        held.enter_context(self.database.removing(name))
                    for table in ("trials", "spending", "shards"):
                        connection.execute(f"delete from {table} where run_id = ?", (run_id,))
                    connection.execute("delete from runs where id = ?", (run_id,))
                    connection.execute(
                        "insert into deleted values (?, ?) "
                        "on conflict (run_id) do update set position = excluded.position",
                        (run_id, next_position(connection)),
                    )
                    self.database.cleared(run_id, connection)
        self.database.tidy()

    def journal(self, run_id: str, shard: str = "", *, is_begun: bool = False) -> RunJournal[Any]:
        """The journal of a run, or of one of its shards; StoreFailed while another process holds it.

        If the run `is_begun` and its journal is gone, all that it may have held counts as damaged.
        """
        return self.database.journal(run_id, shard, is_begun=is_begun)


def _database(place: str | Path) -> Database:
    if not is_server(place):
        try:
            return SqliteDatabase(Path(place).absolute())
        except FileNotFoundError:
            raise StoreFailed(
                f"there is no place for the store {str(place)!r}: the current folder no longer exists. Change to "
                f"another one, or name the store by its whole path."
            ) from None
    # Its driver is loaded only where it is used.
    from greenroom.store.postgres import PostgresDatabase

    return PostgresDatabase(str(place))


def _named_run(plan: Plan, connection: Connection) -> Run | None:
    """The unfinished run of this name that is shared by the same number of processes, or by none."""
    rows = connection.execute(f"{RUN} where status <> 'finished' order by begun desc, id desc")
    wanted = plan.called, plan.shards, plan.evalset_id, plan.name
    for run in map(run_from, rows.fetchall()):
        found = run.plan
        if (found.called, found.shards, found.evalset_id, found.name) == wanted:
            return run
    return None


def _is_taken(run: Run, connection: Connection) -> bool:
    """Whether another run has this id; if it is this run itself, a commit worked whose answer was lost."""
    query = "select begun from runs where id = ?"
    found = connection.execute(query, (run.id,)).fetchone()
    return found is not None and found[0] != run.begun


def _new_id() -> str:
    """A new id: it sorts by the time of creation, and is short enough to type."""
    return f"{strftime('%Y%m%d-%H%M%S')}-{urandom(2).hex()}"
