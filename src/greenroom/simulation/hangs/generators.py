"""Async generators that cases left suspended: ended when the run is over, while refusals are still reported."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import Context, ContextVar
from typing import Final

from greenroom.simulation.fence.generators import ENDING, Suspended, forget_ended, suspended
from greenroom.simulation.fence.refusal import is_authors
from greenroom.simulation.hangs.deadlines import context_of
from greenroom.simulation.hangs.leftovers import sweep
from greenroom.world.call_context import ContextSetting

_PATIENCE: Final = 1.0
"""Seconds in which all of them must have ended."""
_RUN: Final = ContextVar[object]("greenroom_generators_of", default=None)


@asynccontextmanager
async def ending_generators() -> AsyncGenerator[None]:
    """End what the cases inside leave suspended, before this ends itself.

    Generators of libraries stay as they are: a client that one case opened may serve later runs on its loop.
    """
    run = object()
    with ContextSetting(_RUN, run):
        try:
            yield
        finally:
            if gc.isenabled():
                # What nothing holds any more ends here too, generators that are not async among it. Not the
                # oldest objects: that takes seconds in a large program, and this takes a tenth of a millisecond.
                gc.collect(1)
            await _end_all(run)
            forget_ended()


async def _end_all(run: object) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE
    while True:
        await _being_closed(run, until)
        # One at a time, the outermost first: it may close the others itself.
        begun, generator = next(
            (
                (begun, generator)
                for begun, generator in suspended(loop)
                if begun.context.get(_RUN) is run and _is_authors(generator)
            ),
            (None, None),
        )
        if begun is None or generator is None or loop.time() > until:
            return
        begun.end(generator)
        del generator


def _is_authors(generator: Suspended) -> bool:
    return generator.ag_frame is not None and is_authors(generator.ag_frame)


async def _being_closed(run: object, until: float) -> None:
    """Wait for the tasks that close generators of this run; those that take too long are cancelled."""
    loop = asyncio.get_running_loop()
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
    return context.get(ENDING, False) and context.get(_RUN) is run
