"""The results of a run as they come: kept for its report, or handed to the caller of a stream."""

import asyncio
from collections.abc import AsyncGenerator

from msgspec import Struct, field

from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.suite.common_notes import CommonNotes

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


class CollectedResults(Struct):
    """What came of the trials of a run, by position."""

    keeps: bool = True
    """Whether results stay here; else a store or the caller of a stream has them."""
    kept: dict[int, CaseResult] = field(default_factory=dict[int, CaseResult])
    left_out: dict[int, str] = field(default_factory=dict[int, str])
    """Why trials have no result of their own, where results are not kept."""
    common: CommonNotes = field(default_factory=CommonNotes)
    queue: ResultQueue | None = None
    """Takes the results of a stream."""

    def add(self, position: int, result: CaseResult) -> None:
        """One more trial is over."""
        self.common.add(result)
        if self.queue is not None:
            self.queue.put(result)
        if self.keeps:
            self.kept[position] = result
        elif self.queue is None and result.status == "skipped" and result.error is None:
            self.left_out[position] = result.notes[0]
