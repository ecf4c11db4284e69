"""A connection to Postgres that accepts the store's SQL, and the errors it can raise."""

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
"""Prefixes of error codes for a server that went away, is starting up, or has no free connection."""
_OPEN = (TransactionStatus.INTRANS, TransactionStatus.INERROR, TransactionStatus.ACTIVE)
_AT_ONCE = 100
T = TypeVar("T")


class StillHeld(psycopg.OperationalError):
    """A lock of a lost connection has not been released yet: try again."""


class ServerSilent(psycopg.OperationalError):
    """The connection is open, but the server does not answer: it hangs, or something in between drops packets."""


class RawConnection(psycopg.Connection["tuple[Any, ...]"]):
    """A connection that gives up on a server that sends nothing for `silence` seconds.

    Neither keepalives nor a server-side limit would notice: a hung process is
    still acknowledged by its kernel, and an unreachable one cannot enforce a limit.
    """

    silence: float = inf

    def wait(self, gen: Any, *given: Any, **named: Any) -> Any:
        """The result of psycopg's dialogue with the server."""
        return super().wait(_heard(gen, self.silence), *given, **named)


def _heard(dialogue: Generator[object, object, T], seconds: float) -> Generator[Any, Any, T]:
    """psycopg's dialogue, ended after this many seconds of silence; psycopg checks ten times a second."""
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
        """Run a statement; each `?` is replaced by a value."""
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
        """Begin a transaction that writes: it locks the one row that every such transaction needs."""
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
        """Close the connection."""
        self.raw.close()


@lru_cache(maxsize=512)
def translated(sql: str) -> LiteralString:
    """The statement as Postgres takes it: with numbered placeholders."""
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
    """Whether an error means that the connection was lost, and a new one may work."""
    if isinstance(error, errors.Error) and error.sqlstate is not None:
        return error.sqlstate.startswith(_LOST)
    # Without a code the error is libpq's: there is no connection, or it was lost.
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError)


def said(error: psycopg.Error) -> str:
    """The error message of the server or libpq, on one line and without the values involved."""
    text = error.diag.message_primary or str(error) or type(error).__name__
    return " ".join(text.split()).rstrip(".")
