"""Results handed out one by one, while whoever takes them sets the pace."""

import asyncio
from collections.abc import AsyncGenerator

from greenroom.results.report import Report
from greenroom.results.result import CaseResult

_AHEAD = 16
"""How many results may wait for whoever takes them."""


class ResultQueue:
    """Where results lie until somebody takes them. Once it is left, nothing is kept for anybody."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[CaseResult | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._is_left = False

    def put(self, result: CaseResult) -> None:
        """Lay a result out."""
        if not self._is_left:
            self._waiting.put_nowait(result)

    async def room(self) -> None:
        """Wait while whoever takes the results is far behind."""
        while self._waiting.qsize() > _AHEAD and not self._is_left:
            self._taken.clear()
            await self._taken.wait()

    async def results(self, whole: "asyncio.Future[Report]") -> AsyncGenerator[CaseResult]:
        """What is laid out until the whole is done; leaving ends the whole."""
        whole.add_done_callback(lambda _: self._waiting.put_nowait(None))
        try:
            while (result := await self._waiting.get()) is not None:
                self._taken.set()
                yield result
            await whole
        finally:
            self._is_left = True
            self._taken.set()
            whole.cancel()
            await asyncio.gather(whole, return_exceptions=True)
