"""Work that was asked to stop and continues. What it was part of does not wait for it."""

import asyncio
from collections.abc import Callable, Collection
from typing import Any, Final
from weakref import WeakSet

ROUNDS: Final = 50
"""Of its loop, that work gets in which to end. It needs a few; on a busy machine a time would not say how many."""

_ABANDONED: Final[WeakSet["asyncio.Task[Any]"]] = WeakSet()
_closers: Final[list[Callable[["asyncio.Task[Any]"], None]]] = []


def abandon(task: "asyncio.Task[Any]") -> None:
    """Abandon a task that swallows its cancellation; the registered function ends it by force, if there is one."""
    _ABANDONED.add(task)
    task.add_done_callback(look_at)
    for close in _closers:
        close(task)


async def still_at_work(
    tasks: Collection["asyncio.Task[Any]"], seconds: float
) -> set["asyncio.Task[Any]"]:
    """Those that are not over after so many seconds, and the rounds that they need to end."""
    left = {task for task in tasks if not task.done()}
    if left:
        _, left = await asyncio.wait(left, timeout=seconds)
    for _ in range(ROUNDS):
        if not left:
            break
        await asyncio.sleep(0)
        left = {task for task in left if not task.done()}
    return left


def look_at(task: "asyncio.Task[Any]") -> None:
    """Look at the result of a task that is over, so that Python does not complain about it."""
    if not task.cancelled():
        task.exception()


def abandoned_tasks(loop: asyncio.AbstractEventLoop) -> list["asyncio.Task[Any]"]:
    """The tasks of this loop that were left behind and are not over yet."""
    return [task for task in _ABANDONED if not task.done() and task.get_loop() is loop]


def close_by(close: Callable[["asyncio.Task[Any]"], None]) -> None:
    """Register the function that ends abandoned work by force."""
    if close not in _closers:
        _closers.append(close)
