"""What time it is inside a run."""

import time
from typing import Protocol

from msgspec import Struct


class Clock(Protocol):
    """Tells the time that tools, steps and mocks see."""

    def now(self) -> float: ...


class SystemClock:
    """The time of the machine."""

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()


class FixedClock(Struct, frozen=True):
    """A time that stands still, so that a run can be repeated to the letter."""

    at: float

    def now(self) -> float:
        """The fixed moment, in seconds since the epoch."""
        return self.at
