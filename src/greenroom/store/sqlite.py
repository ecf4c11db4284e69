"""A store in a folder: an SQLite file for finished trials, and journal files for the others."""

import os
import sqlite3
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from greenroom.errors import BadInput, StoreFailed, StoreRefused
from greenroom.ledger.blobs import FOLDER, BlobFolder
from greenroom.ledger.ownership import check_ownership
from greenroom.ledger.private_folders import make_private
from greenroom.store.checked_rows import DAMAGED, STORED, CheckedCursor, checked_row
from greenroom.store.cut_trials import CutTrial, being_written
from greenroom.store.database import Connection, Hold, Holdable, transaction
from greenroom.store.journal import Journal
from greenroom.store.lock import is_held, locked
from greenroom.store.orphan_blobs import remove_unmentioned
from greenroom.store.runs import journal_name
from greenroom.store.schema import VERSION, missing, read_earlier, upgrade

JOURNALS: Holdable = "journals"
_DATABASE = "runs.db"
_PATIENCE = 30.0
_AGAIN = 0.005
_PAGE = 16_384
"""Larger than the default: a trial takes some thousand bytes, and is then written in one piece."""


class SqliteConnection(sqlite3.Connection):
    """A connection of the thread that opened it."""

    file: os.stat_result | None = None
    """The file's identity when it was opened for writing."""

    def execute(self, sql: str, values: Any = (), /) -> CheckedCursor:
        """Run a statement; rows of the tables are checked as they are read."""
        cursor = self.cursor(CheckedCursor)
        if sql.startswith(("select", "with")):
            cursor.row_factory = checked_row
        return cursor.execute(sql, values)

    def begin(self) -> None:
        """Begin a transaction that writes: no other one does until it ends."""
        self.execute("begin immediate")

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Any]:
        """The rows that a query finds, one after the other."""
        return self.execute(sql, values)


