"""What the store asks of a database. There are two: a file of SQLite, and a schema of a Postgres server.

Both have the same tables and run the same SQL. What differs is here: how a connection is opened, who may
write, what is locked, and where trials under way are recorded.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, Protocol, TypeVar

from greenroom.errors import StoreFailed
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.store.cut_trials import CutTrial
from greenroom.store.runs import Key

T = TypeVar("T")
Settled = Callable[[StoreFailed | None], None]
"""Called in any thread with None once all is on disk, or with the reason why it cannot be."""
Holdable = Literal["journals", "conversations"]
"""What one process at a time may work on: a run, or a conversation."""
_LONGEST_PAUSE = 1.0
_CLOSING = 5.0
"""Seconds for which a lost connection is opened again once the run is being closed."""


class Rows(Protocol):
    """The rows that a query found."""

    def fetchone(self) -> Any:
        """The next row; None after the last."""
        ...

    def fetchall(self) -> list[Any]:
        """All that are left."""
        ...

    def __iter__(self) -> Iterator[Any]: ...


class Connection(Protocol):
    """A connection of one thread. Each statement is a transaction, unless one was begun."""

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        ...

    def execute(self, sql: str, values: Sequence[object] = ..., /) -> Rows:
        """Run a statement; a `?` stands for each value."""
        ...

    def executemany(self, sql: str, rows: Iterable[Sequence[object]], /) -> object:
        """Run a statement for each row of values."""
        ...

    def stream(self, sql: str, values: Sequence[object] = ..., /) -> Iterator[Any]:
        """The rows that a query finds, some at a time: they need not fit into memory together."""
        ...

    def begin(self) -> None:
        """Begin a transaction that writes; no other one does until it ends."""
        ...

    def commit(self) -> None:
        """End the transaction; all of it is on disk then."""
        ...

    def rollback(self) -> None:
        """End the transaction as if it had not begun."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...


