"""Advisory locks: what only one process at a time works on, and whether locks work at all."""

from contextlib import suppress
from os import urandom
from threading import Lock
from typing import TYPE_CHECKING
from weakref import ref

import psycopg

from greenroom.errors import StoreFailed
from greenroom.store.database import Hold, Holdable
from greenroom.store.lock import under_way
from greenroom.store.postgres.connection import PostgresConnection

if TYPE_CHECKING:
    from greenroom.store.postgres.database import PostgresDatabase


_CALLED = {"journals": "run", "conversations": "conversation"}


def check_session(
    one: PostgresConnection, other: PostgresConnection, address: str, number: int = 0
) -> None:
    """StoreFailed if two connections share a session, as behind PgBouncer in transaction mode.

    `number` is a lock that `one` holds, if any.
    """
    tried = number or int.from_bytes(urandom(7))
    if not number:
        one.execute("select pg_advisory_lock(?)", (tried,))
    # The session that holds a lock can take it again; no other can.
    [got] = other.execute("select pg_try_advisory_lock(?)", (tried,)).fetchone() or [False]
    if got:
        other.execute("select pg_advisory_unlock(?)", (tried,))
        raise pooled(address)
    if not number:
        one.execute("select pg_advisory_unlock(?)", (tried,))


def pooled(address: str) -> StoreFailed:
    """The error for a pooler that shares sessions: no run can be recorded through it."""
    return StoreFailed(
        f"{address} leads to a pooler that gives each transaction another session (PgBouncer in "
        f"transaction mode), so nothing can be locked for a run. Connect to the server itself, or to "
        f"a pool in session mode."
    )


class SharedLocks:
    """The conversations that this process has locked, by one connection for all of them."""

    def __init__(self, database: "ref[PostgresDatabase]") -> None:
        self._database = database
        self._connection: PostgresConnection | None = None
        self._held: set[int] = set()
        self._guard = Lock()

    def hold(self, number: int, kind: Holdable, name: str) -> Hold:
        """Take a lock; StoreFailed while another process has it, or another thread of this one."""
        with self._guard:
            if number in self._held or not self._lock(number):
                raise under_way(name, _CALLED[kind])
            self._held.add(number)
        return _SharedHold(self, number, name)

    def _lock(self, number: int) -> bool:
        self._renew()
        assert self._connection is not None
        query = "select pg_try_advisory_lock(?)"
        [got] = self._connection.execute(query, (number,)).fetchone() or [False]
        return bool(got)

    def _renew(self) -> None:
        """Connect, again if the connection was lost; locks that were held are taken again, if they are free."""
        if self._connection is not None:
            with suppress(psycopg.Error):
                self._connection.raw.execute("select 1")
                return
        database = self._database()
        assert database is not None, "what holds a lock has the store"
        self._connection = database.open()
        for number in tuple(self._held):
            if not self._lock(number):
                self._held.discard(number)

    def close(self) -> None:
        """Release everything."""
        if self._connection is not None:
            self._connection.close()

    def check(self, number: int, name: str) -> None:
        """Raise StoreFailed if the lock was lost with its connection."""
        with self._guard:
            self._renew()
            if number not in self._held:
                raise under_way(name, "conversation")

    def release(self, number: int) -> None:
        """Release the lock."""
        with self._guard, suppress(psycopg.Error):
            self._held.discard(number)
            if self._connection is not None:
                self._connection.execute("select pg_advisory_unlock(?)", (number,))


class _SharedHold:
    def __init__(self, locks: SharedLocks, number: int, name: str) -> None:
        self._locks = locks
        self._number = number
        self._name = name

    def check(self) -> None:
        """Raise StoreFailed if the lock was lost."""
        self._locks.check(self._number, self._name)

    def release(self) -> None:
        """Release the lock."""
        self._locks.release(self._number)