class FileHold:
    """A lock file that this process holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = locked(folder)

    def check(self) -> None:
        """Nothing to check: what this process has locked stays locked."""

    def release(self) -> None:
        """Release the lock."""
        # Removed while it is held: a process that waits for it notices, and makes a new one.
        with suppress(OSError):
            (self._folder / "lock").unlink(missing_ok=True)
            self._folder.rmdir()
        os.close(self._lock)


class SqliteDatabase:
    """The SQLite file of one folder, and the files next to it."""

    __slots__ = ("address", "blobs", "folder", "path", "patience")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / _DATABASE
        self.address = str(folder)
        self.blobs = BlobFolder(folder / FOLDER)
        """The bytes of attachments that ledgers mention."""
        self.patience = 0.0

    def exists(self) -> bool:
        """Whether there is a file to read."""
        return self.path.exists()

    @contextmanager
    def connected(self, *, to_write: bool = False) -> Generator[SqliteConnection]:
        """A connection for a while, for reading unless `to_write`; SQLite's errors become StoreFailed."""
        try:
            connection = self.open() if to_write else self._open_to_read()
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise self._failure(error) from error

    def open(self) -> SqliteConnection:
        """A connection whose commits are on disk when they return; the file is migrated to the current format."""
        connection = self._open(to_write=True)
        connection.file = self._file()
        return connection

    def check(self, connection: Connection) -> None:
        """Raise StoreFailed if the file is no longer the one that was opened.

        SQLite continues writing to a deleted file, and all of that would be lost. The file is
        not opened here: closing it would release SQLite's locks.
        """
        now, before = self._file(), getattr(connection, "file", None)
        if before is not None and not os.path.samestat(before, now):
            raise StoreFailed(f"the store {self.path} was replaced during the run.")

    def _file(self) -> os.stat_result:
        try:
            return self.path.stat()
        except OSError as error:
            raise StoreFailed(f"the store {self.path} no longer exists: {error}.") from error

    # Locks: what only one process at a time works on

    def hold(self, kind: Holdable, name: str) -> Hold:
        """Lock a run or a conversation; StoreFailed while another process has the lock."""
        self._make_folder()
        return FileHold(self.folder / kind / name)

    def held(self, kind: Holdable, names: Collection[str]) -> set[str]:
        """The names, among these, that a process is working on."""
        return {name for name in names if is_held(self.folder / kind / name)}

    def journal(self, run_id: str, shard: str = "", *, is_begun: bool = False) -> Journal:
        """The journal of a run, or of one of its shards; StoreFailed while another process holds it."""
        self._make_folder()
        folder = self.folder / JOURNALS / journal_name(run_id, shard)
        return Journal(folder, self.blobs, is_begun=is_begun)

    @contextmanager
    def removing(self, name: str) -> Generator[None]:
        """Lock a journal while its run is deleted, then remove it."""
        journal, is_done = self.journal(name), False
        try:
            yield
            is_done = True
        finally:
            journal.close(remove=is_done)

    def under_way(self, name: str) -> list[CutTrial]:
        """The trials in this journal that a process is running now, up to their last event."""
        return [*being_written(self.folder / JOURNALS / name)]

    # Ledgers are kept in their rows, and attachments in a folder

    def keep_attachments(self, written: bytes | str, owner: str) -> None:  # noqa: ARG002
        """Keep the bytes of attachments about to be mentioned; their owners are found by searching."""
        self.blobs.keep_mentioned(written)

    def put_aside(self, run_id: str, ledger: bytes, connection: Connection) -> bytes:  # noqa: ARG002
        """The ledger itself: a file has room for any size."""
        return ledger

    def fetched(self, stored: bytes) -> bytes:
        """The ledger itself."""
        return stored

    def cleared(self, owner: str, connection: Connection) -> None:
        """Nothing to do: `tidy` searches the folder afterwards."""

    def upgrade(self, blobs: str = "") -> str:
        """Create the file or migrate it to the current format."""
        if blobs:
            raise BadInput("a store in a folder keeps everything there; leave out --blobs.")
        before = 0
        if _is_filled(self.path):
            with closing(sqlite3.connect(self.path, factory=SqliteConnection)) as connection:
                before = _version(connection)
        self.open().close()
        if before == VERSION:
            return f"{self.path} already has format {VERSION}"
        return f"{self.path} now has format {VERSION}" + (f"; it had {before}" if before else "")

    def about(self) -> list[tuple[str, str]]:
        """The facts that `greenroom store check` shows."""
        with self.connected() as connection:
            [runs] = connection.execute("select count(*) from runs").fetchone()
            [safe] = connection.execute("pragma quick_check").fetchone()
            lost = missing(connection) if _version(connection) == VERSION else []
        if safe != "ok" or lost:
            why = safe if safe != "ok" else f"it lacks {', '.join(lost)}"
            raise StoreFailed(f"{self.path} is damaged: {why}. Restore an older copy of it.")
        with self.connected() as connection:
            for table in STORED:
                for _ in connection.stream(f"select * from {table}"):
                    pass  # a row is checked when it is read
        return [("engine", f"SQLite {sqlite3.sqlite_version}"), ("runs", str(runs))]

    def environment(self) -> dict[str, str]:
        """No variables: a folder needs none."""
        return {}

    def tidy(self) -> None:
        """Reclaim the space of what was deleted, unless another process is using the file."""
        with self.connected(to_write=True) as connection, suppress(sqlite3.OperationalError):
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")
        remove_unmentioned(self)

    # Opening

    def _open_to_read(self) -> SqliteConnection:
        """A connection that does not migrate the file, which may be read-only."""
        try:
            return self._open(to_write=False)
        except StoreRefused:
            raise
        except (sqlite3.OperationalError, StoreFailed):
            found = self._open_read_only()
            if found is None:
                raise
            return found

    def _open_read_only(self) -> SqliteConnection | None:
        """A connection to a file that cannot be written, as on a read-only disk; None if it cannot be read either."""
        log = self.path.with_name(f"{self.path.name}-wal")
        # SQLite needs a file next to it to read a log; without a log it needs none.
        ways = ["mode=ro"] if _is_filled(log) else ["mode=ro", "mode=ro&immutable=1"]
        for way in ways if _is_filled(self.path) else ():
            connection = sqlite3.connect(
                f"{self.path.as_uri()}?{way}", uri=True, factory=SqliteConnection
            )
            try:
                self._check_ours(connection)
                if 0 < (version := _version(connection)) <= VERSION:
                    if version < VERSION:
                        read_earlier(connection, version)
                    return connection
            except sqlite3.Error:
                pass
            connection.close()
        return None

    def _open(self, *, to_write: bool) -> SqliteConnection:
        self._make_folder()
        try:
            if not self.path.exists():
                os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))
        except OSError as error:
            raise self._no_place(error) from error
        connection = sqlite3.connect(
            self.path, timeout=_PATIENCE, isolation_level=None, factory=SqliteConnection
        )
        try:
            self._set_up(connection, to_write=to_write)
        except BaseException:
            connection.close()
            raise
        return connection

    def _set_up(self, connection: SqliteConnection, *, to_write: bool) -> None:
        """Try until it works: SQLite does not wait while another process switches the file to WAL."""
        deadline = monotonic() + _PATIENCE
        while True:
            try:
                self._check_ours(connection)  # before anything is written to it
                connection.execute(f"pragma page_size = {_PAGE}")  # takes effect in a new file only
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = full")
                return self._check_version(connection, to_write=to_write)
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or monotonic() > deadline:
                    raise
                if connection.in_transaction:
                    connection.execute("rollback")
            sleep(_AGAIN)

    def _make_folder(self) -> None:
        """The folder is private: ledgers hold what was said word for word."""
        files = [
            self.path.with_name(f"{_DATABASE}{end}") for end in ("", "-wal", "-shm", "-journal")
        ]
        folders = [self.folder / JOURNALS, self.folder / FOLDER]
        try:
            check_ownership(self.folder, files=files, folders=folders)
            make_private(self.folder)
        except OSError as error:
            raise self._no_place(error) from error

    def _no_place(self, error: OSError) -> StoreFailed:
        return StoreFailed(f"cannot keep runs in {self.folder}: {error}.")

    def _check_ours(self, connection: SqliteConnection) -> None:
        """Refuse the database of another program: it is not empty, and lacks what a store of any format has."""
        [tables] = connection.execute("select count(*) from sqlite_master").fetchone()
        version = _version(connection)
        query = "select count(*) from pragma_table_info('runs') where name = 'plan'"
        if (tables or version) and not (version and connection.execute(query).fetchone()[0]):
            raise StoreRefused(
                f"{self.path} is a database of another program, and nothing is written to it. Keep runs in "
                f"another folder: --store DIR, GREENROOM_STORE."
            )

    def _check_version(self, connection: SqliteConnection, *, to_write: bool) -> None:
        version = _version(connection)
        if version > VERSION:
            raise StoreFailed(
                f"{self.path} was written by a newer Greenroom (format {version}; this one knows up to {VERSION}). "
                f"Update greenroom, or name another store."
            )
        if version == VERSION:
            return
        if version and not to_write:
            # Everything read from here on is of one moment and one format.
            connection.execute("begin")
            version = _version(connection)
            if version == VERSION:
                connection.execute("rollback")
            else:
                read_earlier(connection, version)
            return
        with transaction(connection):
            version = _version(connection)
            if version == VERSION:
                return  # another process was faster
            if version:
                self._check_nothing_runs(connection)
            upgrade(connection, version)

    def _check_nothing_runs(self, connection: SqliteConnection) -> None:
        """Leave the format alone while an earlier Greenroom is writing in it: its run would break."""
        for [run_id] in connection.execute("select id from runs where status = 'running'"):
            if is_held(self.path.parent / JOURNALS / run_id):
                raise StoreFailed(
                    f"{self.path} has the format of an earlier Greenroom, which is using it for run "
                    f"{run_id!r}. Wait until that run ends, or name another store."
                )

    def failure(self, error: Exception) -> StoreFailed | None:
        """The error to raise for one of SQLite's errors; None for any other error."""
        return self._failure(error) if isinstance(error, sqlite3.Error) else None

    def is_lost(self, error: Exception) -> bool:  # noqa: ARG002 - for those who have a server
        """False: a connection to a file is not lost."""
        return False

    def _failure(self, error: sqlite3.Error) -> StoreFailed:
        if _is_locked(error):
            hint = f"another process has held it for more than {_PATIENCE:g} s; try again"
        elif str(error) == "database or disk is full":
            hint = "free some space, then continue the run"
        elif str(error).startswith(DAMAGED):
            hint = "restore an older copy of it, or name another store"
        elif not all(os.access(place, os.W_OK) for place in (self.path, self.path.parent)):
            hint = "it is read-only: its runs can be read, but new ones need another store"
        else:
            hint = "check the file, or name another store"
        return StoreFailed(f"the store {self.path} cannot be used: {error}; {hint}.")


def _is_filled(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _version(connection: SqliteConnection) -> int:
    [version] = connection.execute("pragma user_version").fetchone()
    return version


def _is_locked(error: sqlite3.Error) -> bool:
    return str(error) == "database is locked"