@contextmanager
def transaction(connection: Connection) -> Generator[None]:
    """All or nothing; the right to write is taken at once, so no transaction fails half-way."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.rollback()
        raise


class Hold(Protocol):
    """The right of this process to work on something that no other may work on."""

    def check(self) -> None:
        """StoreFailed if it was lost meanwhile, and another process has it now."""
        ...

    def release(self) -> None:
        """Let others have it."""
        ...


class TrialEntry(Protocol):
    """Where one trial under way is recorded."""

    @property
    def ledger(self) -> bytes:
        """The run as JSON lines."""
        ...

    @property
    def judging(self) -> bytes:
        """What the metrics asked, as JSON lines."""
        ...

    def begin(self, key: Key, digest: str) -> None:
        """Use this entry for that trial now."""
        ...

    def restore(self, ledger: Ledger, judging: Ledger) -> bool:
        """Record what an earlier process had recorded; whether it is safe now."""
        ...

    def agent(self, event: Event) -> None:
        """Record an event of the run."""
        ...

    def judge(self, event: Event) -> None:
        """Record an event of the measuring."""
        ...

    def settle(self, tell: Settled) -> None:
        """Call `tell` when all that was recorded is on disk, or with the reason why no tool may act."""
        ...

    def forget(self) -> None:
        """Drop the lines from memory: the writer has them now."""
        ...


class RunJournal(Protocol):
    """The trials of one run that are under way, recorded by one process at a time."""

    attempt: int
    """Which process works on the run: each one that resumes it has a higher number."""
    fail: Callable[[str], None]
    """Called in any thread with the reason why nothing more can be written."""
    nameless: list[str]
    """Where something was left, but not readable enough to say which trial it was."""

    def entry(self) -> TrialEntry:
        """An empty entry for a trial that begins."""
        ...

    def release(self, entry: Any) -> None:
        """Take back the entry of a trial that is safe in the database."""
        ...

    def left_over(self) -> list[CutTrial]:
        """What earlier processes had under way when they ended."""
        ...

    def freeze(self) -> None:
        """Record nothing more: what follows is the noise of stopping, and no part of the run."""
        ...

    def close(self, *, remove: bool) -> None:
        """Let go of the run; `remove` what is left of the journal once all is safe in the database."""
        ...


class Database(Protocol):
    """One database of runs and conversations."""

    address: str
    """What `--store` takes to name it; without a password."""
    folder: Path
    """Where files next to it may lie: logs, plays."""
    patience: float
    """For how many seconds a lost connection is tried again before a run stops."""

    def exists(self) -> bool:
        """Whether there is anything to read."""
        ...

    def connected(self, *, to_write: bool = False) -> AbstractContextManager[Connection]:
        """A connection for a while, to read by unless asked otherwise; its errors become ours."""
        ...

    def open(self) -> Connection:
        """A connection to write by, whose commits are on disk when they return."""
        ...

    def check(self, connection: Connection) -> None:
        """StoreFailed if what is written by this connection would be lost."""
        ...

    def failure(self, error: Exception) -> StoreFailed | None:
        """The error to raise for one of the engine's; None if it is not one of these."""
        ...

    def is_lost(self, error: Exception) -> bool:
        """Whether an error means that the connection is gone, and another one may do."""
        ...

    def hold(self, kind: Holdable, name: str) -> Hold:
        """The right to work on a run or a conversation; StoreFailed while another process has it."""
        ...

    def held(self, kind: Holdable, names: Collection[str]) -> set[str]:
        """Those of these that a process is at work on."""
        ...

    def journal(self, run_id: str, shard: str = "") -> RunJournal:
        """The journal of a run, or of one of its shards; StoreFailed while another process holds it."""
        ...

    def removing(self, name: str) -> AbstractContextManager[None]:
        """Hold a journal while its run is deleted, and leave nothing of it; StoreFailed if it is held."""
        ...

    def under_way(self, name: str) -> list[CutTrial]:
        """The trials in this journal that a process has under way now, up to their last event."""
        ...

    def keep_attachments(self, written: bytes | str, owner: str) -> None:
        """Keep the bytes of what a run or conversation is about to mention, as far as they are at hand."""
        ...

    def put_aside(self, run_id: str, ledger: bytes, connection: Connection) -> bytes:
        """A packed ledger as a row keeps it: itself, or where it lies if it is large."""
        ...

    def fetched(self, stored: bytes) -> bytes:
        """The packed ledger that a row keeps so."""
        ...

    def cleared(self, owner: str, connection: Connection) -> None:
        """Forget what only this run or conversation needed, inside the transaction that deletes it."""
        ...

    def upgrade(self, blobs: str = "") -> str:
        """Make the tables, or bring them to today's format, as `greenroom store` asks; what was done.

        `blobs` is where what is large is kept from now on; empty for the usual place.
        """
        ...

    def about(self) -> list[tuple[str, str]]:
        """What `greenroom store check` says of it: each fact with its name before it."""
        ...

    def environment(self) -> dict[str, str]:
        """What another process must find in its environment to open the store by its address."""
        ...

    def tidy(self) -> None:
        """Give the space of what was deleted back."""
        ...


class Reconnecting:
    """A connection to write by that is opened again if it was lost, until patience is at an end.

    What is done by it must be harmless to do twice: a commit may have worked although its answer was lost.
    """

    def __init__(
        self, database: Database, opened: Callable[[Connection], None] = lambda _: None
    ) -> None:
        self._database = database
        self._opened = opened
        self._connection: Connection | None = None
        self._was_open = False
        self._latest = inf

    def do(self, work: Callable[[Connection], T]) -> T:
        """What `work` comes to."""
        until, pause = 0.0, 0.05
        while True:
            try:
                return work(self._open())
            except Exception as error:
                if not self._database.is_lost(error):
                    raise
                self.close()
                if not self._was_open:
                    raise  # it may never have been there
                until = until or monotonic() + self._database.patience
                if monotonic() + pause > min(until, self._latest):
                    raise
            sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)

    def _open(self) -> Connection:
        if self._connection is None:
            self._connection = self._database.open()
            try:
                self._opened(self._connection)
            except BaseException:
                self.close()
                raise
            self._was_open = True
        self._database.check(self._connection)
        return self._connection

    def close(self) -> None:
        """Let go of the connection; the next work opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def stop_waiting(self) -> None:
        """Be patient only for a moment from now on; for any thread."""
        # Not for none at all: the server may notice a moment later that a connection before this one is gone.
        self._latest = monotonic() + _CLOSING
