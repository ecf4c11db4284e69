"""Tasks that work left behind: found, ended, and, if nothing ends them, no longer waited for."""

import asyncio
import gc
import inspect
from collections.abc import Iterable, Iterator
from typing import Any, Final

from greenroom.simulation.hangs.deadlines import context_of, deadlines_of, retrieve_exception
from greenroom.world.leftover_work import still_at_work
from greenroom.world.threads import leak

# Seconds between two attempts to end a task.
_KNOCK: Final = 0.1


async def sweep(tasks: Iterable[asyncio.Task[object]]) -> None:
    """End tasks that work left behind: they are cancelled, or closed if that does not help.

    `asyncio.run` waits without end for a task that swallows its cancellation, so sweep before it
    ends. What cannot even be closed is disowned. Comes back within 0.4 s, later only on a busy machine.
    """
    left = {task for task in tasks if not task.done()}
    for is_patient in (True, True, False):
        for task in left:
            if is_patient:
                task.cancel()
            else:
                close(task)
                task.add_done_callback(retrieve_exception)
        left = await still_at_work(left, _KNOCK)
    for task in left:
        _disown(task)


def close(task: asyncio.Task[object]) -> None:
    """End a coroutine that swallows its cancellation, in its own context."""
    coroutine: object = task.get_coro()
    waiting = tuple(_waiting_for(coroutine))
    try:
        context_of(task).run(coroutine.close)
    except RuntimeError:
        # It continued nevertheless. Python would try again when it collects the coroutine, and complain.
        for one in waiting:
            _forget(one, task.get_loop())
    except BaseException:  # noqa: BLE001 - it is over, whatever it raised last
        pass
    task.cancel()  # the task notices at its next step


def used_by(task: asyncio.Task[object]) -> Iterator[object]:
    """What a task that waits holds in its functions, such as the generators that it takes values from."""
    coroutine: object = task.get_coro()
    for one in (coroutine, *_waiting_for(coroutine)):
        yield from gc.get_referents(one)


def _waiting_for(work: object) -> Iterator[object]:
    """What a coroutine awaits, and what that awaits in turn."""
    while (work := _awaited(work)) is not None:
        yield work


def _awaited(work: object) -> object:
    for name in ("cr_await", "ag_await", "gi_yieldfrom"):
        if (inner := getattr(work, name, None)) is not None:
            return inner
    # A step of an async generator shows to the garbage collector only whose step it is.
    return next((it for it in gc.get_referents(work) if inspect.isasyncgen(it)), None)


def _forget(work: object, loop: object) -> None:
    """Let neither Python nor the loop try to close it once more."""
    leak(work)
    if inspect.isasyncgen(work):
        # Private: a loop closes the generators it knows when it ends.
        getattr(loop, "_asyncgens", set[Any]()).discard(work)


def _disown(task: asyncio.Task[object]) -> None:
    """Let nothing wait for a task that cannot be ended, watch it, or complain about it."""
    for deadline in deadlines_of(task):
        if deadline.task is task:
            deadline.end()
    # Private: otherwise `asyncio.run` would wait for it, and the interpreter would complain about it.
    tasks: object = asyncio.tasks
    tasks._unregister_task(task)
    stubborn: Any = task
    stubborn._log_destroy_pending = False
    coroutine = task.get_coro()
    for one in (coroutine, *_waiting_for(coroutine)):
        _forget(one, task.get_loop())
