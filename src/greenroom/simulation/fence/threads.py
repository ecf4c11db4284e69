"""Threads, executors and exit callbacks stand where the work stands that made them.

Python starts a thread with an empty context. Only our own variable is carried over: what else a
program keeps in its context is its own affair.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any, Final

from greenroom.simulation.fence.connections import Call
from greenroom.simulation.fence.scope import Standing, standing, threads


def carrying_start(real: Call) -> Call:
    """Wrap `_thread.start_new_thread(function, args, kwargs)`."""

    @wraps(real)
    def start_new_thread(function: Call, args: tuple[Any, ...], *kwargs: Any) -> Any:
        mark = standing.get()
        if mark is None:
            return real(function, args, *kwargs)
        return real(_stand_and_run, (mark, function, *args), *kwargs)

    return start_new_thread


def carrying_joinable_start(real: Call) -> Call:
    """Wrap `_thread.start_joinable_thread(function, handle, daemon)` of Python 3.13."""

    @wraps(real)
    def start_joinable_thread(function: Call, *args: Any, **kwargs: Any) -> Any:
        mark = standing.get()
        if mark is None:
            return real(function, *args, **kwargs)
        return real(lambda: _stand_and_run(mark, function), *args, **kwargs)

    return start_joinable_thread


def carrying_submit(real: Call) -> Call:
    """Wrap `ThreadPoolExecutor.submit`; a job stands where it was submitted.

    Always, and not only inside a case: a worker that was born in a case stands fenced, and must
    not pass that on to a job from outside.
    """

    @wraps(real)
    def submit(pool: Any, job: Call, /, *args: Any, **kwargs: Any) -> Any:
        return real(pool, _stand_for, standing.get(), job, *args, **kwargs)

    return submit


def carrying_register(real: Call) -> Call:
    """Wrap `atexit.register`; what a case wants done at exit is done inside its fence."""

    @wraps(real)
    def register(callback: Call, *args: Any, **kwargs: Any) -> Any:
        mark = standing.get()
        if mark is None:
            return real(callback, *args, **kwargs)
        real(_ExitCallback(mark, callback), *args, **kwargs)
        return callback

    return register


class _ExitCallback:
    """An exit callback of a case; equal to the callback, so that `atexit.unregister` finds it."""

    __slots__ = ("_callback", "_mark")

    def __init__(self, mark: Standing, callback: Call) -> None:
        self._mark: Final = mark
        self._callback: Final = callback

    def __call__(self, *args: Any, **kwargs: Any) -> object:
        return _stand_for(self._mark, self._callback, *args, **kwargs)

    def __eq__(self, other: object) -> bool:
        return self._callback == other

    def __hash__(self) -> int:
        return hash(self._callback)


def _stand_and_run(mark: Standing, run: Callable[..., object], /, *args: Any, **kw: Any) -> None:
    standing.set(mark)
    threads.mark = mark
    run(*args, **kw)


def _stand_for(mark: Standing, job: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
    token, before = standing.set(mark), getattr(threads, "mark", None)
    threads.mark = mark
    try:
        return job(*args, **kwargs)
    finally:
        threads.mark = before
        standing.reset(token)
