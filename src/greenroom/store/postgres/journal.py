"""Trials in progress, in a table on the server: what a process that dies leaves for the next.

Lines go to one thread, which writes all that wait in one statement. A real tool waits until its call
is committed; models and mocks do not wait. The thread's connection holds the lock of the run, so
only the process that holds it can write: a lost connection loses the lock too.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import suppress
from itertools import count
from queue import Empty, SimpleQueue
from threading import Thread
from time import sleep
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from greenroom.errors import StoreFailed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.redaction import redactor
from greenroom.store.columns import from_column, to_column
from greenroom.store.cut_trials import CutTrial, Damaged, LastTrial, last_trial
from greenroom.store.database import Connection, Reconnecting
from greenroom.store.entry import RunJournal, Settled, TrialEntry
from greenroom.store.failpoints import failpoint
from greenroom.store.lock import under_way
from greenroom.store.postgres.connection import PostgresConnection, StillHeld
from greenroom.store.postgres.locks import check_session, pooled
from greenroom.store.redaction import LineCleaner
from greenroom.store.runs import Key, journal_name

if TYPE_CHECKING:
    from greenroom.store.postgres.database import PostgresDatabase

_GATHERING = 0.005
"""Seconds for which lines wait for others, unless a real tool waits for them."""
_LOCK = (
    "select pg_backend_pid(), backend_start, pg_try_advisory_lock(?) "
    "from pg_stat_activity where pid = pg_backend_pid()"
)
_END = "select pg_terminate_backend(pid) from pg_stat_activity where pid = ? and backend_start = ?"
_UNLOCK = "select pg_advisory_unlock_all()"
_MANY = 64
"""How many finished trials are removed from the table together."""
_TOGETHER = 200
_EVENTS = "select case_id, trial, attempt, n, redacted, lines from events where run_id = ? order by 1, 2, 3, 4"


class _Chunk(Struct, frozen=True):
    """Some lines of a trial."""

    key: Key
    attempt: int
    n: int
    lines: bytes


class _Removal(Struct, frozen=True):
    """A request to remove what these attempts wrote of a trial: it is no longer needed."""

    key: Key
    attempts: range


class _Settling(Struct, frozen=True):
    """A request to be told when everything before it is committed."""

    tell: Settled


_Job = _Chunk | _Removal | _Settling | None


class TableEntry(TrialEntry):
    """One trial in progress, and how much of it was passed to the writing thread."""

    __slots__ = ("_journal", "_numbers", "key")

    def __init__(self, journal: "TableJournal") -> None:
        super().__init__()
        self.key = Key("", 0)
        self._journal = journal
        self._numbers = count()

    def begin(self, key: Key, digest: str) -> None:
        """Use this entry for that trial now."""
        self.key = key
        super().begin(key, digest)

    def restore(self, ledger: Ledger, judging: Ledger) -> bool:
        """Write what an earlier process had recorded; that process's own lines are removed afterwards."""
        self._write_again(ledger, judging)
        return not self.is_frozen

    def _write(self) -> None:
        with self._writing:
            lines = self._written_out()
            if not self.is_frozen:
                self._journal.write(self.key, next(self._numbers), lines)
        failpoint("journal.written")

    def settle(self, tell: Settled) -> None:
        """Call `tell` when everything recorded is committed, or with the reason why no tool may act."""
        if self.is_frozen:
            tell(StoreFailed("the run is being stopped."))
        else:
            self._journal.settle(tell)


