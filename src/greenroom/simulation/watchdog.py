"""Cutting what hangs: nobody waits for a case longer than its deadline and a moment.

Three watchmen, each for what the one before cannot reach:

- Work that awaits is cancelled by a timer of its event loop, and again every tenth of a second,
  because libraries swallow cancellation. `finish` at last closes its coroutine, and comes back
  even if that is no use either.
- Work that blocks the event loop of the main thread is broken by SIGALRM, which raises `Expired`
  in the running code if that code belongs to a case whose time is up. Not while somebody else has
  a handler for SIGALRM: then the third one does it.
- Work that blocks another event loop is broken by a thread that plants `Expired` there.

The last two take effect between two steps of Python code. A call into C that neither returns nor
looks for signals cannot be cut from inside its process; for the third watchman that includes
`time.sleep`. Such work needs a worker process.

Each event loop has one watch, which knows every deadline of its work and sets one timer for the
first. A watch begins with its first deadline and ends with the last; a `keep_watching` keeps it up in
between, for whoever has many deadlines one after the other: beginning and ending one then costs
next to nothing.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import Context, ContextVar, Token, copy_context
from dataclasses import field
from math import inf
from threading import get_ident
from types import FrameType
from typing import Any, Final, TypeVar

from greenroom.ledger.records import record
from greenroom.simulation.guards import (
    ALARM,
    PATROL,
    RUNNING,
    YEAR,
    SignalGuard,
    ThreadGuard,
    Watched,
    break_thread,
)
from greenroom.simulation.leftovers import carried_by, close, hear_out, sweep
from greenroom.simulation.stalls import BEAT, LATE, OBSERVER, OnStall

T = TypeVar("T")

# Seconds: between two cancellations, until a silent loop counts as blocked, until work is given up.
_KNOCK: Final = 0.1
_GRACE: Final = 0.1
_PATIENCE: Final = 0.2

# What the loop does to call anything.
_CALLS: Final = asyncio.Handle._run.__code__

_PARTY: Final = ContextVar[object]("owner", default=None)


@record(frozen=False, eq=False)
class Deadline:
    """The time by which one piece of work must be over, carried by the context of that work.

    `expired` says that time ran out first; `was_cut`, that somebody ended the work before.
    """

    seconds: float
    _on_expired: Callable[[], None] | None = None
    name: str = ""
    on_extended: Callable[[float], None] | None = None
    expired: bool = False
    was_cut: bool = False
    outer: Watched | None = field(default_factory=RUNNING.get)
    owner: object = field(default_factory=_PARTY.get)
    began: float = inf
    due: float = inf
    charged: float = 0.0
    expects_loop_at: float = inf
    task: asyncio.Task[Any] | None = None
    _over: "asyncio.Future[None] | None" = None
    knocks: int = 0
    _is_given_up: bool = False
    _watch: "_Watch | None" = None

    def begin(self, task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop) -> None:
        """Start the clock for a task of the running loop."""
        seconds = 0.0 if self.was_cut else self.seconds
        self.task = task
        self.began = now = time.monotonic()
        self.due = self.expects_loop_at = now + (seconds if seconds < YEAR else YEAR)
        self._watch = watch = _watches.get(loop) or _watch_of(loop)
        watch.add(self)

    def over(
        self, task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop
    ) -> "asyncio.Future[None]":
        """Start the clock; the future is done when the work is, or when it is given up."""
        self._over = over = loop.create_future()
        task.add_done_callback(self._retire)
        self.begin(task, loop)
        return over

    def end(self) -> None:
        """Stop the clock: the work is over."""
        # Without a watch nobody breaks in for this deadline.
        watch, self._watch = self._watch, None
        if watch is not None:
            watch.drop(self)
        # The task's context holds this deadline, and so does the run that is extended: rings of them
        # would outlive the run.
        self.task = self.on_extended = None

    def conclude(self) -> None:
        """The same, as the last act of work in a task of its own.

        The task has no need to tell then, and whoever waits for it is called one round of the event
        loop earlier. Not if nobody waits any more: a task that was given up may live on, waiting
        for what swallows its cancellation, and stays watched until it is done.
        """
        over, task = self._over, self.task
        if over is None or task is None or over.done() or self._is_given_up:
            return
        # First of all, so that nobody breaks in while the loop is told: it would never hear of it.
        self.end()
        try:  # noqa: SIM105 - costs nothing, and this is done for every case
            over.set_result(None)
        except RuntimeError:
            pass  # the loop has closed: nobody waits any more
        task.remove_done_callback(self._retire)

    def cut(self) -> None:
        """End the work now rather than in time; any thread may ask for it."""
        self.was_cut = True
        if (watch := self._watch) is not None:
            self.due = self.expects_loop_at = time.monotonic()
            watch.hurry()

    def acts_at(self) -> float:
        """When the loop counts as blocked, unless it has acted on this deadline by then."""
        return self.expects_loop_at + _GRACE

    def is_missed(self, now: float) -> bool:
        """Whether the work is still watched and its loop, being blocked, let the time pass."""
        watch = self._watch
        if watch is None or now < self.acts_at():
            return False
        return now >= self.acts_at() + self._stood_still(now, watch.silent_since())

    def _stood_still(self, now: float, silent_since: float) -> float:
        """How long its loop has been held up by others than this work."""
        if self.expired or self.was_cut or now < silent_since + LATE:
            return 0.0
        return max(now - max(silent_since, self.began) - self.charged, 0.0)

    def extend(self, now: float, silent_since: float) -> None:
        """Let the time not count that others held up the loop."""
        seconds = self._stood_still(now, silent_since)
        self.charged = 0.0
        if seconds:
            self.due += seconds
            self.expects_loop_at += seconds
            if self.on_extended is not None:
                self.on_extended(seconds)

    def expire(self) -> None:
        """Note that time ran out, and tell whoever asked to be told."""
        if self.expired or self.was_cut:
            return
        self.expired = True
        if self._on_expired is not None:
            self._on_expired()

    def break_in(self) -> None:
        """Raise `Expired` in the thread of the loop, if this work is what runs there."""
        watch = self._watch
        task = None if watch is None else asyncio.current_task(watch.loop)
        if watch is not None and task is not None and self in carried_by(task):
            self.expire()
            break_thread(watch.thread)

    def knock(self, now: float) -> None:
        """Cancel the task once more; one that will not hear is given up."""
        task = self.task
        if task is None or task.done():
            self.expects_loop_at = inf
            if task is not None and self._over is not None:
                self._retire(task)  # it was broken into while it told the loop that it was done
            return
        self.expects_loop_at = now + _KNOCK
        self.knocks += 1
        task.cancel()
        self.expire()
        if self._over is not None and now >= self.due + _PATIENCE:
            self._give_up(task, self._over)

    def _give_up(self, task: asyncio.Task[Any], over: "asyncio.Future[None]") -> None:
        """Close the work; whoever waits for it goes on, even if that is no use either."""
        self._is_given_up = True
        close(task)
        if not over.done():
            over.set_result(None)

    def _retire(self, task: asyncio.Task[Any]) -> None:
        self.end()
        hear_out(task)
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


class watched:  # noqa: N801 - read as a verb: with watched(task, seconds)
    """Let this task, the running one, work inside for so long and then cancel it.

    The end comes as `CancelledError`, or as `Expired` if the work blocked its event loop; the
    deadline says whether it was time. A task that catches it may go on outside, no longer counted
    as cancelled. Work that swallows both inside goes on: `finish` would leave it behind.
    """

    __slots__ = ("_deadline", "_token", "_whose")

    def __init__(
        self,
        task: asyncio.Task[Any],
        seconds: float,
        on_expired: Callable[[], None] | None = None,
        *,
        name: str = "",
        apart: bool = False,
    ) -> None:
        """`name` is what is told of work that blocks; what is `apart` is part of no other work."""
        self._whose = task
        self._deadline = Deadline(seconds, on_expired, name)
        if apart:
            self._deadline.outer = None

    def __enter__(self) -> Deadline:
        self._token: Token[Watched | None] = RUNNING.set(self._deadline)
        self._deadline.begin(self._whose, asyncio.get_running_loop())
        return self._deadline

    def __exit__(self, *_exc: object) -> None:
        self._deadline.end()
        for _ in range(self._deadline.knocks):
            self._whose.uncancel()  # it goes on after this deadline
        RUNNING.reset(self._token)


async def finish(
    work: Coroutine[Any, Any, T], deadline: Deadline, name: str = "work"
) -> asyncio.Task[T]:
    """Run the work in a task of its own, so called, until it is over or is given up.

    Comes back within 0.3 s of the deadline, or of `deadline.cut()`, whatever the work does. The
    task is done, unless it could not even be closed; it stays watched for as long as it lives. What
    it left behind is swept at once, or when the watch is over.
    """
    loop = asyncio.get_running_loop()
    context = copy_context()
    context.run(RUNNING.set, deadline)
    task = loop.create_task(work, name=name, context=context)
    try:
        await deadline.over(task, loop)
    except asyncio.CancelledError:
        deadline.cut()
        await asyncio.wait({task}, timeout=_PATIENCE + _KNOCK)
        raise
    finally:
        if task.done():
            hear_out(task)
    if deadline.expired or deadline.was_cut:
        watch = _watches.get(loop)
        if watch is None or not watch.vigils:
            await sweep_cut_work()
    return task


async def sweep_cut_work() -> None:
    """End the tasks of this loop that belong to work which was cut; for the end of a watch.

    Not before: what one case has begun, a client for instance, others may use.
    """
    await sweep(
        task
        for task in asyncio.all_tasks() - {asyncio.current_task()}
        if any(it.expired or it.was_cut for it in carried_by(task))
    )


def cut_all(loop: asyncio.AbstractEventLoop, owner: object) -> None:
    """End everything of one party that is watched on this loop; any thread may ask for it."""
    watch = _watches.get(loop)
    for deadline in () if watch is None else watch.deadlines():
        if deadline.owner is owner:
            deadline.cut()


class keep_watching:  # noqa: N801 - read as a verb: with keep_watching()
    """Keep the watch of the running loop up, however many deadlines begin and end meanwhile.

    Vigils may overlap and nest. What is still watched when the last one closes stays watched. All
    work begun inside is of one `owner`, to be told from that of others by `cut_all`. `on_stall` is
    told, in a thread of the watchdog's, of all that holds up the loop.
    """

    __slots__ = ("_on_stall", "_party", "_token", "_watch")

    def __init__(self, owner: object = None, on_stall: OnStall | None = None) -> None:
        self._party = owner
        self._on_stall = on_stall

    def __enter__(self) -> None:
        self._token = _PARTY.set(self._party)
        loop = asyncio.get_running_loop()
        self._watch = _watches.get(loop) or _watch_of(loop)
        self._watch.vigils += 1
        if self._on_stall is not None:
            self._watch.listeners.append(self._on_stall)

    def __exit__(self, *_: object) -> None:
        _PARTY.reset(self._token)
        self._watch.vigils -= 1
        if self._on_stall is not None:
            self._watch.listeners.remove(self._on_stall)
        self._watch.rest()


class _Watch:
    """All deadlines of one event loop, and one timer for the first of them.

    A timer is never put off: when it goes off early, because its deadline has ended meanwhile, it
    is set for the next one. So each deadline costs a timer at most, and nearly all cost none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self.thread = get_ident()
        self.vigils = 0
        self._deadlines: set[Deadline] = set()
        self._looks_at = inf
        self._timer: asyncio.TimerHandle | None = None
        self._guard: SignalGuard | ThreadGuard | None = None
        self.listeners: list[OnStall] = []
        OBSERVER.watch(self)

    def add(self, deadline: Deadline) -> None:
        self._deadlines.add(deadline)
        if deadline.due < self._looks_at:
            self._set_timer(min(deadline.due, deadline.began + BEAT))
        acts_at = deadline.due + _GRACE
        if self._guard is not ALARM or not ALARM.is_set_by(acts_at):
            self._posted_guard().expect(acts_at)

    def drop(self, deadline: Deadline) -> None:
        self._deadlines.discard(deadline)
        if not self.vigils:
            self.rest()

    def rest(self) -> None:
        """Stop watching, if no work is watched and none asked to keep watching."""
        if self._deadlines or self.vigils:
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
        """When the loop should have been heard of; in the future if all is well."""
        return self._looks_at

    def running(self, frame: FrameType | None) -> Watched | None:
        """The work whose code the loop is at: that of its task, or of the call it makes."""
        task = asyncio.current_task(self.loop)
        if task is not None:
            return next(carried_by(task), None)
        while frame is not None and frame.f_code is not _CALLS:
            frame = frame.f_back
        # A handle lets go of itself when its work is over.
        handle = None if frame is None else frame.f_locals.get("self")
        return None if handle is None else handle._context.get(RUNNING)

    def _posted_guard(self) -> SignalGuard | ThreadGuard:
        """The alarm wherever it can ring, for it reaches further; else the patrol."""
        if self._guard is ALARM and ALARM.is_set():
            return ALARM
        guard = ALARM if ALARM.is_free() else PATROL
        if self._guard is not None and self._guard is not guard:
            self._guard.leave(self)
        self._guard = guard
        guard.watch(self)
        return guard

    def _look(self) -> None:
        now, silent_since = time.monotonic(), self._looks_at
        try:
            for deadline in self.deadlines():
                if deadline.charged or now > silent_since + LATE:
                    deadline.extend(now, silent_since)
                if deadline.expects_loop_at <= now:
                    deadline.knock(now)
        finally:
            first = min((it.expects_loop_at for it in self._deadlines), default=inf)
            self._set_timer(min(first, now + BEAT) if first < inf else inf)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._looks_at = at
        if at < inf:
            # An empty context: the time it takes to look is no case's, and must not be cut short.
            delay = max(at - time.monotonic(), 0.0)
            self._timer = self.loop.call_later(delay, self._look, context=Context())


_watches: Final[dict[asyncio.AbstractEventLoop, _Watch]] = {}


def _watch_of(loop: asyncio.AbstractEventLoop) -> _Watch:
    watch = _watches[loop] = _Watch(loop)
    return watch
