"""The SQLite file: opening it, short transactions, and the errors that it can give."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep

from greenroom.errors import StoreFailed, StoreRefused
from greenroom.ledger.blobs import FOLDER
from greenroom.ledger.ownership import check_ownership
from greenroom.store.lock import is_held
from greenroom.store.schema import VERSION, read_earlier, upgrade

JOURNALS = "journals"
_PATIENCE = 30.0
_AGAIN = 0.005
_PAGE = 16_384
"""A trial takes some thousand bytes: on larger pages than usual it is written in one piece."""


class Database:
    """One SQLite file. Each connection belongs to the thread that opened it."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def connected(self, *, to_write: bool = False) -> Generator[sqlite3.Connection]:
        """A connection for a while, to read by unless asked otherwise; SQLite's errors become ours."""
        try:
            connection = self.open() if to_write else self._open_to_read()
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise self.failure(error) from error

    def shrink(self, connection: sqlite3.Connection) -> None:
        """Give the space of what was deleted back, unless another process is at work in the file."""
        with suppress(sqlite3.OperationalError):
            connection.execute("vacuum")
            connection.execute("pragma wal_checkpoint(truncate)")

    def open(self) -> sqlite3.Connection:
        """A connection whose commits are on disk when they return; the file has today's format then."""
        return self._open(to_write=True)

    def _open_to_read(self) -> sqlite3.Connection:
        """A connection that leaves the format as it is, also to a file that cannot be written."""
        try:
            return self._open(to_write=False)
        except StoreRefused:
            raise
        except (sqlite3.OperationalError, StoreFailed):
            found = self._open_read_only()
            if found is None:
                raise
            return found

    def _open_read_only(self) -> sqlite3.Connection | None:
        """A connection to a file that may not be written, as on a read-only disk; None without one."""
        log = self.path.with_name(f"{self.path.name}-wal")
        # SQLite needs a file beside it to read a log; without a log it needs none.
        ways = ["mode=ro"] if _is_filled(log) else ["mode=ro", "mode=ro&immutable=1"]
        for way in ways if _is_filled(self.path) else ():
            connection = sqlite3.connect(f"{self.path.as_uri()}?{way}", uri=True)
            try:
                if 0 < (version := _version(connection)) <= VERSION:
                    if version < VERSION:
                        read_earlier(connection, version)
                    return connection
            except sqlite3.Error:
                pass
            connection.close()
        return None

    def _open(self, *, to_write: bool) -> sqlite3.Connection:
        try:
            folder, beside = self.path.parent, ("", "-wal", "-shm", "-journal")
            files = [self.path.with_name(f"{self.path.name}{end}") for end in beside]
            check_ownership(folder, files=files, folders=[folder / JOURNALS, folder / FOLDER])
            self._make_folder()
        except OSError as error:
            raise StoreFailed(f"cannot keep runs in {self.path.parent}: {error}.") from error
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            self._set_up(connection, to_write=to_write)
        except BaseException:
            connection.close()
            raise
        return connection

    def same_file(self, before: os.stat_result | None) -> os.stat_result:
        """The file as it is now; StoreFailed if it is not the one that it was `before`.

        SQLite goes on writing to a file that was deleted, and all of that would be lost. The file is
        not even opened here: closing it again would take SQLite's locks away.
        """
        try:
            now = self.path.stat()
        except OSError as error:
            raise StoreFailed(f"the store {self.path} is gone: {error}.") from error
        if before is not None and not os.path.samestat(before, now):
            raise StoreFailed(f"the store {self.path} was replaced while the run was under way.")
        return now

    def _set_up(self, connection: sqlite3.Connection, *, to_write: bool) -> None:
        """Try until it works: SQLite does not wait while another process turns the file to WAL."""
        deadline = monotonic() + _PATIENCE
        while True:
            try:
                connection.execute(f"pragma page_size = {_PAGE}")  # of a file that is new
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
        folder = self.path.parent
        if not folder.exists():
            # Others may have the same thought at the same moment.
            folder.mkdir(parents=True, mode=0o700, exist_ok=True)
            (folder / ".gitignore").write_text("*\n", encoding="utf-8")
        if not self.path.exists():
            os.close(os.open(self.path, os.O_RDWR | os.O_CREAT, 0o600))

    def _check_version(self, connection: sqlite3.Connection, *, to_write: bool) -> None:
        version = _version(connection)
        if version > VERSION:
            raise StoreFailed(
                f"{self.path} was written by a newer Greenroom (format {version}, known {VERSION}). "
                f"Update greenroom, or name another store."
            )
        if version == VERSION:
            return
        if version and not to_write:
            connection.execute("begin")  # what is read from here on is of one moment and one format
            version = _version(connection)
            if version == VERSION:
                connection.execute("rollback")
            else:
                read_earlier(connection, version)
            return
        with transaction(connection):
            version = _version(connection)
            if version == VERSION:
                return  # another process was quicker
            if version:
                self._check_nothing_runs(connection)
            upgrade(connection, version)

    def _check_nothing_runs(self, connection: sqlite3.Connection) -> None:
        """Leave the format alone while an earlier Greenroom is writing in it: its run would break."""
        for [run_id] in connection.execute("select id from runs where status = 'running'"):
            if is_held(self.path.parent / JOURNALS / run_id):
                raise StoreFailed(
                    f"{self.path} has the format of an earlier Greenroom, which is using it for run "
                    f"{run_id!r}. Wait until that run ends, or name another store."
                )

    def failure(self, error: sqlite3.Error) -> StoreFailed:
        """The error to raise for one of SQLite's."""
        if _is_locked(error):
            hint = f"another process has held it for more than {_PATIENCE:g} s; try again"
        elif str(error) == "database or disk is full":
            hint = "free some space, then continue the run"
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


def _version(connection: sqlite3.Connection) -> int:
    [version] = connection.execute("pragma user_version").fetchone()
    return version


def _is_locked(error: sqlite3.Error) -> bool:
    return str(error) == "database is locked"


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All or nothing; the lock to write is taken at once, so no transaction fails half-way."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("rollback")
        raise
