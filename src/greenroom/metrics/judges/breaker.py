"""A judge that cannot be reached is not asked for ever."""

import asyncio
from weakref import ref

FAILURES = 5


class Breaker:
    """Counts failures in a row of one judge; at the limit it stays open until the run is over.

    Every event loop is a run of its own, since `rehearse` opens one each time; `reset` begins anew
    within a loop.
    """

    __slots__ = ("_failed", "_loop", "limit")

    def __init__(self, limit: int = FAILURES) -> None:
        self.limit = limit
        self._failed = 0
        self._loop: ref[asyncio.AbstractEventLoop] | None = None

    @property
    def open(self) -> bool:
        """Whether the judge should not be asked any more."""
        self._notice_run()
        return self._failed >= self.limit

    def failed(self) -> None:
        """No reply came."""
        self._notice_run()
        self._failed += 1

    def answered(self) -> None:
        """A reply came, whatever it says."""
        self._notice_run()
        self._failed = 0

    def reset(self) -> None:
        """Forget what failed."""
        self._failed = 0

    def _notice_run(self) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None or self._loop() is not loop:
            self._loop = ref(loop)
            self._failed = 0
