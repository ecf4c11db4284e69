"""A connection to Postgres that takes the store's SQL, and the errors that it can give."""

import json
from collections.abc import Generator, Iterable, Iterator, Sequence
from functools import lru_cache
from math import inf
from time import monotonic
from typing import Any, LiteralString, TypeVar, cast

import psycopg
from psycopg import capabilities, errors
from psycopg.pq import TransactionStatus

from greenroom.store.columns import ODD, OddText

_LOST = ("08", "57P01", "57P02", "57P03", "57P05", "53300", "25P03")
"""The beginnings of codes for: the server went away, comes up, or has no connection to spare just now."""
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)
_AT_ONCE = 100
T = TypeVar("T")


class StillHeld(psycopg.OperationalError):
    """A lock that a connection had which is gone has not been let go of yet: to be tried again."""


class ServerSilent(psycopg.OperationalError):
    """The connection is there, but the server did not answer: it stands still, or something between swallows all."""


class RawConnection(psycopg.Connection["tuple[Any, ...]"]):
    """A connection that gives up on a server from which nothing comes for `silence` seconds.

    Neither keepalives nor a limit of the server itself would notice: a process that stands still is
    acknowledged by its kernel, and one that cannot be reached keeps no time for us.
    """

    silence: float = inf

    def wait(self, gen: Any, *given: Any, **named: Any) -> Any:
        """What psycopg's dialogue with the server comes to."""
        return super().wait(_heard(gen, self.silence), *given, **named)


def _heard(dialogue: Generator[object, object, T], seconds: float) -> Generator[Any, Any, T]:
    """The same dialogue, ended when nothing was heard for so long; psycopg looks in ten times a second."""
    until = monotonic() + seconds
    try:
        wanted = next(dialogue)
        while True:
            ready = yield wanted
            if ready:
                until = monotonic() + seconds
            elif monotonic() > until:
                raise ServerSilent(f"the server has not answered for {seconds:g} s")
            wanted = dialogue.send(ready)
    except StopIteration as end:
        return end.value


class PostgresConnection:
    """A connection of one thread. Each statement is a transaction, unless one was begun."""

    __slots__ = ("raw",)

    def __init__(self, raw: RawConnection) -> None:
        self.raw = raw

    @property
    def in_transaction(self) -> bool:
        """Whether a transaction is open."""
        return self.raw.info.transaction_status in _OPEN

    def execute(self, sql: str, values: Sequence[object] = ()) -> "psycopg.Cursor[tuple[Any, ...]]":
        """Run a statement; a `?` stands for each value."""
        return self.raw.execute(translated(sql), [*map(_plain, values)])

    def executemany(self, sql: str, rows: Iterable[Sequence[object]]) -> None:
        """Run a statement for each row of values."""
        with self.raw.cursor() as cursor:
            cursor.executemany(translated(sql), [[*map(_plain, row)] for row in rows])

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows that a query finds, some at a time: they need not fit into memory together."""
        size = _AT_ONCE if capabilities.has_stream_chunked() else 1
        return self.raw.cursor().stream(translated(sql), [*map(_plain, values)], size=size)

    def begin(self) -> None:
        """Begin a transaction that writes: it has the one row that all of these need."""
        try:
            self.raw.execute("begin; select position from store for update")
        except psycopg.Error:
            if self.in_transaction:
                self.rollback()
            raise

    def commit(self) -> None:
        """End the transaction; all of it is on disk then."""
        self.raw.execute("commit")

    def rollback(self) -> None:
        """End the transaction as if it had not begun."""
        self.raw.execute("rollback")

    def close(self) -> None:
        """Let go of the server."""
        self.raw.close()


@lru_cache(maxsize=512)
def translated(sql: str) -> LiteralString:
    """The statement as Postgres takes it: the values have numbers."""
    first, *others = sql.split("?")
    numbered = [f"${number}{part}" for number, part in enumerate(others, 1)]
    return cast("LiteralString", first + "".join(numbered))


def _plain(value: object) -> Any:
    """A value as Postgres takes it."""
    if isinstance(value, str):
        return ODD + json.dumps(value) if "\0" in value else value
    if isinstance(value, OddText):
        return ODD + json.dumps(value.decode(errors="surrogatepass"))
    return [*map(_plain, cast("list[Any]", value))] if isinstance(value, list) else value


def is_lost(error: Exception) -> bool:
    """Whether an error means that the connection is gone, and another one may do."""
    if isinstance(error, errors.Error) and error.sqlstate is not None:
        return error.sqlstate.startswith(_LOST)
    # Without a code it is libpq that speaks: there is no connection, or none any more.
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def said(error: psycopg.Error) -> str:
    """What the server or libpq says, on one line and without the values that it is about."""
    text = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(text.split()).rstrip(".")
