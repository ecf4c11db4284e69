"""The interface of the store's databases. There are two: an SQLite file, and a schema on a Postgres server.

Both have the same tables and run the same SQL. What differs is here: how a connection is opened, who may
write, what is locked, and where trials in progress are recorded.
"""

from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from math import inf
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Literal, Protocol, TypeVar

from greenroom.errors import StoreFailed
from greenroom.store.cut_trials import CutTrial
from greenroom.store.entry import RunJournal

T = TypeVar("T")
Holdable = Literal["journals", "conversations"]
"""What only one process at a time may work on: a run, or a conversation."""
_LONGEST_PAUSE = 1.0
_CLOSING = 5.0
"""For how many seconds a lost connection is retried once the run is closing."""


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
        """Run a statement; each `?` is replaced by a value."""
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
        """Close the connection."""
        ...


@contextmanager
def transaction(connection: Connection) -> Generator[None]:
    """A transaction: all or nothing. The write lock is taken at the start, so none fails half-way."""
    connection.begin()
    try:
        yield
        connection.commit()
    except BaseException:
        # On a full disk, the engine has already rolled back.
        if connection.in_transaction:
            connection.rollback()
        raise


class Hold(Protocol):
    """A lock: this process may work on something, and no other may."""

    def check(self) -> None:
        """Raise StoreFailed if the lock was lost and another process has it now."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...


class Database(Protocol):
    """One database of runs and conversations."""

    address: str
    """What `--store` takes to name it; without a password."""
    folder: Path
    """The folder for files next to it: logs, plays."""
    patience: float
    """For how many seconds a lost connection is retried before a run stops."""

    def exists(self) -> bool:
        """Whether there is anything to read."""
        ...

    def connected(self, *, to_write: bool = False) -> AbstractContextManager[Connection]:
        """A connection for a while, for reading unless `to_write`; its errors become StoreFailed."""
        ...

    def open(self) -> Connection:
        """A connection for writing, whose commits are on disk when they return."""
        ...

    def check(self, connection: Connection) -> None:
        """Raise StoreFailed if what this connection writes would be lost."""
        ...

    def failure(self, error: Exception) -> StoreFailed | None:
        """The error to raise for one of the engine's errors; None for any other error."""
        ...

    def is_lost(self, error: Exception) -> bool:
        """Whether an error means that the connection was lost, and a new one may work."""
        ...

    def hold(self, kind: Holdable, name: str) -> Hold:
        """Lock a run or a conversation; StoreFailed while another process has the lock."""
        ...

    def held(self, kind: Holdable, names: Collection[str]) -> set[str]:
        """The names, among these, that a process is working on."""
        ...

    def journal(self, run_id: str, shard: str = "", *, is_begun: bool = False) -> RunJournal[Any]:
        """The journal of a run, or of one of its shards; StoreFailed while another process holds it.

        If the run `is_begun` and its journal is gone, all that it may have held counts as damaged.
        """
        ...

    def removing(self, name: str) -> AbstractContextManager[None]:
        """Lock a journal while its run is deleted, then remove it; StoreFailed if another process holds it."""
        ...

    def under_way(self, name: str) -> list[CutTrial]:
        """The trials in this journal that a process is running now, up to their last event."""
        ...

    def keep_attachments(self, written: bytes | str, owner: str) -> None:
        """Keep the bytes of attachments that a run or conversation is about to mention, where available."""
        ...

    def put_aside(self, run_id: str, ledger: bytes, connection: Connection) -> bytes:
        """A packed ledger as a row keeps it: the bytes themselves, or where they are if it is large."""
        ...

    def fetched(self, stored: bytes) -> bytes:
        """The packed ledger from what a row keeps."""
        ...

    def cleared(self, owner: str, connection: Connection) -> None:
        """Delete what only this run or conversation needed, inside the transaction that deletes it."""
        ...

    def upgrade(self, blobs: str = "") -> str:
        """Create the tables or migrate them to the current format; return what was done.

        `blobs` is where large data is kept from now on; empty for the default place.
        """
        ...

    def about(self) -> list[tuple[str, str]]:
        """The facts that `greenroom store check` shows, each with its name."""
        ...

    def environment(self) -> dict[str, str]:
        """The environment variables that another process needs to open the store by its address."""
        ...

    def tidy(self) -> None:
        """Reclaim the space of what was deleted."""
        ...


class Reconnecting:
    """A connection for writing that is reopened if it was lost, until the patience runs out.

    Work done with it must be idempotent: a commit may have worked although its answer was lost.
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
        """The result of `work`."""
        until, pause = 0.0, 0.05
        while True:
            try:
                return work(self._open())
            except Exception as error:
                if not self._database.is_lost(error):
                    raise
                self.close()
                if not self._was_open:
                    raise  # the server may never have been reachable
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
        """Close the connection; the next work opens another."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def stop_waiting(self) -> None:
        """From now on, retry only for a moment; may be called from any thread."""
        # Not zero: the server may take a moment to notice that an earlier connection is gone.
        self._latest = monotonic() + _CLOSING
