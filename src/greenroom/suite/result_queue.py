"""Results of a stream, on their way from the run to a caller who sets the pace."""

import asyncio
from collections.abc import AsyncGenerator

from greenroom.results.report import Report
from greenroom.results.result import CaseResult

_AHEAD = 16
"""How many results of a stream may wait for the caller."""


class ResultQueue:
    """Results on their way to the caller, who sets the pace. Once it is left, nothing is kept."""

    def __init__(self) -> None:
        self._waiting: asyncio.Queue[CaseResult | None] = asyncio.Queue()
        self._taken = asyncio.Event()
        self._is_left = False

    def put(self, result: CaseResult) -> None:
        """Add a result."""
        if not self._is_left:
            self._waiting.put_nowait(result)

    async def room(self) -> None:
        """Wait while the caller is far behind."""
        while self._waiting.qsize() > _AHEAD and not self._is_left:
            self._taken.clear()
            await self._taken.wait()

    async def results(self, whole: "asyncio.Future[Report]") -> AsyncGenerator[CaseResult]:
        """The results until the whole is done; leaving ends the whole."""
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
