"""The SQLite file: how it is opened, written in short transactions, and what is said when it fails."""

import os
import sqlite3
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from greenroom.errors import StoreFailed, StoreRefused
from greenroom.ledger.ownership import check_ownership

VERSION = 1
JOURNALS = "journals"
_PATIENCE = 30.0
_AGAIN = 0.005
_PAGE = 16_384
"""A trial takes some thousand bytes: on larger pages than usual it is written in one piece."""
_SCHEMA = """
create table if not exists runs (
    id text primary key,
    name text not null,
    status text not null,
    begun real not null,
    ended real,
    seconds real not null default 0,
    spent real not null default 0,
    plan text not null,
    notes text not null default '[]'
) without rowid;
create table if not exists trials (
    run_id text not null,
    case_id text not null,
    trial integer not null,
    position integer not null,
    digest text not null,
    status text not null,
    verdict text not null,
    ledger blob not null,
    judging blob not null,
    primary key (run_id, case_id, trial)
);
"""


class Database:
    """One SQLite file. Each connection belongs to the thread that opened it."""

    __slots__ = ("path",)

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def connected(self) -> Generator[sqlite3.Connection]:
        """A connection for a while, where nothing can be written one to read by; complaints are named."""
        try:
            connection = self._opened()
            try:
                yield connection
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise self.failure(error) from error

    def _opened(self) -> sqlite3.Connection:
        try:
            return self.open()
        except StoreRefused:
            raise
        except (sqlite3.OperationalError, StoreFailed):
            found = self._open_to_read()
            if found is None:
                raise
            return found

    def _open_to_read(self) -> sqlite3.Connection | None:
        """A connection to a file that may not be written, as on a read-only disk, if it has one."""
        log = self.path.with_name(f"{self.path.name}-wal")
        # SQLite needs a file beside it to read a log; without a log nobody needs one.
        ways = ["mode=ro"] if _is_filled(log) else ["mode=ro", "mode=ro&immutable=1"]
        for way in ways if _is_filled(self.path) else ():
            connection = sqlite3.connect(f"{self.path.as_uri()}?{way}", uri=True)
            try:
                [version] = connection.execute("pragma user_version").fetchone()
                if version == VERSION:
                    return connection
            except sqlite3.Error:
                pass
            connection.close()
        return None

    def open(self) -> sqlite3.Connection:
        """A connection whose commits are on disk when they return."""
        try:
            folder, beside = self.path.parent, ("", "-wal", "-shm", "-journal")
            files = [self.path.with_name(f"{self.path.name}{end}") for end in beside]
            check_ownership(folder, files=files, folders=[folder / JOURNALS])
            self._make_folder()
        except OSError as error:
            raise StoreFailed(f"cannot keep runs in {self.path.parent}: {error}.") from error
        connection = sqlite3.connect(self.path, timeout=_PATIENCE, isolation_level=None)
        try:
            self._set_up(connection)
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

    def _set_up(self, connection: sqlite3.Connection) -> None:
        """SQLite refuses at once, without its usual patience, while another turns the file to WAL."""
        deadline = monotonic() + _PATIENCE
        while True:
            try:
                connection.execute(f"pragma page_size = {_PAGE}")  # of a file that is new
                connection.execute("pragma journal_mode = wal")
                connection.execute("pragma synchronous = full")
                return self._check_version(connection)
            except sqlite3.OperationalError as error:
                if not _is_locked(error) or monotonic() > deadline:
                    raise
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

    def _check_version(self, connection: sqlite3.Connection) -> None:
        [version] = connection.execute("pragma user_version").fetchone()
        if version > VERSION:
            raise StoreFailed(
                f"{self.path} was written by a newer Greenroom (format {version}, known {VERSION}). "
                f"Update greenroom, or keep runs elsewhere."
            )
        if version < VERSION:
            with transaction(connection):
                for statement in _SCHEMA.split(";"):
                    connection.execute(statement)
                connection.execute(f"pragma user_version = {VERSION}")

    def failure(self, error: sqlite3.Error) -> StoreFailed:
        """What to say of an error of SQLite's."""
        if _is_locked(error):
            hint = f"another process has held it for more than {_PATIENCE:g} s; try again"
        elif str(error) == "database or disk is full":
            hint = "free some space, then continue the run"
        elif not all(os.access(place, os.W_OK) for place in (self.path, self.path.parent)):
            hint = "it is read-only: its runs can be read, new ones have to be kept elsewhere"
        else:
            hint = "look at the file, or keep runs elsewhere"
        return StoreFailed(f"the store {self.path} cannot be used: {error}; {hint}.")


def _is_filled(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def _is_locked(error: sqlite3.Error) -> bool:
    return str(error) == "database is locked"


@contextmanager
def transaction(connection: sqlite3.Connection) -> Generator[None]:
    """All or nothing; the lock to write is taken at once, so nobody fails half-way."""
    connection.execute("begin immediate")
    try:
        yield
        connection.execute("commit")
    except BaseException:
        # A full disk has rolled back already.
        if connection.in_transaction:
            connection.execute("rollback")
        raise
