"""The one thread that writes to the database: trials that finish while it is busy go in together."""

import asyncio
import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from queue import Empty, SimpleQueue
from threading import Thread
from time import sleep
from typing import Any, TypeVar

from greenroom.errors import GreenroomError, StoreFailed
from greenroom.ledger.records import record
from greenroom.store.runs import Row
from greenroom.store.store import Store

_GATHERING = 0.005
"""Seconds for which a finished trial waits for others: a sync of the disk costs more than they do."""
T = TypeVar("T")
Kept = Callable[[GreenroomError | None], None]


@record
class _Addition:
    """A finished trial, and whom to tell when it is safe, or why it is not."""

    run_id: str
    row: Callable[[], Row]
    tell: Kept


@record
class _Errand:
    """Anything else that is to be done with the database."""

    work: Callable[[sqlite3.Connection], Any]
    answer: "asyncio.Future[Any]"


class Writer:
    """Writes for one event loop, which never waits for the disk itself."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Addition | _Errand | None] = SimpleQueue()
        self._ended = asyncio.Event()
        Thread(target=self._write, name="greenroom-store", daemon=True).start()

    def add(self, run_id: str, row: Callable[[], Row], tell: Kept) -> None:
        """Keep a trial with the next group, and tell the loop when it is on disk."""
        self._jobs.put(_Addition(run_id, row, tell))

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """What `work` comes to, after all that was given before."""
        answer: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Errand(work, answer))
        # Whoever is cancelled while it waits must not take the work along.
        return await asyncio.shield(answer)

    async def close(self) -> None:
        """End the thread once everything is written."""
        self._jobs.put(None)
        await self._ended.wait()

    def _write(self) -> None:
        connection: sqlite3.Connection | None = None
        try:
            for additions, jobs in self._batches():
                try:
                    connection = connection or self._store.database.open()
                except Exception as error:  # noqa: BLE001 - whoever waits has to be told
                    self._refuse(jobs, self._named(error))
                    continue
                if additions:
                    self._commit(jobs, connection)
                else:
                    self._run(jobs[0], connection)
        finally:
            if connection is not None:
                connection.close()
            self._loop.call_soon_threadsafe(self._ended.set)

    def _batches(self) -> "Iterator[tuple[bool, list[Any]]]":
        """The jobs in their order, until there are no more; additions that wait go together."""
        while True:
            jobs = [self._jobs.get()]
            if isinstance(jobs[0], _Addition):
                sleep(_GATHERING)
            with suppress(Empty):
                while True:
                    jobs.append(self._jobs.get_nowait())
            for kind, group in groupby(jobs, type):
                if kind is _Addition:
                    yield True, list(group)
                elif kind is _Errand:
                    yield from ((False, [errand]) for errand in group)
                else:
                    return

    def _commit(self, group: Sequence[_Addition], connection: sqlite3.Connection) -> None:
        failure: GreenroomError | None = None
        try:
            rows = [addition.row() for addition in group]
            self._store.add(group[0].run_id, rows, connection)
        except Exception as error:  # noqa: BLE001 - whoever waits has to be told
            failure = self._named(error)
        self._loop.call_soon_threadsafe(_tell, group, failure)

    def _run(self, errand: _Errand, connection: sqlite3.Connection) -> None:
        try:
            found = errand.work(connection)
        except Exception as error:  # noqa: BLE001 - whoever waits has to be told
            self._loop.call_soon_threadsafe(_fail, errand.answer, self._named(error))
        else:
            self._loop.call_soon_threadsafe(_give, errand.answer, found)

    def _refuse(self, jobs: "Sequence[_Addition | _Errand]", error: GreenroomError) -> None:
        for job in jobs:
            if isinstance(job, _Errand):
                self._loop.call_soon_threadsafe(_fail, job.answer, error)
            else:
                self._loop.call_soon_threadsafe(_tell, [job], error)

    def _named(self, error: Exception) -> GreenroomError:
        if isinstance(error, sqlite3.Error):
            return self._store.database.failure(error)
        if isinstance(error, GreenroomError):
            return error
        return StoreFailed(f"cannot be written to {self._store.database.path}: {error!r}.")


def _tell(group: Sequence[_Addition], failure: GreenroomError | None) -> None:
    for addition in group:
        addition.tell(failure)


def _give(answer: "asyncio.Future[Any]", found: Any) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail(answer: "asyncio.Future[Any]", error: GreenroomError) -> None:
    if not answer.done():
        answer.set_exception(error)
