"""Threads, executor jobs, callbacks of futures and exit callbacks belong to the scope of the work that made them.

Python starts a thread with an empty context. Only our own variables are carried over, the scope and what
else says whose work of a case it is: whatever a program keeps in its context is its own affair.
"""

import asyncio
import os
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import Context, copy_context
from functools import partial, wraps
from inspect import signature
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any, Final, Generic, ParamSpec, TypeVar, cast

from greenroom.simulation.fence.routes import Call
from greenroom.simulation.fence.scope import AnyScope, is_of_case, scope_var, threads
from greenroom.world.call_context import CARRIED

P = ParamSpec("P")
T = TypeVar("T")

Owner = tuple[AnyScope, Sequence[object]]
"""Which scope work belongs to, and, if it is work of a case, which part of it: the variables `CARRIED`."""


def _owner() -> Owner:
    scope = scope_var.get()
    # The rest of a run keeps to itself what it is doing: its threads may outlive it, and are free then.
    values = _carried() if is_of_case(scope) else Context().run(_carried)
    return scope, values


def _carried() -> Sequence[object]:
    return [variable.get() for variable in CARRIED]


def carrying_start(real: Call) -> Call:
    """Wrap `_thread.start_new_thread(function, args, kwargs)`."""

    @wraps(real)
    def start_new_thread(function: Call, args: tuple[object, ...], *kwargs: object) -> object:
        owner = _owner()
        if owner[0] is None:
            return real(function, args, *kwargs)
        return real(_run_in, (owner, function, *args), *kwargs)

    return start_new_thread


def carrying_joinable_start(real: Call) -> Call:
    """Wrap `_thread.start_joinable_thread(function, handle, daemon)` of Python 3.13."""

    @wraps(real)
    def start_joinable_thread(function: Call, *args: object, **kwargs: object) -> object:
        owner = _owner()
        if owner[0] is None:
            return real(function, *args, **kwargs)
        return real(lambda: _run_in(owner, function), *args, **kwargs)

    return start_joinable_thread


def carrying_submit(real: Call) -> Call:
    """Wrap `ThreadPoolExecutor.submit`; a job belongs where it was submitted.

    Always, and not only inside a case: a worker that was born in a case is fenced, and must not pass
    that on to a job from outside.
    """

    @wraps(real)
    def submit(pool: object, job: Call, /, *args: object, **kwargs: object) -> object:
        return real(pool, _call_in, _owner(), job, *args, **kwargs)

    return submit


def carrying_register(real: Call) -> Call:
    """Wrap `atexit.register`; exit callbacks of a case run inside its fence."""

    @wraps(real)
    def register(callback: Call, *args: object, **kwargs: object) -> object:
        owner = _owner()
        if owner[0] is None:
            return real(callback, *args, **kwargs)
        real(_ExitCallback(owner, callback), *args, **kwargs)
        return callback

    return register


def carrying_callback(real: Call) -> Call:
    """Wrap `concurrent.futures.Future.add_done_callback`, whose callbacks run in the thread of the job."""

    @wraps(real)
    def add_done_callback(future: object, callback: Call, /) -> object:
        owner = _owner()
        return real(future, callback if owner[0] is None else partial(_call_in, owner, callback))

    return add_done_callback


def carrying_task(real: Call) -> Call:
    """Wrap a method by which work is given to a `multiprocessing.pool.ThreadPool`.

    Its threads serve whoever has the pool, so each task belongs where it was given, as with `submit`.
    """
    parameters = signature(real)

    @wraps(real)
    def give(*args: object, **kwargs: object) -> object:
        given = parameters.bind(*args, **kwargs)
        owner = _owner()
        for name, value in given.arguments.items():
            if name in _CALLED and value is not None:
                given.arguments[name] = partial(_call_in, owner, value)
            elif name == "iterable":
                given.arguments[name] = _items(owner, cast("Iterable[object]", value))
        return real(*given.args, **given.kwargs)

    return give


_CALLED: Final = frozenset({"func", "callback", "error_callback"})
"""What the threads of a pool call, by its name in the methods of the pool."""


def _items(owner: Owner, items: Iterable[T]) -> Generator[T]:
    """The items, taken by a thread of the pool as the work that gave them would take them."""
    iterator = _call_in(owner, iter, items)
    end = object()
    while (item := _call_in(owner, next, iterator, end)) is not end:
        yield item


class _ExitCallback:
    """An exit callback of a case; equal to the callback, so that `atexit.unregister` finds it."""

    __slots__ = ("_callback", "_owner")

    def __init__(self, owner: Owner, callback: Call) -> None:
        self._owner: Final = owner
        self._callback: Final = callback

    def __call__(self, *args: object, **kwargs: object) -> object:
        return _call_in(self._owner, self._callback, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self._callback == other

    def __hash__(self) -> int:
        return hash(self._callback)


def _run_in(owner: Owner, run: Callable[..., object], /, *args: object, **kw: object) -> None:
    scope, values = owner
    scope_var.set(scope)
    for variable, value in zip(CARRIED, values, strict=False):
        variable.set(value)
    threads.scope = scope
    run(*args, **kw)


def _call_in(owner: Owner, job: Callable[..., Any], /, *args: object, **kwargs: object) -> Any:
    scope, values = owner
    token, before = scope_var.set(scope), getattr(threads, "scope", None)
    tokens = [(it, it.set(value)) for it, value in zip(CARRIED, values, strict=False)]
    threads.scope = scope
    try:
        return job(*args, **kwargs)
    finally:
        threads.scope = before
        for variable, carried_token in tokens:
            variable.reset(carried_token)
        scope_var.reset(token)


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
        worker = Thread(target=self._work, name=f"fenced-{len(self._workers)}", daemon=True)
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
        except BaseException as error:  # noqa: BLE001 - the awaiting code decides
            self.future.set_exception(error)
        else:
            self.future.set_result(result)


@contextmanager
def lent_executor() -> Generator[None]:
    """Give the running loop such an executor for a while, unless it has one of its own.

    Code that runs a loop waits for its default executor at the end, and so for a job that hangs.
    """
    loop: Any = asyncio.get_running_loop()
    if getattr(loop, "_default_executor", loop) is not None:
        yield
        return
    lent = FencedExecutor()
    loop.set_default_executor(lent)
    try:
        yield
    finally:
        if loop._default_executor is lent:
            loop._default_executor = None
        lent.shutdown(wait=False)
