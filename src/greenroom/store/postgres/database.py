"""A schema of a Postgres server as the store's database."""

import shlex
from collections.abc import Callable, Collection, Generator
from contextlib import contextmanager, suppress
from hashlib import sha256
from pathlib import Path
from threading import Lock
from time import monotonic
from weakref import finalize, ref

import psycopg
from psycopg import errors, sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from greenroom.errors import BadInput, StoreFailed
from greenroom.ledger.blobs import ask_also, at_hand, digests_in, is_any_known
from greenroom.ledger.private_folders import HOME
from greenroom.store.cut_trials import CutTrial
from greenroom.store.database import Connection, Hold, Holdable, transaction
from greenroom.store.postgres import administration
from greenroom.store.postgres.address import read_address
from greenroom.store.postgres.blobs import LARGE, BlobPlace, blob_place
from greenroom.store.postgres.connection import PostgresConnection, RawConnection, is_lost, said
from greenroom.store.postgres.journal import TableJournal, written_by
from greenroom.store.postgres.locks import SharedLocks
from greenroom.store.postgres.schema import READER, VERSION, WRITER

_ASIDE = b"@"
"""The first byte of a ledger that is kept elsewhere; its digest follows."""
_IDLE = 60.0
_MOST_IDLE = 4
_CONNECTING = {
    "connect_timeout": "10",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "30000",
    "application_name": "greenroom",
}
"""Default options for libpq, so that a lost server is noticed; the address may override them."""
_SETTINGS = (
    "select set_config('search_path', $1, false), "
    # The server also notices a lost client, and releases its locks.
    "set_config('tcp_keepalives_idle', '10', false), "
    "set_config('tcp_keepalives_interval', '5', false), "
    "set_config('tcp_keepalives_count', '3', false), "
    "set_config('tcp_user_timeout', '30000', false), "
    # With synchronous_commit off, a tool might act twice after a crash.
    "case current_setting('synchronous_commit') "
    "when 'off' then set_config('synchronous_commit', 'on', false) end"
)
_SHORT = 5.0
"""A run gives up on a statement after its patience, but no sooner than this: others wait for each."""
_LONG = 300.0
"""The limit for statements that read or delete a lot, which may take long."""
_HELD = (
    "select (classid::bigint << 32) | objid::bigint from pg_locks where locktype = 'advisory' and "
    "objsubid = 1 and granted and database = "
    "(select oid from pg_database where datname = current_database())"
)


