"""Waiting until the call of a real tool is written down for good: before that its body must not begin.

Where a run is kept in a store, whoever keeps it is asked. What was called and what was not is then
known whatever happens to the process, so that no tool acts twice when the run goes on.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Event

from greenroom.errors import GreenroomError

BeforeLive = Callable[[str, Callable[[GreenroomError | None], None]], None]
"""Takes the id of a call, and whom to tell, in any thread, that it is safe, or why it is not."""


async def settled(call_id: str, before_live: BeforeLive) -> None:
    """Come back when the call is safe; raise if it is not."""
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[None] = loop.create_future()

    def take(error: GreenroomError | None) -> None:
        if answer.done():
            return  # nobody waits any more
        if error is None:
            answer.set_result(None)
        else:
            answer.set_exception(error)

    def tell(error: GreenroomError | None) -> None:
        with suppress(RuntimeError):  # a closed loop has nobody left who waits
            loop.call_soon_threadsafe(take, error)

    before_live(call_id, tell)
    await answer


def settled_at_once(before_live: BeforeLive) -> None:
    """The same for code that cannot await; the thread waits."""
    is_told = Event()
    found: list[GreenroomError | None] = []

    def tell(error: GreenroomError | None) -> None:
        found.append(error)
        is_told.set()

    before_live("", tell)
    is_told.wait()
    if found[0] is not None:
        raise found[0]
