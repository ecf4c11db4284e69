"""The watch over a run on its event loop: what blocks is named, and nothing is left behind."""

import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from greenroom.reports.words import printable
from greenroom.simulation.fence import lent_executor
from greenroom.simulation.stalls import Stall
from greenroom.simulation.watchdog import keep_watching, sweep_cut_work
from greenroom.suite.garbage import RareCollection

_LOG = logging.getLogger("greenroom")
_MOST_NOTES = 20

Note = Callable[[str], None]


@asynccontextmanager
async def overseen(note: Note, owner: object = None) -> AsyncGenerator[None]:
    """Watch all that is played and measured inside; `owner` is who may cut it as a whole.

    Work that blocks the event loop for a second is logged at once, and noted.
    """
    blockers = Blockers(note)
    with RareCollection(), keep_watching(owner, blockers.hear), lent_executor():
        try:
            yield
        finally:
            await sweep_cut_work()


class Blockers:
    """Who blocked the event loop of a run, each told of once."""

    def __init__(self, note: Note) -> None:
        self._note = note
        self._told: set[str] = set()

    def hear(self, stall: Stall) -> None:
        """Something holds up the loop; called in a thread of the watchdog's."""
        if stall.is_news:
            self.tell(blocked(stall))

    def tell(self, text: str) -> None:
        """Say it now, and in the report."""
        if text in self._told or len(self._told) > _MOST_NOTES:
            return
        self._told.add(text)
        if len(self._told) > _MOST_NOTES:
            text = "the event loop was blocked by more than that; the rest is not listed"
        _LOG.warning(text)
        self._note(text)


def blocked(stall: Stall) -> str:
    """What a reader should know of work that blocks."""
    who = stall.who or "code of no case"
    where = f", at {stall.where}" if stall.where else ""
    return printable(
        f"{who} blocked the event loop for more than a second{where}. The limits of what ran beside "
        f"it stood still meanwhile; the seconds reported of it include that time. Await what takes "
        f"long, put it into asyncio.to_thread, or play it in worker processes."
    )
