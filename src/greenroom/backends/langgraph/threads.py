"""Synchronous nodes, models and tools: they wait in their thread while the World answers."""

import asyncio
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from threading import Event, Lock, get_ident
from typing import Any, Generic, ParamSpec, TypeVar

from greenroom.world.threads import call_blocking

T = TypeVar("T")
P = ParamSpec("P")

# Seconds after which an event loop that has not started our work counts as blocked by its caller.
_PATIENCE = 0.25


class Bridge:
    """Passes work from other threads to the event loop of a run."""

    __slots__ = ("_blocked", "_loop", "_open", "_thread")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._open: set[_LoopCall[Any]] = set()
        self._blocked = 0

    @property
    def is_here(self) -> bool:
        """Whether this is the thread of the run's event loop."""
        return get_ident() == self._thread

    def wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of the work, for a caller that cannot await.

        On the run's own event loop, which such a caller blocks, the work gets another loop.
        """
        if self.is_here or self._blocked:
            return call_blocking(lambda _: work())
        call = _LoopCall(self._loop, work)
        self._open.add(call)
        try:
            return call.result()
        finally:
            self._open.discard(call)

    def do(self, act: Callable[P, T], *args: P.args, **given: P.kwargs) -> T:
        """Do something small on the run's own thread, because only that may write the ledger."""
        if get_ident() == self._thread:
            return act(*args, **given)

        async def work() -> T:
            return act(*args, **given)

        return self.wait(work)

    @contextmanager
    def blocked(self) -> Generator[None]:
        """Mark the run's event loop as blocked, while code waits for its own threads."""
        here = self.is_here
        self._blocked += here
        try:
            yield
        finally:
            self._blocked -= here

    def close(self) -> None:
        """Cancel what other threads still wait for: the run is over."""
        for call in list(self._open):
            call.cancel()


class _LoopCall(Generic[T]):
    """Work for the loop, taken back by its own thread if the loop does not begin it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> None:
        self._loop = loop
        self._work = work
        self._claim = Lock()
        self._begun = Event()
        self._future: Future[T] = Future()
        self._task: asyncio.Task[T] | None = None
        loop.call_soon_threadsafe(self._begin)

    def result(self) -> T:
        if not self._begun.wait(_PATIENCE) and self._claim.acquire(blocking=False):
            return asyncio.run(self._work())
        return self._future.result()

    def cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def _begin(self) -> None:
        if self._claim.acquire(blocking=False):
            self._begun.set()
            self._task = self._loop.create_task(self._work())
            self._task.add_done_callback(self._settle)

    def _settle(self, task: "asyncio.Task[T]") -> None:
        if task.cancelled():
            self._future.cancel()
        elif (error := task.exception()) is not None:
            self._future.set_exception(error)
        else:
            self._future.set_result(task.result())