class TableJournal(RunJournal[TableEntry]):
    """The journal of one run's trials in progress."""

    def __init__(self, database: "PostgresDatabase", run_id: str, shard: str = "") -> None:
        super().__init__()
        self._store = database
        self._run_id = run_id
        self._name = journal_name(run_id, shard)
        # Where the attempt number is kept: for the whole run, or for each shard.
        self._owned = ("runs where id = ?", run_id)
        if shard:
            self._owned = ("shards where shard = ? and run_id = ?", shard, run_id)
        self._jobs: SimpleQueue[_Job] = SimpleQueue()
        self._failure = ""
        self._removals: list[_Removal] = []
        self._cleaner = LineCleaner(redactor)
        self._session: tuple[int, Any] = 0, None
        self._has_begun = False
        self._leaves_nothing = False
        self._database = Reconnecting(database, self._take)
        try:
            self._left = self._database.do(
                lambda connection: list(written_by(self._name, connection))
            )
        except BaseException:
            self._database.close()
            raise
        self._thread = Thread(target=self._serve, name="greenroom-journal", daemon=True)
        self._thread.start()

    def _take(self, connection: Connection) -> None:
        """Lock the run for this connection; StoreFailed if another process has it, or had it in the meantime."""
        assert isinstance(connection, PostgresConnection)
        if self._has_begun:
            self._check_attempt(connection)
        number = self._store.lock_number("journals", self._name)
        pid, since, got = connection.execute(_LOCK, (number,)).fetchone() or (0, None, False)
        if not got and self._has_begun:
            # The server may not have noticed yet that the connection before this one is gone.
            connection.execute(_END, self._session)
            raise StillHeld(str(under_way(self._run_id)))
        if not got:
            raise under_way(self._run_id)
        if pid != connection.raw.info.backend_pid:  # a pooler is in between
            with self._store.connected() as other:
                check_session(connection, other, self._store.address, number)
        self._session = pid, since

    def _check_attempt(self, connection: Connection) -> None:
        table, *key = self._owned
        found = connection.execute(f"select attempt from {table}", key).fetchone()
        if found is None:
            raise StoreFailed(f"run {self._run_id!r} was deleted while it was running.")
        if found[0] != self.attempt:
            raise StoreFailed(
                f"run {self._run_id!r} was resumed by another process. Let that one finish it."
            )

    # What entries say

    def entry(self) -> TableEntry:
        """An empty entry for a trial that begins."""
        if self._failure:
            raise StoreFailed(self._failure)
        self._has_begun = True
        return self._taken(TableEntry(self))

    def write(self, key: Key, n: int, lines: bytes) -> None:
        """Write lines of a trial soon."""
        self._jobs.put(_Chunk(key, self.attempt, n, lines))

    def settle(self, tell: Settled) -> None:
        """Call `tell` when everything passed so far is committed."""
        self._jobs.put(_Settling(tell))

    def remove(self, key: Key, attempts: range) -> None:
        """Remove what was written of a trial, after everything passed so far."""
        self._jobs.put(_Removal(key, attempts))

    def release(self, entry: TableEntry) -> None:
        """Free the entry of a trial that is safe in the database."""
        self._used.discard(entry)
        self.remove(entry.key, range(self.attempt + 1))

    def left_over(self) -> list[CutTrial]:
        """The trials that earlier processes left unfinished."""
        for cut in self._left:
            cut.journal = self
        return [*self._left]

    def close(self, *, remove: bool) -> None:
        """Release the run, and `remove` what is left in the table if it is no longer needed."""
        self._leaves_nothing = remove
        if not remove:  # only a complete run is worth waiting for a connection that was just lost
            self._database.stop_waiting()
        self._jobs.put(None)
        self._thread.join(timeout=10)

    # The thread

    def _serve(self) -> None:
        is_open = True
        while is_open:
            jobs = self._gathered()
            is_open = None not in jobs
            try:
                self._do(jobs, is_last=not is_open)
            except Exception as error:  # noqa: BLE001 - the one that waits gets it
                self._fail(error)
            for job in jobs:
                if isinstance(job, _Settling):
                    job.tell(StoreFailed(self._failure) if self._failure else None)
        with suppress(Exception):  # a session that ends releases its locks too, a moment later
            self._database.do(lambda connection: connection.execute(_UNLOCK))
        self._database.close()

    def _gathered(self) -> list[_Job]:
        """The waiting requests, at least one; collected a little longer if no tool waits for them."""
        jobs = [self._jobs.get()]
        if isinstance(jobs[0], _Chunk | _Removal) and self._jobs.empty():
            sleep(_GATHERING)
        with suppress(Empty):
            while True:
                jobs.append(self._jobs.get_nowait())
        return jobs

    def _do(self, jobs: Sequence[_Job], *, is_last: bool) -> None:
        if self._failure:
            return
        self._removals += [job for job in jobs if isinstance(job, _Removal)]
        gone = {one.key for one in self._removals if self.attempt in one.attempts}
        chunks = [job for job in jobs if isinstance(job, _Chunk) and job.key not in gone]
        self._cleaner.keep_up()
        for at in range(0, len(chunks), _TOGETHER):
            rows = [self._row(chunk) for chunk in chunks[at : at + _TOGETHER]]
            self._database.do(lambda connection, rows=rows: self._insert(rows, connection))
        failpoint("journal.half_written")
        if is_last and self._leaves_nothing:
            self._database.do(self._remove_all)
        elif self._removals and (is_last or len(self._removals) >= _MANY):
            self._database.do(self._remove_finished)
            self._removals = []

    def _row(self, chunk: _Chunk) -> tuple[Any, ...]:
        self._store.keep_attachments(chunk.lines, self._run_id)
        lines = self._cleaner.lines(chunk.lines)
        key = to_column(chunk.key.case_id), chunk.key.trial
        return *key, chunk.attempt, chunk.n, int(lines is not chunk.lines), lines

    def _insert(self, rows: Sequence[tuple[Any, ...]], connection: Connection) -> None:
        """Write lines, if this process and session still own the run."""
        table, *key = self._owned
        query = (
            "insert into events select ?, new.* from unnest(?::text[], ?::bigint[], ?::bigint[], "
            "?::bigint[], ?::bigint[], ?::bytea[]) as new "
            f"where exists (select 1 from {table} and attempt = ?) and pg_backend_pid() = ? "
            "on conflict (run_id, case_id, trial, attempt, n) do update set lines = excluded.lines "
            "returning 1"
        )
        columns = [list(column) for column in zip(*rows, strict=True)]
        given = (self._name, *columns, *key, self.attempt, self._session[0])
        if len(connection.execute(query, given).fetchall()) < len(rows):
            self._check_attempt(connection)
            raise pooled(self._store.address)

    def _remove_finished(self, connection: Connection) -> None:
        query = (
            "delete from events where run_id = ? and case_id = ? and trial = ? "
            "and attempt between ? and ?"
        )
        connection.executemany(
            query,
            [
                (
                    self._name,
                    to_column(one.key.case_id),
                    one.key.trial,
                    one.attempts[0],
                    one.attempts[-1],
                )
                for one in self._removals
            ],
        )

    def _remove_all(self, connection: Connection) -> None:
        connection.execute("delete from events where run_id = ?", (self._name,))

    def _fail(self, error: Exception) -> None:
        named = error if isinstance(error, StoreFailed) else self._store.failure(error)
        self._failure = str(named) if named else f"cannot write to the journal: {error!r}."
        self.fail(self._failure)


