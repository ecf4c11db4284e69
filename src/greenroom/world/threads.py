"""Synchronous work that may hang, kept off the event loop in its own thread.

`asyncio.to_thread` does not work here: the loop waits for its workers when it closes, so one hanging
tool would hang the whole run.
"""

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future, wait
from contextlib import suppress
from contextvars import Context, copy_context
from functools import partial
from queue import SimpleQueue
from threading import Lock, Thread, Timer, get_ident
from typing import Any, Generic, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_GRACE = 0.1
_STEP = 0.05


class Interruption(BaseException):
    """Raised from outside in whatever code runs. Not an `Exception`, so that it is not caught by accident."""


class Expired(Interruption):
    """The time of a case is up."""


class Overdue(Exception):
    """A function took longer than it may, and was interrupted or left behind."""


async def in_thread(function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
    """Run a blocking function in its own daemon thread, in a copy of this context.

    When the caller is cancelled, the thread is left behind and, a tenth of a second later, stopped
    by `Expired`. It never keeps the interpreter from ending.
    """
    call = _ThreadCall(partial(function, *args, **kwargs))
    Thread(target=call.run, name=f"greenroom-{function!r}", daemon=True).start()
    try:
        return await call.future
    except asyncio.CancelledError:
        # A moment to clean up first: `Expired` may interrupt it at any line.
        timer = Timer(_GRACE, call.stop)
        timer.daemon = True
        timer.start()
        raise


def call_blocking(make: Callable[["Here"], Coroutine[Any, Any, T]]) -> T:
    """The result of a coroutine, for a caller that cannot await it.

    It gets a function that runs functions in the caller's own thread, where clients and connections belong.
    If the caller blocks the event loop of its thread, the coroutine runs on another loop.
    """
    return _Beside(make).result() if has_loop() else asyncio.run(make(_in_place))


def has_loop() -> bool:
    """Whether an event loop runs in this thread."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


Here = Callable[..., Awaitable[Any]]
"""Runs a function in the thread of the code that waits, and returns its result."""


async def _in_place(function: Callable[..., T], /, *args: object, **kwargs: object) -> T:
    return function(*args, **kwargs)


def expected(future: "asyncio.Future[T]") -> "asyncio.Future[T]":
    """The same future, whose exception asyncio never reports as lost.

    A task that is cancelled at the moment its future fails does not look at the exception.
    """
    future.add_done_callback(lambda done: done.cancelled() or done.exception())
    return future


def _settle(future: "asyncio.Future[Any]", result: object, error: BaseException | None) -> None:
    """Set what came of a future, unless its waiter was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


class _Beside(Generic[T]):
    """A coroutine on a loop in its own thread, and its caller, which runs functions for it."""

    def __init__(self, make: Callable[[Here], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._jobs: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._done: Future[T] = Future()

    def result(self) -> T:
        Thread(target=copy_context().run, args=(self._run,), daemon=True).start()
        while (job := self._jobs.get()) is not None:
            job()
        return self._done.result()

    def _run(self) -> None:
        try:
            self._done.set_result(asyncio.run(self._make(self._here)))
        except BaseException as error:  # noqa: BLE001 - the waiting code decides
            self._done.set_exception(error)
        finally:
            self._jobs.put(None)

    async def _here(
        self, function: Callable[..., object], /, *args: object, **kwargs: object
    ) -> object:
        loop, context = asyncio.get_running_loop(), copy_context()
        answer: asyncio.Future[object] = expected(loop.create_future())

        def job() -> None:
            try:
                settle = partial(_settle, answer, context.run(function, *args, **kwargs), None)
            except BaseException as error:  # noqa: BLE001 - the awaiting code decides
                settle = partial(_settle, answer, None, error)
            with suppress(RuntimeError):  # the coroutine did not wait, and its loop has closed
                loop.call_soon_threadsafe(settle)

        self._jobs.put(job)
        return await answer


class _ThreadCall(Generic[T]):
    """One call in its own thread, and the future of its result."""

    def __init__(self, call: Callable[[], T]) -> None:
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = expected(self._loop.create_future())
        self._call = call
        self._context = copy_context()
        self._ending = Lock()
        self._thread: int | None = None

    def run(self) -> None:
        """The life of the thread."""
        # A stop that comes when the call is over may be raised anywhere up to the last line.
        with suppress(Expired):
            self._thread = get_ident()
            settle = self._settlement()
            with self._ending:
                self._thread = None
            with suppress(RuntimeError):  # the loop has closed, and nothing waits for the result
                self._loop.call_soon_threadsafe(settle)

    def stop(self) -> None:
        """Raise `Expired` in the thread, unless its call is over."""
        with self._ending:
            if self._thread is not None:
                plant(self._thread)

    def _settlement(self) -> Callable[[], None]:
        try:
            result = self._context.run(self._call)
        except (StopIteration, SystemExit) as error:
            # A future cannot carry these: they would end the coroutine that awaits, or the loop.
            broke = RuntimeError(f"the function raised {error!r}")
            return partial(_settle, self.future, None, broke)
        except BaseException as error:  # noqa: BLE001 - the awaiting code decides
            return partial(_settle, self.future, None, error)
        return partial(_settle, self.future, result, None)


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Call a blocking function in its own daemon thread and wait; `Overdue` after the time limit.

    For places where a blocking function could not be interrupted in its caller's thread. Nothing else
    happens in the caller's thread meanwhile, as if it had called the function itself.
    """
    outcome: Future[T] = Future()
    ending = Lock()
    thread = Thread(
        target=_call_into,
        args=(outcome, ending, copy_context(), function),
        name="greenroom-call",
        daemon=True,
    )
    thread.start()
    until = time.monotonic() + seconds
    try:
        while not outcome.done():
            if (left := until - time.monotonic()) <= 0:
                raise Overdue
            # In steps: between them `Expired` can be raised in the caller too.
            wait((outcome,), min(left, _STEP))
    except BaseException:
        with ending:  # once the call is over, another thread may get the id of its thread
            if thread.ident is not None and not outcome.done():
                plant(thread.ident)
        raise
    return outcome.result()


def _call_into(
    outcome: "Future[T]", ending: Lock, context: Context, function: Callable[[], T]
) -> None:
    with suppress(Expired):  # a stop may come when the call is over
        try:
            settle = partial(outcome.set_result, context.run(function))
        except BaseException as error:  # noqa: BLE001 - the caller decides
            settle = partial(outcome.set_exception, error)
        with ending:
            settle()


def plant(thread: int) -> None:
    """Raise `Expired` in another thread, between two steps of its Python code.

    Not on Python 3.11 if a debugger or coverage traces this process: until the thread has heard it, which one
    that waits for something may never do, no traced thread would get beyond its next call.
    """
    if sys.version_info < (3, 12) and sys.gettrace() is not None:
        return
    import ctypes  # slow to load, and hardly ever needed

    # Private to CPython, and the only way to interrupt code in another thread.
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(Expired))


def leak(thing: object) -> None:
    """Keep an object for as long as the process lives.

    Python closes a coroutine that it collects, at the latest when the interpreter ends. One that swallows
    that as well, in a loop, would keep the interpreter from ending.
    """
    import ctypes  # slow to load, and hardly ever needed

    ctypes.pythonapi.Py_IncRef(ctypes.py_object(thing))
