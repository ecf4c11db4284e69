"""The executor that rehearsals give their event loops."""

import asyncio
import os
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_PATIENCE: Final = 1.0


class FencedExecutor(ThreadPoolExecutor):
    """Runs each job in the whole context of its submitter, in daemon threads.

    A job that hangs is left behind: shutting down waits a second at most, and the interpreter
    does not wait at all. (It is a `ThreadPoolExecutor` because event loops accept nothing else.)
    """

    def __init__(self, max_workers: int | None = None) -> None:
        self._most = max_workers or min(32, (os.cpu_count() or 1) + 4)
        super().__init__(self._most)
        self._jobs: SimpleQueue[_Job[Any] | None] = SimpleQueue()
        self._workers: list[Thread] = []
        self._spare = 0  # workers without a job, less jobs without a worker
        self._closed = False
        self._counting = Lock()

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        job = _Job(partial(fn, *args, **kwargs))
        with self._counting:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._jobs.put(job)
            self._spare -= 1
            if self._spare < 0 and len(self._workers) < self._most:
                self._hire()
        return job.future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        with self._counting:
            self._closed = True
            while cancel_futures and not self._jobs.empty():
                dropped = self._jobs.get()
                _ = dropped and dropped.future.cancel()
            for _ in self._workers:
                self._jobs.put(None)
        until = time.monotonic() + _PATIENCE
        for worker in self._workers if wait else ():
            worker.join(max(0.0, until - time.monotonic()))

    def _hire(self) -> None:
        worker = Thread(target=self._work, name=f"enclosed-{len(self._workers)}", daemon=True)
        worker.start()
        self._workers.append(worker)
        self._spare += 1

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job.do()
            # A finished job must not keep its result alive until the next one comes.
            del job
            with self._counting:
                self._spare += 1


class _Job(Generic[T]):
    """One call, the context it was asked for in, and the future of its result."""

    __slots__ = ("_call", "_context", "future")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._context = copy_context()
        self.future: Future[T] = Future()

    def do(self) -> None:
        if not self.future.set_running_or_notify_cancel():
            return
        try:
            result = self._context.run(self._call)
        except BaseException as error:  # noqa: BLE001 - whoever awaits the future decides
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


def fenced_executor(max_workers: int | None = None) -> FencedExecutor:
    """An executor for `loop.set_default_executor`, fit for work that may hang."""
    return FencedExecutor(max_workers)


@contextmanager
def lent_executor() -> Generator[None]:
    """Give the running loop such an executor for a while, unless it has one of its own.

    Who runs a loop waits for its default executor in the end, and so for a job that hangs.
    """
    loop: Any = asyncio.get_running_loop()
    if getattr(loop, "_default_executor", loop) is not None:
        yield
        return
    lent = fenced_executor()
    loop.set_default_executor(lent)
    try:
        yield
    finally:
        if loop._default_executor is lent:
            loop._default_executor = None
        lent.shutdown(wait=False)
