"""Deadlines: the time by which a piece of work must be over, carried by the context of that work."""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator
from contextvars import Context, ContextVar
from math import inf
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from greenroom.simulation.hangs.watchdog import Watch

YEAR: Final = 365 * 86400.0
LATE: Final = 0.1
"""Seconds without a sign of life after which a loop counts as stalled."""
_GRACE: Final = 0.1
"""Seconds after which a loop that has not acted on a deadline counts as blocked."""

RUNNING: Final[ContextVar["Deadline | None"]] = ContextVar("greenroom_deadline", default=None)
"""The innermost deadline of the running work."""
OWNER: Final = ContextVar[object]("greenroom_owner", default=None)


class Deadline:
    """The time by which one piece of work must be over.

    `expired` says that time ran out first; `was_cut`, that the work was ended before that. `name` is
    the name in reports for work that blocks; work that is `apart` is part of no other work. `on_extended`
    is called with the seconds for which other work blocked the event loop: they do not count.
    """

    def __init__(
        self,
        seconds: float,
        on_expired: Callable[[], None] | None = None,
        *,
        name: str = "",
        on_extended: Callable[[float], None] | None = None,
        apart: bool = False,
    ) -> None:
        self.seconds = seconds
        self.name = name
        self.outer = None if apart else RUNNING.get()
        self.owner = OWNER.get()
        self.expired = self.was_cut = False
        self.task: asyncio.Task[object] | None = None
        self.over: asyncio.Future[None] | None = None
        """Done when the work is, or when it is given up; for work in its own task."""
        self.began = self.due = self.expects_loop_at = inf
        self.charged = 0.0
        """Seconds for which this work itself blocked its loop."""
        self.cancellations = 0
        self.rounds = 0
        """Rounds of its loop that the work has had since it was told to end."""
        self._on_expired = on_expired
        self._on_extended = on_extended
        self._watch: Watch | None = None

    def begin(self, task: asyncio.Task[object], watch: "Watch") -> None:
        """Start the clock for a task of the running loop."""
        seconds = 0.0 if self.was_cut else min(self.seconds, YEAR)
        self.task = task
        self.began = time.monotonic()
        self.due = self.expects_loop_at = self.began + seconds
        self._watch = watch
        watch.add(self)

    def end(self) -> None:
        """Stop the clock: the work is over."""
        # First of all: without a watch no guard breaks in for this deadline.
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.drop(self)
        # The task's context holds this deadline, and so does the run that is extended: cycles of them
        # would outlive the run.
        self.task = self._on_extended = None

    def retire(self, task: asyncio.Task[object]) -> None:
        """Stop the clock of a task that is done, and let the work that waits for it continue."""
        self.end()
        retrieve_exception(task)
        if self.over is not None and not self.over.done():
            self.over.set_result(None)

    def cut(self) -> None:
        """End the work now rather than in time; any thread may ask for it."""
        self.was_cut = True
        if (watch := self._watch) is not None:
            self.due = self.expects_loop_at = time.monotonic()
            watch.hurry()

    def expire(self) -> None:
        """Note that time ran out, and call `on_expired`."""
        if self.expired or self.was_cut:
            return
        self.expired = True
        if self._on_expired is not None:
            self._on_expired()

    def interrupt(self) -> None:
        """Expire, and have the watch hold the tasks of this work: it is broken into, and may not end them itself."""
        self.expire()
        if (watch := self._watch) is not None:
            watch.hold_tasks(self)

    def acts_at(self) -> float:
        """When the loop counts as blocked, unless it has acted on this deadline by then."""
        return self.expects_loop_at + _GRACE

    def is_missed(self, now: float) -> bool:
        """Whether the work is still watched and its loop, being blocked, let the time pass."""
        watch = self._watch
        if watch is None or now < self.acts_at():
            return False
        return now >= self.acts_at() + self._stood_still(now, watch.silent_since())

    def extend(self, now: float, silent_since: float) -> None:
        """Do not count the time for which other work blocked the loop."""
        seconds = self._stood_still(now, silent_since)
        self.charged = 0.0
        if seconds:
            self.due += seconds
            self.expects_loop_at += seconds
            if self._on_extended is not None:
                self._on_extended(seconds)

    def _stood_still(self, now: float, silent_since: float) -> float:
        """How long other work has blocked its loop."""
        if self.expired or self.was_cut or now < silent_since + LATE:
            return 0.0
        return max(now - max(silent_since, self.began) - self.charged, 0.0)

    def with_outer(self) -> Iterator["Deadline"]:
        """This deadline and those around it, from the inside out."""
        deadline: Deadline | None = self
        while deadline is not None:
            yield deadline
            deadline = deadline.outer


def deadlines_of(task: asyncio.Task[object]) -> Iterator[Deadline]:
    """The deadlines of the work that a task belongs to, from the inside out."""
    innermost = context_of(task).get(RUNNING)
    return iter(()) if innermost is None else innermost.with_outer()


def context_of(task: asyncio.Task[object]) -> Context:
    """The context that a task runs in."""
    # Before Python 3.12 and its `get_context`, a task shows it to the garbage collector only.
    referents: list[object] = gc.get_referents(task)
    return next((it for it in referents if isinstance(it, Context)), Context())


def retrieve_exception(task: asyncio.Task[object]) -> None:
    """Mark what a task raised as seen: asyncio must not log what `finish` returns."""
    # In this file, because the guards never break into it.
    if not task.cancelled():
        task.exception()
