"""What ends a run early: its caller, a store that fails, or a case that did not pass."""

import asyncio
from contextlib import suppress

from msgspec import Struct, field

from greenroom.simulation.hangs.watchdog import cut_all
from greenroom.suite.cancel import Cancel
from greenroom.suite.executor import Executor
from greenroom.suite.storage.recorder import Recorder
from greenroom.world.threads import Expired


class EarlyEnd(Struct):
    """Whether a run ends early, and why: no further trial begins then, and those in progress may be stopped."""

    cancel: Cancel
    recorder: Recorder
    executor: Executor
    own_reason: str = ""
    """Why the run stopped itself: an error or failure that should end it."""
    _stops_others: bool = False
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    @property
    def reason(self) -> str:
        """Why no further trial begins; empty while the run continues."""
        return self.own_reason or self.cancel.reason or self.recorder.failure

    @property
    def cut_reason(self) -> str:
        """Why trials in progress were stopped; empty if they were not."""
        by_itself = self.own_reason if self._stops_others else ""
        return self.cancel.reason or self.recorder.failure or by_itself

    def listen(self) -> None:
        """Stop the trials in progress as soon as the caller or the store says so."""
        self.recorder.listen(self._cut)
        self.cancel.listen(self._cut)

    def leave(self) -> None:
        """The run is over: what the caller says no longer matters to it."""
        self.cancel.leave(self._cut)

    async def stop_others(self) -> None:
        """Stop the trials in progress, once those that have finished are recorded."""
        await self.recorder.flush()
        if not self.cut_reason:
            self._stops_others = True
            self._cut()

    def has_stopped(self, error: BaseException) -> bool:
        """Whether this stopped the current trial, and not a caller that cancelled the run's own task."""
        task = asyncio.current_task()
        if not self.cut_reason or task is None:
            return False
        if not isinstance(error, asyncio.CancelledError | Expired):
            return False
        task.uncancel()
        return True

    def _cut(self) -> None:
        """Stop the trials in progress; any thread or signal handler may call it."""
        self.recorder.freeze()
        cut_all(self._loop, self.cancel)
        with suppress(RuntimeError):  # the run may be over by now, and its loop closed
            self._loop.call_soon_threadsafe(self.executor.cut)
