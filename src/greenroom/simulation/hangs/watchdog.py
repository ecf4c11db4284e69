"""Stopping work that hangs: no case takes longer than its deadline and a moment.

Three ways, each for what the one before cannot reach:

- Work that awaits is cancelled by a timer of its event loop, and again every tenth of a second,
  because libraries swallow cancellation. Finally `finish` closes its coroutine, and returns even
  if that does not help either.
- Work that blocks the event loop of the main thread is interrupted by SIGALRM, which raises `Expired`
  in the running code if that code belongs to a case whose time is up. While SIGALRM has another
  handler, the third way is used.
- Work that blocks another event loop is interrupted by a thread that raises `Expired` there.

The last two take effect between two steps of Python code. A call into C that neither returns nor
checks for signals cannot be stopped from inside its process; for the third way that includes
`time.sleep`. Such work needs a worker process.

Each event loop has one watch, which knows every deadline of its work and sets one timer for the
first. A watch begins with its first deadline and ends with the last; `keep_watching` keeps it up in
between, for many deadlines one after the other.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, Token, copy_context
from math import inf
from threading import get_ident
from types import FrameType
from typing import Any, Final, TypeVar

from greenroom.simulation.hangs.deadlines import (
    LATE,
    OWNER,
    RUNNING,
    Deadline,
    deadlines_of,
)
from greenroom.simulation.hangs.guards import ALARM, PATROL, SignalGuard, ThreadGuard, break_thread
from greenroom.simulation.hangs.leftovers import close, sweep
from greenroom.simulation.hangs.stalls import OBSERVER, OnStall
from greenroom.world.leftover_work import ROUNDS, abandoned_tasks, close_by

__all__ = [
    "Deadline",
    "cut_all",
    "finish",
    "keep_watching",
    "sweep_cut_work",
    "watched",
]

T = TypeVar("T")

# Seconds: between two signs of life of a loop, between two cancellations, until work is given up, until it
# is given up even if it had few rounds.
_BEAT: Final = 0.1
_KNOCK: Final = 0.1
_PATIENCE: Final = 0.2
_LAST_PATIENCE: Final = 2.0

# Private: the function by which the loop makes every call. A frame of it shows which call that is.
_CALLS: Final = asyncio.Handle._run.__code__


class watched:  # noqa: N801 - read as a verb: with watched(task, seconds)
    """Let the running task work inside for at most the given seconds, then cancel it.

    The end comes as `CancelledError`, or as `Expired` if the work blocked its event loop; the
    deadline says whether it was time. A task that catches it may continue outside, no longer counted
    as cancelled. Work that swallows both inside continues: `finish` would leave it behind.
    """

    def __init__(
        self,
        task: asyncio.Task[object],
        seconds: float,
        on_expired: Callable[[], None] | None = None,
        *,
        name: str = "",
        apart: bool = False,
    ) -> None:
        self._task = task
        self._deadline = Deadline(seconds, on_expired, name=name, apart=apart)

    def __enter__(self) -> Deadline:
        self._token: Token[Deadline | None] = RUNNING.set(self._deadline)
        self._deadline.begin(self._task, _watch_of(asyncio.get_running_loop()))
        return self._deadline

    def __exit__(self, *_exc: object) -> None:
        self._deadline.end()
        for _ in range(self._deadline.cancellations):
            self._task.uncancel()  # it continues after this deadline
        RUNNING.reset(self._token)


async def finish(
    work: Coroutine[Any, Any, T], deadline: Deadline, name: str = "work"
) -> asyncio.Task[T]:
    """Run the work in its own task of this name, until it is over or is given up.

    Returns within 0.3 s of the deadline, or of `deadline.cut()`, whatever the work does; on a machine too
    busy for the loop to make its rounds, within about 2 s. The task is done, unless it could not even be
    closed; it stays watched for as long as it lives. Tasks that it left behind are swept at once, or when
    the watch is over.
    """
    loop = asyncio.get_running_loop()
    context = copy_context()
    context.run(RUNNING.set, deadline)
    task = loop.create_task(work, name=name, context=context)
    watch = _watch_of(loop)
    deadline.over = loop.create_future()
    task.add_done_callback(deadline.retire)
    deadline.begin(task, watch)
    try:
        await deadline.over
    except asyncio.CancelledError:
        deadline.cut()
        await asyncio.wait({task}, timeout=_PATIENCE + _KNOCK)
        raise
    if not watch.keepers and (deadline.expired or deadline.was_cut or abandoned_tasks(loop)):
        await sweep_cut_work()
    return task


async def sweep_cut_work() -> None:
    """End the tasks of this loop that belong to stopped or abandoned work; call it at the end of a watch.

    Not before: what one case has started, a client for instance, others may use.
    """
    cut = [
        task
        for task in asyncio.all_tasks() - {asyncio.current_task()}
        if any(it.expired or it.was_cut for it in deadlines_of(task))
    ]
    await sweep({*cut, *abandoned_tasks(asyncio.get_running_loop())})


def cut_all(loop: asyncio.AbstractEventLoop, owner: object) -> None:
    """End all work of one owner that is watched on this loop; any thread may call it."""
    watch = _watches.get(loop)
    for deadline in () if watch is None else watch.deadlines():
        if deadline.owner is owner:
            deadline.cut()


class keep_watching:  # noqa: N801 - read as a verb: with keep_watching()
    """Keep the watch of the running loop up, however many deadlines begin and end meanwhile.

    These may overlap and nest. What is still watched when the last one closes stays watched. All
    work begun inside has this `owner`, by which `cut_all` finds it. `on_stall` is called, in a thread
    of the watchdog, with everything that blocks the loop.
    """

    def __init__(self, owner: object = None, on_stall: OnStall | None = None) -> None:
        self._owner = owner
        self._on_stall = on_stall

    def __enter__(self) -> None:
        self._token = OWNER.set(self._owner)
        self._watch = _watch_of(asyncio.get_running_loop())
        self._watch.keepers += 1
        if self._on_stall is not None:
            self._watch.listeners.append(self._on_stall)

    def __exit__(self, *_: object) -> None:
        OWNER.reset(self._token)
        self._watch.keepers -= 1
        if self._on_stall is not None:
            self._watch.listeners.remove(self._on_stall)
        self._watch.rest()


class Watch:
    """All deadlines of one event loop, and one timer for the first of them.

    A timer is never postponed: when it goes off early, because its deadline has ended meanwhile, it
    is set for the next one. So each deadline costs one timer at most, and nearly all cost none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = get_ident()
        self.keepers = 0
        self.listeners: list[OnStall] = []
        self._deadlines: set[Deadline] = set()
        self._held: set[asyncio.Task[object]] = set()
        self._looks_at = inf
        self._timer: asyncio.TimerHandle | None = None
        self._guard: SignalGuard | ThreadGuard | None = None
        OBSERVER.watch(self)

    def add(self, deadline: Deadline) -> None:
        """Watch over a deadline."""
        self._deadlines.add(deadline)
        if deadline.due < self._looks_at:
            self._set_timer(min(deadline.due, deadline.began + _BEAT))
        # The alarm wherever it can ring, for it reaches further. Code may have taken SIGALRM over.
        if self._guard is None or not (self._guard is ALARM and ALARM.is_set()):
            guard = ALARM if ALARM.is_free() else PATROL
            if self._guard is not None and self._guard is not guard:
                self._guard.leave(self)
            self._guard = guard
            guard.watch(self)
        self._guard.expect(deadline.acts_at())

    def drop(self, deadline: Deadline) -> None:
        """Stop watching over it."""
        self._deadlines.discard(deadline)
        self.rest()

    def rest(self) -> None:
        """Stop watching, if no work is watched and none asked to keep watching."""
        if self._deadlines or self.keepers:
            return
        self._set_timer(inf)
        if self._guard is not None:
            self._guard.leave(self)
            self._guard = None
        _watches.pop(self.loop, None)
        OBSERVER.leave(self)

    def hurry(self) -> None:
        """Look at once, from any thread."""
        if self._guard is not None:
            self._guard.hurry()
        with suppress(RuntimeError):  # a closed loop has ended its work already
            self.loop.call_soon_threadsafe(self._look, context=Context())

    def deadlines(self) -> tuple[Deadline, ...]:
        """Those watched at this moment, for any thread to go through."""
        return tuple(self._deadlines)

    def silent_since(self) -> float:
        """When the loop's next sign of life is due; in the future if all is well."""
        return self._looks_at

    def running(self, frame: FrameType | None) -> Deadline | None:
        """The work whose code the loop is executing: that of its task, or of the call it makes."""
        task = asyncio.current_task(self.loop)
        if task is not None:
            return next(deadlines_of(task), None)
        while frame is not None and frame.f_code is not _CALLS:
            frame = frame.f_back
        # A handle lets go of itself when its work is over. Its context has no public name.
        handle = None if frame is None else frame.f_locals.get("self")
        return None if handle is None else handle._context.get(RUNNING)

    def break_in(self, deadline: Deadline) -> None:
        """Raise `Expired` in the thread of the loop, if this work is what runs there."""
        task = asyncio.current_task(self.loop) if deadline in self._deadlines else None
        if task is not None and deadline in deadlines_of(task):
            deadline.interrupt()
            break_thread(self.thread)

    def hold_tasks(self, deadline: Deadline) -> None:
        """Hold the tasks of work that is ended by force, until they are swept or this watch ends.

        The code that would have ended them may never get to it. If nothing else holds them, Python collects
        them while they wait, and complains.
        """
        left = {task for task in self._held if not task.done()}
        tasks = asyncio.all_tasks(self.loop)
        self._held = left | {task for task in tasks if deadline in deadlines_of(task)}

    def _look(self) -> None:
        now, silent_since = time.monotonic(), self._looks_at
        try:
            for deadline in self.deadlines():
                if deadline.charged or now > silent_since + LATE:
                    deadline.extend(now, silent_since)
                if deadline.expects_loop_at <= now:
                    self._knock(deadline, now)
        finally:
            first = min((it.expects_loop_at for it in self._deadlines), default=inf)
            self._set_timer(min(first, now + _BEAT) if first < inf else inf)

    def _knock(self, deadline: Deadline, now: float) -> None:
        """Cancel the task once more; one that continues nevertheless is given up."""
        task, over = deadline.task, deadline.over
        if task is None or task.done():
            deadline.expects_loop_at = inf
            if task is not None and over is not None:
                deadline.retire(task)  # it was broken into before the loop heard that it was done
            return
        deadline.expects_loop_at = now + _KNOCK
        if not deadline.cancellations:
            self._count_rounds(deadline)
        deadline.cancellations += 1
        task.cancel()
        deadline.expire()
        patience = _PATIENCE if deadline.rounds >= ROUNDS else _LAST_PATIENCE
        if over is not None and now >= deadline.due + patience:
            self.hold_tasks(deadline)
            close(task)
            if not over.done():
                over.set_result(None)

    def _count_rounds(self, deadline: Deadline) -> None:
        """Count the rounds in which work can end: on a busy machine they are few in a long time."""
        deadline.rounds += 1
        if deadline.rounds < ROUNDS and deadline in self._deadlines:
            self.loop.call_soon(self._count_rounds, deadline, context=Context())

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._looks_at = at
        if at < inf:
            # An empty context: the time this takes belongs to no case, and must not be interrupted.
            delay = max(at - time.monotonic(), 0.0)
            self._timer = self.loop.call_later(delay, self._look, context=Context())


close_by(close)

_watches: Final[dict[asyncio.AbstractEventLoop, Watch]] = {}


def _watch_of(loop: asyncio.AbstractEventLoop) -> Watch:
    watch = _watches.get(loop)
    if watch is None:
        watch = _watches[loop] = Watch(loop)
    return watch
