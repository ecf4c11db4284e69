"""Tasks that work left behind: found, ended, and, if nothing ends them, no longer waited for."""

import asyncio
import gc
import inspect
from collections.abc import Callable, Coroutine, Iterable, Iterator
from functools import partial
from typing import Any, Final, TypeGuard

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
    coroutine = task.get_coro()
    waiting = tuple(_waiting_for(coroutine))
    # Steps of async generators first, from inside out: Python 3.11 and 3.12 end a step without its generator.
    steps = (it for it in reversed(waiting) if _is_coroutine(it) and not inspect.iscoroutine(it))
    is_over = [_is_over_by(task, partial(_throw_into, step)) for step in steps]
    if not all((*is_over, _is_over_by(task, coroutine.close))):
        # It continued nevertheless. Python would try again when it collects the coroutine, and complain.
        for one in waiting:
            _forget(one, task.get_loop())
    task.cancel()  # the task notices at its next step


def _is_over_by(task: asyncio.Task[object], end: Callable[[], object]) -> bool:
    """End a part of a task in the task's own context; False if it continues nevertheless."""
    try:
        context_of(task).run(end)
    except (RuntimeError, StopIteration):
        return False
    except BaseException:  # noqa: BLE001 - it is over, whatever it raised last
        pass
    return True


def _throw_into(step: Coroutine[object, object, object]) -> None:
    step.throw(GeneratorExit())
    raise RuntimeError("it waits for something else")


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
        if hasattr(work, name):
            return getattr(work, name)
    # What Python wraps, such as a step of an async generator, shows only to the garbage collector what is in it.
    for inside in gc.get_referents(work):
        if _is_coroutine(inside) or inspect.isasyncgen(inside):
            return inside
    return None


def _is_coroutine(work: object) -> TypeGuard[Coroutine[object, object, object]]:
    return isinstance(work, Coroutine)


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
