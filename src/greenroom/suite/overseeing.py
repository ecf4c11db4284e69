"""The watch over a run on its event loop: what blocks is cut, and nothing is left behind."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from greenroom.simulation.fence import lent_executor
from greenroom.simulation.watchdog import sweep_cut_work, vigil
from greenroom.suite.collecting import Collecting


@asynccontextmanager
async def overseen(party: object = None) -> AsyncGenerator[None]:
    """Watch all that is played and measured inside; `party` is who may cut it as a whole."""
    with Collecting(), vigil(party), lent_executor():
        try:
            yield
        finally:
            await sweep_cut_work()
