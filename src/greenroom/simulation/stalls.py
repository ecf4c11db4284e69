"""An event loop that stands still: how long, whose code it is at, and who is told.

The loop of a run should be heard of every tenth of a second. While it is not, a thread of our own
looks at what it is at. The time is charged to the work whose code runs there, if any; for all other
work of that loop the clocks stand still.
"""

import sys
import time
from collections.abc import Callable
from contextvars import Context
from threading import Condition, Thread
from types import FrameType
from typing import Final, Protocol

from greenroom.ledger.records import record
from greenroom.simulation.fence.probes import is_authors, shown

BEAT: Final = 0.1
"""Seconds between two signs of life of a loop that has work."""
LATE: Final = 0.1
"""Seconds after which a loop that was not heard of stands still."""
_TOLD_AFTER: Final = 1.0
_LOOK: Final = 0.05
_IDLE: Final = 0.5


@record
class Stall:
    """Work that holds up its event loop, at one moment."""

    who: str
    """The case, metric or hook; empty if the code is nobody's."""
    owner: object
    seconds: float
    """How much was added since the last time somebody was told."""
    where: str
    """The line of code, as `file.py:12 in name`."""
    is_news: bool
    """Whether it has just become long enough to be spoken of."""


OnStall = Callable[[Stall], None]


class Charged(Protocol):
    """Work, as the time it blocks is charged to it."""

    name: str
    owner: object
    charged: float

    @property
    def outer(self) -> "Charged | None":
        """The work around this one."""
        ...


class Observed(Protocol):
    """The watch of a loop, as the observer sees it."""

    thread: int
    listeners: list[OnStall]

    def silent_since(self) -> float:
        """When the loop should have been heard of; in the future if all is well."""
        ...

    def running(self, frame: FrameType | None) -> Charged | None:
        """The work whose code the loop is at."""
        ...


class Suspicion:
    """What is known of one loop while it stands still."""

    def __init__(self) -> None:
        self._since = 0.0
        self._sampled = 0.0
        self._work: Charged | None = None
        self._blocked_since = 0.0
        self._is_told = False

    def look(self, watch: Observed, now: float) -> None:
        """Charge the time since the last look to whoever is at work, and tell of it if it is long."""
        silent = watch.silent_since()
        if now < silent + LATE:
            return
        frame = frame_of(watch.thread)
        work = watch.running(frame)
        if silent != self._since:
            self._since = self._sampled = self._blocked_since = silent
            self._work, self._is_told = work, False
        elif work is not self._work:
            self._work, self._blocked_since, self._is_told = work, self._sampled, False
        passed, self._sampled = max(now - self._sampled, 0.0), now
        charge(work, passed)
        is_news = not self._is_told and now - self._blocked_since >= _TOLD_AFTER
        self._is_told |= is_news
        stall = Stall(
            describe(work), None if work is None else work.owner, passed, place(frame), is_news
        )
        for listener in tuple(watch.listeners):
            listener(stall)


def charge(work: Charged | None, seconds: float) -> None:
    """Count time that work held up its loop, for all that it is part of."""
    while work is not None:
        work.charged += seconds
        work = work.outer


def describe(work: Charged | None) -> str:
    """The names of work and of what it is part of."""
    names: list[str] = []
    while work is not None:
        if work.name and work.name not in names:
            names.append(work.name)
        work = work.outer
    return " of ".join(names)


def place(frame: FrameType | None) -> str:
    """The nearest line of the author's own code that the loop is at, else the line it is at."""
    nearest = frame
    while frame is not None and frame.f_globals.get("__name__") != "asyncio.events":
        if is_authors(frame):
            return shown(frame)
        frame = frame.f_back
    return "" if nearest is None else shown(nearest)


def frame_of(thread: int) -> FrameType | None:
    """The Python code that a thread is at."""
    return sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]


class Observer:
    """Looks at every watched loop that stands still, from a thread of its own."""

    def __init__(self) -> None:
        self._suspicions: dict[Observed, Suspicion] = {}
        self._changed = Condition()
        self._walker: Thread | None = None

    def watch(self, watch: Observed) -> None:
        """Look after a loop from now on."""
        with self._changed:
            self._suspicions[watch] = Suspicion()
            if self._walker is None or not self._walker.is_alive():
                self._walker = Thread(target=self._walk, name="greenroom-observer", daemon=True)
                # An empty context: it outlives the case that happens to come first.
                Context().run(self._walker.start)
            elif len(self._suspicions) == 1:
                self._changed.notify()

    def leave(self, watch: Observed) -> None:
        """Look after it no more."""
        with self._changed:
            self._suspicions.pop(watch, None)

    def _walk(self) -> None:
        while True:
            for watch, suspicion in self._wait():
                suspicion.look(watch, time.monotonic())

    def _wait(self) -> list[tuple[Observed, Suspicion]]:
        with self._changed:
            while not self._suspicions:
                self._changed.wait()
            first = min(watch.silent_since() for watch in self._suspicions) + LATE
            self._changed.wait(min(max(first - time.monotonic(), _LOOK), _IDLE))
            return list(self._suspicions.items())


OBSERVER: Final = Observer()