class _CutInTable(CutTrial):
    """An interrupted trial in the table."""

    __slots__ = ("_attempt", "journal")

    def __init__(self, run_id: str, attempt: int, read: LastTrial, *, redacted: bool) -> None:
        super().__init__(f"of run {run_id!r} in the store", read, lacks_secrets=redacted)
        self.journal: TableJournal | None = None
        self._attempt = attempt

    def discard(self) -> None:
        """Remove everything that process wrote of it."""
        if self.journal is not None:
            self.journal.remove(self.key, range(self._attempt, self._attempt + 1))


def written_by(run_id: str, connection: Connection) -> Iterable[_CutInTable]:
    """The trials in progress in the table, one for each attempt that wrote to it."""
    found: defaultdict[tuple[Key, int], list[tuple[int, int, bytes]]] = defaultdict(list)
    for case_id, trial, attempt, n, redacted, lines in connection.stream(_EVENTS, (run_id,)):
        found[Key(from_column(case_id), trial), attempt].append((n, redacted, bytes(lines)))
    for (key, attempt), chunks in found.items():
        read = _read(key, chunks, f"run {run_id!r}, case {key.case_id!r}")
        redacted = any(one for _, one, _ in chunks)
        yield _CutInTable(run_id, attempt, read, redacted=redacted)


def _read(key: Key, chunks: Sequence[tuple[int, int, bytes]], where: str) -> LastTrial:
    damage = "" if [n for n, _, _ in chunks] == [*range(len(chunks))] else "some of it is missing"
    try:
        read = None if damage else last_trial(b"".join([lines for _, _, lines in chunks]), where)
    except Damaged as damaged:
        read, damage = None, str(damaged)
    return read or LastTrial(key, "", Ledger(), Ledger(), damage or "it does not say what it is")
