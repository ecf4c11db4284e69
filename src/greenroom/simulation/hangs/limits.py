"""The author's code, called and awaited with a time limit: it is stopped or left behind, and the caller continues.

Not in `watchdog.py`, which no guard interrupts: a function in C that blocks is interrupted here, at the
line that calls it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from greenroom.simulation.hangs.guards import ALARM
from greenroom.simulation.hangs.watchdog import Deadline, finish, watched
from greenroom.world.threads import Expired, Overdue, call_within

T = TypeVar("T")


def call_in_time(call: Callable[[], T], seconds: float, name: str, *, apart: bool = False) -> T:
    """The return value of a function; `Overdue` if it took longer, whatever it returned after that.

    `name` is its name in a report if it blocks; `apart` means that its time does not count for the work around
    it. It is called in place if the alarm can interrupt it there, else in a thread that can be left behind.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # a thread without an event loop
        task = None
    if task is None or not ALARM.is_free():
        return call_within(seconds, call)
    with watched(task, seconds, name=name, apart=apart) as deadline:
        try:
            found = call()
        except Expired:
            if not deadline.expired:
                raise  # the time of the work around this is up
            raise Overdue from None
    if deadline.expired:
        raise Overdue
    return found


async def await_in_time(work: Awaitable[T], seconds: float, name: str) -> T:
    """The result of work that awaits, in its own task; `Overdue` if it took longer.

    Work that swallows its cancellation is left behind.
    """
    deadline = Deadline(seconds, name=name)
    exits: list[SystemExit] = []
    task = await finish(_awaited(work, exits), deadline)
    if deadline.was_cut:
        raise Expired("the work was stopped, with all that it is part of")
    if deadline.expired or not task.done():
        raise Overdue
    if exits:
        raise exits[0]
    return task.result()


async def _awaited(work: Awaitable[T], exits: list[SystemExit]) -> T:
    try:
        return await work
    except SystemExit as error:
        # Out of a task it would end the event loop, with all that runs there.
        exits.append(error)
        raise Overdue from error
