"""Tasks that work left behind: found, ended, and, if nothing ends them, no longer waited for."""

import asyncio
import gc
import inspect
from collections.abc import Iterable, Iterator
from contextvars import Context
from typing import Any, Final

from greenroom.simulation.guards import RUNNING, Watched
from greenroom.world.threads import leak

# Seconds between two attempts to end a task.
_KNOCK: Final = 0.1


async def sweep(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """End tasks that work left behind: cancelled first, closed if that is no use.

    `asyncio.run` waits without end for a task that swallows its cancellation, so a door sweeps
    before it leaves. What cannot even be closed is disowned. Comes back within 0.4 s.
    """
    left = {task for task in tasks if not task.done()}
    for is_patient in (True, True, False):
        for task in left:
            task.cancel() if is_patient else _close_unheard(task)
        if left:
            _, left = await asyncio.wait(left, timeout=_KNOCK)
    for task in left:
        _disown(task)


def close(task: asyncio.Task[Any]) -> None:
    """End a coroutine that swallows its cancellation, in its own context."""
    coroutine: Any = task.get_coro()
    waiting = tuple(_waiting_for(coroutine))
    try:
        context_of(task).run(coroutine.close)
    except RuntimeError:
        # It went on all the same. Python would try again when it forgets it, and complain.
        for one in waiting:
            _forget(one, task.get_loop())
    except BaseException:  # noqa: BLE001 - whatever its last words are, nobody listens any more
        pass
    task.cancel()  # the task notices when it next tries to go on


def _waiting_for(work: Any) -> Iterator[object]:
    """What a coroutine awaits, and what that awaits in turn."""
    while (work := _awaited(work)) is not None:
        yield work


def _awaited(work: Any) -> object:
    for name in ("cr_await", "ag_await", "gi_yieldfrom"):
        if (inner := getattr(work, name, None)) is not None:
            return inner
    # A step of an async generator shows to the garbage collector only whose step it is.
    return next((it for it in gc.get_referents(work) if inspect.isasyncgen(it)), None)


def _forget(work: object, loop: Any) -> None:
    """Let neither Python nor the loop try to close it once more."""
    leak(work)
    if inspect.isasyncgen(work):
        getattr(loop, "_asyncgens", set[Any]()).discard(work)


def hear_out(task: asyncio.Task[Any]) -> None:
    """Take what a task raised for seen: asyncio must not log what `finish` hands over."""
    if not task.cancelled():
        task.exception()


def carried_by(task: asyncio.Task[Any]) -> Iterator[Watched]:
    """The deadlines of the work that a task belongs to, from the inside out."""
    deadline = context_of(task).get(RUNNING)
    while deadline is not None:
        yield deadline
        deadline = deadline.outer


def context_of(task: asyncio.Task[Any]) -> Context:
    """The context that a task runs in."""
    # Before Python 3.12 and its `get_context`, a task shows it to the garbage collector only.
    referents: list[object] = gc.get_referents(task)
    return next((it for it in referents if isinstance(it, Context)), Context())


def _close_unheard(task: asyncio.Task[Any]) -> None:
    close(task)
    task.add_done_callback(hear_out)


def _disown(task: asyncio.Task[Any]) -> None:
    """Let nobody wait for a task that nothing ends, watch it, nor complain of it."""
    for deadline in carried_by(task):
        if deadline.task is task:
            deadline.end()
    tasks: Any = asyncio.tasks
    tasks._unregister_task(task)
    stubborn: Any = task
    stubborn._log_destroy_pending = False
    coroutine = task.get_coro()
    for one in (coroutine, *_waiting_for(coroutine)):
        _forget(one, task.get_loop())
