"""Async generators that cases left and that nothing holds: they end before the run does, so that it reports them."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import Context
from typing import Final

from greenroom.simulation.fence.generators import ENDING, RUN, release_cases
from greenroom.simulation.hangs.deadlines import context_of
from greenroom.simulation.hangs.leftovers import sweep
from greenroom.world.call_context import ContextSetting

_PATIENCE: Final = 1.0
"""Seconds in which all of them must have ended."""


@asynccontextmanager
async def ending_generators() -> AsyncGenerator[None]:
    """Wait for the end of those that the cases inside left and that nothing holds, before this ends itself.

    Those that something holds stay as they are: another run on this loop may use them, or a task that still waits.
    """
    run = object()
    with ContextSetting(RUN, run):
        try:
            yield
        finally:
            if gc.isenabled():
                # Generators that are not async end here too. Not the oldest objects: that takes seconds in a
                # large program, and this takes a tenth of a millisecond.
                gc.collect(1)
            await _being_closed(run)
            release_cases()


async def _being_closed(run: object) -> None:
    """Wait for the tasks that close generators of this run; those that take too long are cancelled."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE
    while True:
        await asyncio.sleep(0)  # the loop makes these tasks in its next round
        tasks = [task for task in asyncio.all_tasks() if _closes(context_of(task), run)]
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=max(0.0, until - loop.time()))
        if late:
            await sweep(late)
            return  # what they began as they were cancelled has had its time as well


def _closes(context: Context, run: object) -> bool:
    return context.get(ENDING, False) and context.get(RUN) is run
