"""The one thread that writes to the database: trials that finish while it is busy go in together."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Thread
from time import sleep
from typing import Any, TypeVar

from msgspec import Struct

from greenroom.errors import GreenroomError, StoreFailed
from greenroom.store.database import Connection, Reconnecting
from greenroom.store.redaction import Cleaner
from greenroom.store.runs import Row, Run
from greenroom.store.store import Store

_GATHERING = 0.005
"""Seconds for which a finished trial waits for others: one disk sync costs more than several trials."""
T = TypeVar("T")
Kept = Callable[[GreenroomError | None], None]


class _Addition(Struct, frozen=True):
    """A finished trial, and the function to call when it is safe, or cannot be stored."""

    run: Run
    row: Callable[[], Row]
    tell: Kept


class _Job(Struct, frozen=True):
    """Any other work with the database."""

    work: Callable[[Connection], object]
    answer: "asyncio.Future[Any]"


class Writer:
    """Writes for one event loop, which never waits for the disk itself."""

    def __init__(self, store: Store, cleaner: Cleaner) -> None:
        self._store = store
        self._cleaner = cleaner
        self._loop = asyncio.get_running_loop()
        self._jobs: SimpleQueue[_Addition | _Job | None] = SimpleQueue()
        self._ended = asyncio.Event()
        self._is_open = True
        self._told_wrong: Exception | None = None
        self._database = Reconnecting(store.database)  # the thread's own
        Thread(target=self._write, name="greenroom-store", daemon=True).start()

    def add(self, run: Run, row: Callable[[], Row], tell: Kept) -> None:
        """Store a trial with the next group, and notify the loop when it is on disk."""
        self._jobs.put(_Addition(run, row, tell))

    async def do(self, work: Callable[[Connection], T]) -> T:
        """The result of `work`, which runs after everything given before.

        An error of a function that was told of a stored trial is raised here: nobody else waits for it.
        """
        answer: asyncio.Future[T] = self._loop.create_future()
        self._jobs.put(_Job(work, answer))
        # A caller that is cancelled while it waits must not cancel the work.
        done = await asyncio.shield(answer)
        if self._told_wrong is not None:
            error, self._told_wrong = self._told_wrong, None
            raise error
        return done

    def stop(self) -> None:
        """End the thread once everything is written, without waiting for it."""
        self._jobs.put(None)

    async def close(self) -> None:
        """End the thread once everything is written."""
        self.stop()
        await self._ended.wait()

    def _write(self) -> None:
        try:
            # What a round held is released before waiting for the next: ledgers can be large.
            while self._is_open:
                self._round()
        finally:
            self._database.close()
            self._call(self._ended.set)

    def _round(self) -> None:
        """Do the waiting jobs in order; consecutive additions go together."""
        group: list[_Addition] = []
        for job in self._gathered():
            if isinstance(job, _Addition):
                group.append(job)
                continue
            if group:
                self._commit(group)
                group = []
            if job is None:
                self._is_open = False
            else:
                self._run(job)
        if group:
            self._commit(group)

    def _gathered(self) -> "list[_Addition | _Job | None]":
        """The waiting jobs, at least one."""
        jobs = [self._jobs.get()]
        if isinstance(jobs[0], _Addition):
            sleep(_GATHERING)
        with suppress(Empty):
            while True:
                jobs.append(self._jobs.get_nowait())
        return jobs

    def _commit(self, group: Sequence[_Addition]) -> None:
        failure: GreenroomError | None = None
        try:
            rows = self._cleaner.rows([addition.row() for addition in group])
            self._database.do(lambda connection: self._store.add(group[0].run, rows, connection))
        except Exception as error:  # noqa: BLE001 - the waiting caller gets it
            failure = self._named(error)
        self._call(self._tell, group, failure)

    def _tell(self, group: Sequence[_Addition], failure: GreenroomError | None) -> None:
        for addition in group:
            try:
                addition.tell(failure)
            except Exception as error:  # noqa: BLE001 - raised by `do`; the other trials are told too
                self._told_wrong = self._told_wrong or error

    def _run(self, job: _Job) -> None:
        try:
            found = self._database.do(job.work)
        except Exception as error:  # noqa: BLE001 - the waiting caller gets it
            self._call(_fail, job.answer, self._named(error))
        else:
            self._call(_give, job.answer, found)

    def _call(self, tell: Callable[..., None], *about: object) -> None:
        """Have the loop call this, unless it is closed: then nothing waits."""
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(tell, *about)

    def _named(self, error: Exception) -> GreenroomError:
        if isinstance(error, GreenroomError):
            return error
        failure = self._store.database.failure(error)
        return failure or StoreFailed(f"cannot write to {self._store}: {error!r}.")


def _give(answer: "asyncio.Future[Any]", found: object) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail(answer: "asyncio.Future[Any]", error: GreenroomError) -> None:
    if not answer.done():
        answer.set_exception(error)