class PostgresDatabase:
    """The tables of one schema on a server."""

    def __init__(self, address: str) -> None:
        self._address = read_address(address)
        self.address = self._address.shown
        self.folder = Path(HOME).absolute()
        self.patience = self._address.patience
        self.schema = self._address.schema
        try:
            given = conninfo_to_dict(self._address.conninfo)
        except psycopg.Error as error:
            raise BadInput(
                f"{self.address} is not an address of a server: {said(error)}."
            ) from error
        self._conninfo = make_conninfo("", **{**_CONNECTING, **given})
        self._idle: list[tuple[PostgresConnection, float]] = []
        self._guard = Lock()
        self._locks = SharedLocks(ref(self))
        self._mentioned: set[tuple[str, str]] = set()
        self._blobs: BlobPlace | None = None
        self._unneeded: set[str] = set()
        ask_also(self.address, _asking(ref(self)))
        finalize(self, _close_all, self._idle, self._locks)

    # Connections

    def exists(self) -> bool:
        """True: only connecting shows whether there is a store."""
        return True

    @contextmanager
    def connected(self, *, to_write: bool = False) -> Generator[PostgresConnection]:  # noqa: ARG002
        """A connection for a while; Postgres's errors become StoreFailed."""
        try:
            connection = self._taken() or self.open()
            connection.raw.silence = max(self.patience, _LONG)
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._give_back(connection)
        except psycopg.Error as error:
            raise self.named(error) from error

    def _taken(self) -> PostgresConnection | None:
        """A connection that was used a moment ago, if it still works."""
        while self._idle:
            with self._guard, suppress(IndexError):
                connection, since = self._idle.pop()
                if monotonic() - since < _IDLE:
                    with suppress(psycopg.Error):
                        connection.raw.execute("select 1")
                        return connection
                connection.close()
        return None

    def _give_back(self, connection: PostgresConnection) -> None:
        is_fresh = not connection.raw.closed and not connection.in_transaction
        with self._guard:
            if is_fresh and len(self._idle) < _MOST_IDLE:
                self._idle.append((connection, monotonic()))
                return
        connection.close()

    def open(self) -> PostgresConnection:
        """A connection to tables of the current format, whose commits are on disk when they return."""
        connection = self.connect()
        try:
            self._check_version(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def connect(self) -> PostgresConnection:
        """A connection to the server, whatever tables it has."""
        raw = RawConnection.connect(
            # psycopg would search every statement for its own placeholders, which is slow.
            self._conninfo,
            autocommit=True,
            cursor_factory=psycopg.RawCursor,
        )
        raw.silence = max(self.patience, _SHORT)
        try:
            raw.execute(_SETTINGS, [sql.Identifier(self.schema).as_string()])
        except BaseException:
            raw.close()
            raise
        return PostgresConnection(raw)

    def _check_version(self, connection: PostgresConnection) -> None:
        try:
            [version, blobs] = connection.execute(
                "select version, blobs from format"
            ).fetchone() or (0, "")
        except errors.UndefinedTable:
            raise StoreFailed(
                f"there is no store in {self.address} yet. Ask someone who may create tables there to run: "
                f"greenroom store init --store {shlex.quote(self.address)}"
            ) from None
        if version > VERSION:
            raise StoreFailed(
                f"{self.address} was written by a newer Greenroom (format {version}; this one knows up to {VERSION}). "
                f"Update greenroom, or name another store."
            )
        if version < VERSION:
            raise StoreFailed(
                f"{self.address} has format {version}, and this Greenroom needs {VERSION}. Ask someone who "
                f"may change its tables to run: greenroom store migrate --store {shlex.quote(self.address)}"
            )
        self._blobs = blob_place(blobs)

    def check(self, connection: Connection) -> None:
        """Nothing to check: what is committed is on the server."""

    def failure(self, error: Exception) -> StoreFailed | None:
        """The error to raise for one of Postgres's errors; None for any other error."""
        return self.named(error) if isinstance(error, psycopg.Error) else None

    def is_lost(self, error: Exception) -> bool:
        """Whether an error means that the connection was lost, and a new one may work."""
        return is_lost(error)

    def named(self, error: psycopg.Error) -> StoreFailed:
        """The error to raise for one of Postgres's errors, with advice."""
        if isinstance(error, errors.DiskFull):
            hint = "free some space on the server"
        elif isinstance(error, errors.InsufficientPrivilege):
            hint = f"this user lacks the rights: grant {WRITER} to users who run evaluations, {READER} to those who only read"
        elif is_lost(error):
            hint = "check that the server is up and can be reached, and the password in ~/.pgpass"
        else:
            hint = "`greenroom store check` says more"
        why = said(error)
        if self._address.password:
            why = why.replace(self._address.password, "***")
        return StoreFailed(f"the store {self.address} cannot be used: {why}; {hint}.")

    # Locks: what only one process at a time works on

    def lock_number(self, kind: Holdable, name: str) -> int:
        """The number of the advisory lock for this run or conversation."""
        digest = sha256(f"{self.schema}/{kind}/{name}".encode()).digest()
        return int.from_bytes(digest[:8], signed=True)

    def hold(self, kind: Holdable, name: str) -> Hold:
        """Lock a conversation; StoreFailed while another process has the lock."""
        try:
            return self._locks.hold(self.lock_number(kind, name), kind, name)
        except psycopg.Error as error:
            raise self.named(error) from error

    def held(self, kind: Holdable, names: Collection[str]) -> set[str]:
        """The names, among these, that a process is working on."""
        with self.connected() as connection:
            return self.held_by(connection, kind, names)

    def held_by(
        self, connection: PostgresConnection, kind: Holdable, names: Collection[str]
    ) -> set[str]:
        """The names, among these, that a process is working on, asked by this connection."""
        locked = {number for [number] in connection.execute(_HELD)}
        return {name for name in names if self.lock_number(kind, name) in locked}

    def journal(
        self,
        run_id: str,
        shard: str = "",
        *,
        is_begun: bool = False,  # noqa: ARG002 - a table is not removed by itself
    ) -> TableJournal:
        """The journal of a run, or of one of its shards; StoreFailed while another process holds it."""
        try:
            return TableJournal(self, run_id, shard)
        except psycopg.Error as error:
            raise self.named(error) from error

    @contextmanager
    def removing(self, name: str) -> Generator[None]:
        """Lock a journal while its run is deleted, then remove it."""
        held = self.hold("journals", name)
        try:
            yield
            with self.connected(to_write=True) as connection:
                connection.execute("delete from events where run_id = ?", (name,))
        finally:
            held.release()

    def under_way(self, name: str) -> list[CutTrial]:
        """The trials in progress; none for users who may only read finished ones."""
        with self.connected() as connection:
            try:
                return [cut for cut in written_by(name, connection) if not cut.damage]
            except errors.InsufficientPrivilege:
                return []

    # Attachments, and ledgers that are too large for a row

    def keep_attachments(self, written: bytes | str, owner: str) -> None:
        """Keep the bytes of attachments about to be mentioned, and which run or conversation owns them."""
        if not is_any_known():
            return
        text = written if isinstance(written, str) else written.decode(errors="replace")
        new = [one for one in digests_in(text) if (owner, one) not in self._mentioned]
        if not new:
            return
        with self.connected(to_write=True) as connection, transaction(connection):
            for digest in new:
                self._keep(digest, at_hand(digest), owner, connection)
        self._mentioned.update((owner, digest) for digest in new)

    def _keep(
        self, digest: str, data: bytes | None, owner: str, connection: PostgresConnection
    ) -> None:
        found = connection.execute("select 1 from blobs where digest = ?", (digest,)).fetchone()
        if found is None:
            if data is None:
                return
            if self._blobs is not None:
                self._blobs.put(digest, data)
            connection.execute(
                "insert into blobs values (?, ?)", (digest, None if self._blobs else data)
            )
        connection.execute(
            "insert into mentions values (?, ?) on conflict do nothing", (owner, digest)
        )

    def attachment(self, digest: str) -> bytes | None:
        """The bytes of an attachment, if this store has them."""
        with suppress(StoreFailed), self.connected() as connection:
            query = "select data from blobs where digest = ?"
            found = connection.execute(query, (digest,)).fetchone()
            if found is not None:
                return found[0] if found[0] is not None else self._elsewhere(digest)
        return None

    def put_aside(self, run_id: str, ledger: bytes, connection: Connection) -> bytes:
        """A packed ledger as a row keeps it; a large one goes where the store keeps its blobs, if anywhere."""
        if self._blobs is None or len(ledger) < LARGE:
            return ledger
        assert isinstance(connection, PostgresConnection)
        digest = sha256(ledger).hexdigest()
        self._keep(digest, ledger, run_id, connection)
        return _ASIDE + digest.encode()

    def fetched(self, stored: bytes) -> bytes:
        """The packed ledger from what a row keeps."""
        return self._elsewhere(stored[1:].decode()) if stored[:1] == _ASIDE else stored

    def _elsewhere(self, digest: str) -> bytes:
        if self._blobs is None:
            raise StoreFailed(f"{self.address} no longer says where its blobs are.")
        return self._blobs.get(digest)

    def cleared(self, owner: str, connection: Connection) -> None:
        """Delete the blobs that only this run or conversation mentions."""
        connection.execute("delete from mentions where owner = ?", (owner,))
        query = (
            "delete from blobs where not exists (select 1 from mentions where "
            "mentions.digest = blobs.digest) returning digest, data is null"
        )
        rows = connection.execute(query).fetchall()
        self._unneeded |= {digest for digest, is_elsewhere in rows if is_elsewhere}

    def tidy(self) -> None:
        """Remove the files of deleted blobs; the server itself reclaims the space of rows."""
        while self._unneeded and self._blobs is not None:
            self._blobs.remove(self._unneeded.pop())

    # What `greenroom store` does

    def upgrade(self, blobs: str = "") -> str:
        """Create the tables or migrate them to the current format; return what was done."""
        return administration.upgrade(self, blobs)

    def about(self) -> list[tuple[str, str]]:
        """The facts that `greenroom store check` shows; StoreFailed if no run could be recorded in it."""
        return administration.about(self, str(self._blobs or "in the tables"))

    def environment(self) -> dict[str, str]:
        """The password, if the address was given with one."""
        return {"PGPASSWORD": self._address.password} if self._address.password else {}


def _asking(database: "ref[PostgresDatabase]") -> Callable[[str], bytes | None]:
    """Asks a store for bytes for as long as the store is in use."""

    def ask(digest: str) -> bytes | None:
        found = database()
        return None if found is None else found.attachment(digest)

    return ask


def _close_all(idle: list[tuple[PostgresConnection, float]], locks: SharedLocks) -> None:
    """Close what is open when the store is no longer used."""
    locks.close()
    while idle:
        idle.pop()[0].close()
