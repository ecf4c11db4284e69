"""Runs coroutines concurrently; one failure stops the rest."""

import asyncio
from collections.abc import Collection, Coroutine, Sequence
from contextvars import Context
from typing import Any, Final, TypeVar

from greenroom.world.exits import tried_to_exit
from greenroom.world.leftover_work import abandon, look_at, still_at_work

T = TypeVar("T")

# Seconds between two cancellations of a task, and how often it is asked.
_KNOCK: Final = 0.1
_TIMES: Final = 3


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results in order; the first failure stops the others, then is raised."""
    if len(work) < 2:
        return [await item for item in work]
    tasks = [begin(item) for item in work]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception():
                raise task.exception()  # pyright: ignore[reportGeneralTypeIssues]
        return [task.result() for task in tasks]
    finally:
        await stop(tasks)


def begin(work: Coroutine[Any, Any, T], context: Context | None = None) -> "asyncio.Task[T]":
    """The work as a new task, in a copy of this context unless another is given."""
    task = asyncio.get_running_loop().create_task(_held(work), context=context)
    # If it is cancelled before its first step, Python would warn that the work was never awaited.
    task.add_done_callback(lambda _: work.close())
    return task


async def _held(work: Coroutine[Any, Any, T]) -> T:
    try:
        return await work
    except SystemExit as error:
        raise tried_to_exit(error) from error


async def stop(tasks: Collection["asyncio.Task[Any]"]) -> None:
    """Cancel tasks and wait until they are over; one that swallows the cancellation is abandoned."""
    try:
        for _ in range(_TIMES):
            left = [task for task in tasks if not task.done()]
            if not left:
                break
            for task in left:
                task.cancel()
            await still_at_work(left, _KNOCK)
    finally:
        # Even if this wait was cancelled itself.
        for task in tasks:
            if not task.done():
                abandon(task)
            else:
                look_at(task)
