"""A stalled event loop: how long, at which code, and to whom it is reported.

The loop of a run should give a sign of life every tenth of a second. While it does not, a thread looks
at the code it is executing. The time is charged to the work that the code belongs to, if any; for all
other work of that loop the clocks are paused.
"""

import time
from collections.abc import Callable
from contextvars import Context
from threading import Condition, Thread
from types import FrameType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from greenroom.simulation.fence.refusal import is_authors, line_of
from greenroom.simulation.hangs.deadlines import LATE, Deadline
from greenroom.simulation.hangs.guards import frame_of

if TYPE_CHECKING:
    from greenroom.simulation.hangs.watchdog import Watch

_REPORTED_AFTER: Final = 1.0
_LOOK: Final = 0.05
_IDLE: Final = 0.5
_IMPORT: Final = "<frozen importlib._bootstrap>"


class Stall(Struct, frozen=True):
    """Work that blocks its event loop, at one moment."""

    who: str
    """The case, metric or hook; empty if the code belongs to none."""
    owner: object
    seconds: float
    """How much was added since the last report."""
    where: str
    """The line of code, as `file.py:12 in name`."""
    is_news: bool
    """Whether it has just become long enough to be reported."""


OnStall = Callable[[Stall], None]


class Suspicion:
    """What is known about one loop while it is stalled."""

    def __init__(self) -> None:
        self._since = 0.0
        self._sampled = 0.0
        self._work: Deadline | None = None
        self._blocked_since = 0.0
        self._is_reported = False

    def look(self, watch: "Watch", now: float) -> None:
        """Charge the time since the last look to the work that runs, and report it if it is long."""
        silent = watch.silent_since()
        if now < silent + LATE:
            return
        frame = frame_of(watch.thread)
        work = watch.running(frame)
        if silent != self._since:
            self._since = self._sampled = self._blocked_since = silent
            self._work, self._is_reported = work, False
        elif work is not self._work:
            self._work, self._blocked_since, self._is_reported = work, self._sampled, False
        if _is_import(frame):
            self._blocked_since = now
        passed, self._sampled = max(now - self._sampled, 0.0), now
        names: dict[str, None] = {}
        for deadline in () if work is None else work.with_outer():
            deadline.charged += passed
            names[deadline.name] = None
        is_news = not self._is_reported and now - self._blocked_since >= _REPORTED_AFTER
        self._is_reported |= is_news
        stall = Stall(
            who=" of ".join(filter(None, names)),
            owner=None if work is None else work.owner,
            seconds=passed,
            where=_place(frame),
            is_news=is_news,
        )
        for listener in tuple(watch.listeners):
            listener(stall)


def _is_import(frame: FrameType | None) -> bool:
    """Whether the loop is importing a library.

    Frameworks import parts of themselves in their first case. The author can neither await that nor
    move it, and it happens once, so it is charged like other work but not reported.
    """
    while frame is not None and not is_authors(frame):
        if frame.f_code.co_filename == _IMPORT:
            return True
        frame = frame.f_back
    return False


def _place(frame: FrameType | None) -> str:
    """The nearest line of the author's own code that the loop is executing, else the line itself."""
    nearest = frame
    while frame is not None and frame.f_globals.get("__name__") != "asyncio.events":
        if is_authors(frame):
            return line_of(frame)
        frame = frame.f_back
    return "" if nearest is None else line_of(nearest)


class Observer:
    """Looks at every watched loop that is stalled, from its own thread."""

    def __init__(self) -> None:
        self._suspicions: dict[Watch, Suspicion] = {}
        self._changed = Condition()
        self._walker: Thread | None = None

    def watch(self, watch: "Watch") -> None:
        """Watch a loop from now on."""
        with self._changed:
            self._suspicions[watch] = Suspicion()
            if self._walker is None or not self._walker.is_alive():
                self._walker = Thread(target=self._walk, name="greenroom-observer", daemon=True)
                # An empty context: it outlives the case that happens to come first.
                Context().run(self._walker.start)
            elif len(self._suspicions) == 1:
                self._changed.notify()

    def leave(self, watch: "Watch") -> None:
        """Stop watching it."""
        with self._changed:
            self._suspicions.pop(watch, None)

    def _walk(self) -> None:
        while True:
            for watch, suspicion in self._wait():
                suspicion.look(watch, time.monotonic())

    def _wait(self) -> list[tuple["Watch", Suspicion]]:
        with self._changed:
            while not self._suspicions:
                self._changed.wait()
            first = min(watch.silent_since() for watch in self._suspicions) + LATE
            self._changed.wait(min(max(first - time.monotonic(), _LOOK), _IDLE))
            return list(self._suspicions.items())


OBSERVER: Final = Observer()
