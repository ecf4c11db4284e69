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
first. A watch begins with its first deadline and ends with the last; a `vigil` keeps it up in
between, for whoever has many deadlines one after the other: beginning and ending one then costs
next to nothing.
"""

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import suppress
from contextvars import Context, ContextVar, Token, copy_context
from importlib import import_module
from math import inf
from threading import Condition, Thread, get_ident, main_thread
from types import FrameType
from typing import Any, Final, Self, TypeVar

from greenroom.world.threads import Expired, plant

T = TypeVar("T")

# Seconds: between two cancellations, until a silent loop counts as blocked, until work is given up.
_KNOCK: Final = 0.1
_GRACE: Final = 0.1
_PATIENCE: Final = 0.2
_YEAR: Final = 365 * 86400.0

# The public functions spend microseconds on turning numbers into enums.
_signals: Final[Any] = import_module("_signal")


class Deadline:
    """The time by which one piece of work must be over, carried by the context of that work.

    `expired` says that time ran out first; `was_cut`, that somebody ended the work before.
    """

    __slots__ = (
        "_knocks",
        "_on_expired",
        "_over",
        "_task",
        "_watch",
        "due",
        "expects_loop_at",
        "expired",
        "outer",
        "seconds",
        "was_cut",
    )

    def __init__(self, seconds: float, on_expired: Callable[[], None] | None = None) -> None:
        self.seconds = seconds
        self.expired = False
        self.was_cut = False
        self.outer = _running.get()
        self.due = self.expects_loop_at = inf
        self._on_expired = on_expired
        self._over: asyncio.Future[None] | None = None
        self._knocks = 0
        self._watch: _Watch | None = None

    def begin(self, task: asyncio.Task[Any]) -> None:
        """Start the clock for a task of the running loop."""
        seconds = 0.0 if self.was_cut else min(self.seconds, _YEAR)
        self._task = task
        self.due = self.expects_loop_at = time.monotonic() + seconds
        self._watch = watch = _watch_here()
        watch.add(self)

    def over(
        self, task: asyncio.Task[Any], loop: asyncio.AbstractEventLoop
    ) -> "asyncio.Future[None]":
        """Start the clock; the future is done when the task is, or when it is given up."""
        self._over = over = loop.create_future()
        self.begin(task)
        task.add_done_callback(self._retire)
        return over

    def end(self) -> None:
        """Stop the clock: the work is over."""
        if self._watch is not None:
            self._watch.drop(self)
            self._watch = None

    def take_back(self) -> None:
        """Uncancel the task, for work that goes on after this deadline."""
        for _ in range(self._knocks):
            self._task.uncancel()

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
        return self._watch is not None and now >= self.acts_at()

    def expire(self) -> None:
        """Note that time ran out, and tell whoever asked to be told."""
        if self.expired or self.was_cut:
            return
        self.expired = True
        if self._on_expired is not None:
            self._on_expired()

    def knock(self, now: float) -> None:
        """Cancel the task once more; one that will not hear is given up."""
        if self._watch is None or self._task.done():
            self.expects_loop_at = inf
            return
        self.expects_loop_at = now + _KNOCK
        self._knocks += 1
        self._task.cancel()
        self.expire()
        if self._over is not None and now >= self.due + _PATIENCE:
            _close(self._task)
            _settle(self._over)

    def _retire(self, task: asyncio.Task[Any]) -> None:
        self.end()
        if not task.cancelled():
            task.exception()  # seen: asyncio must not log what `finish` hands over
        if self._over is not None:
            _settle(self._over)


_running: Final[ContextVar[Deadline | None]] = ContextVar("greenroom_deadline", default=None)


class watched(Deadline):  # noqa: N801 - read as a verb: with watched(task, seconds)
    """Let this task, the running one, work inside for so long and then cancel it.

    The end comes as `CancelledError`, or as `Expired` if the work blocked its event loop; the
    deadline says whether it was time. A task that catches it may go on outside, no longer counted
    as cancelled. Work that swallows both inside goes on: `finish` would leave it behind.
    """

    __slots__ = ("_token",)

    def __init__(
        self,
        task: asyncio.Task[Any],
        seconds: float,
        on_expired: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(seconds, on_expired)
        self._task = task

    def __enter__(self) -> Self:
        self._token: Token[Deadline | None] = _running.set(self)
        self.begin(self._task)
        return self

    def __exit__(self, *_: object) -> None:
        self.end()
        self.take_back()
        _running.reset(self._token)


async def finish(work: Coroutine[Any, Any, T], deadline: Deadline) -> asyncio.Task[T]:
    """Run the work in a task of its own until it is over, or until it is given up.

    Comes back within 0.3 s of the deadline, or of `deadline.cut()`, whatever the work does. The
    task is done, unless it could not even be closed; it stays watched for as long as it lives.
    """
    loop = asyncio.get_running_loop()
    context = copy_context()
    context.run(_running.set, deadline)
    task = loop.create_task(work, context=context)
    try:
        await deadline.over(task, loop)
    except asyncio.CancelledError:
        deadline.cut()
        await asyncio.wait({task}, timeout=_PATIENCE + _KNOCK)
        raise
    return task


async def sweep(tasks: Iterable[asyncio.Task[Any]]) -> None:
    """End tasks that work left behind: cancelled first, closed if that is no use.

    `asyncio.run` waits without end for a task that swallows its cancellation, so a door sweeps
    before it leaves. Comes back within 0.4 s.
    """
    left = {task for task in tasks if not task.done()}
    for is_patient in (True, True, False):
        for task in left:
            task.cancel() if is_patient else _close_unheard(task)
        if left:
            _, left = await asyncio.wait(left, timeout=_KNOCK)


class vigil:  # noqa: N801 - read as a noun of the trade: with vigil()
    """Keep the watch of the running loop up, however many deadlines begin and end meanwhile.

    Vigils may overlap and nest. What is still watched when the last one closes stays watched.
    """

    __slots__ = ("_watch",)

    def __enter__(self) -> None:
        self._watch = _watch_here()
        self._watch.vigils += 1

    def __exit__(self, *_: object) -> None:
        self._watch.vigils -= 1
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
        self._guard: _Alarm | _Patrol | None = None

    def add(self, deadline: Deadline) -> None:
        self._deadlines.add(deadline)
        if deadline.due < self._looks_at:
            self._set_timer(deadline.due)
        guard = _alarm if _alarm.is_free() else _patrol
        if guard is not self._guard:
            self._change_guard(guard)
        guard.expect(deadline.acts_at())

    def drop(self, deadline: Deadline) -> None:
        self._deadlines.discard(deadline)
        if not self.vigils:
            self.rest()

    def rest(self) -> None:
        """Stop watching, if nobody is watched and no vigil is kept."""
        if self._deadlines or self.vigils:
            return
        self._set_timer(inf)
        self._change_guard(None)
        _watches.pop(self.loop, None)

    def hurry(self) -> None:
        """Look at once, from any thread."""
        if self._guard is not None:
            self._guard.hurry()
        with suppress(RuntimeError):  # a closed loop has ended its work already
            self.loop.call_soon_threadsafe(self._look, context=Context())

    def break_in(self, deadline: Deadline) -> None:
        """Raise `Expired` in the thread of the loop, if work of this deadline is what runs there."""
        task = asyncio.current_task(self.loop)
        if task is not None and deadline in _carried_by(task):
            deadline.expire()
            plant(self.thread)

    def deadlines(self) -> tuple[Deadline, ...]:
        """Those watched at this moment, for any thread to go through."""
        return tuple(self._deadlines)

    def _change_guard(self, guard: "_Alarm | _Patrol | None") -> None:
        if self._guard is not None:
            self._guard.leave(self)
        self._guard = guard
        if guard is not None:
            guard.watch(self)

    def _look(self) -> None:
        now = time.monotonic()
        try:
            for deadline in self.deadlines():
                if deadline.expects_loop_at <= now:
                    deadline.knock(now)
        finally:
            self._set_timer(min((it.expects_loop_at for it in self._deadlines), default=inf))

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


def _watch_here() -> _Watch:
    loop = asyncio.get_running_loop()
    watch = _watches.get(loop)
    if watch is None:
        watch = _watches[loop] = _Watch(loop)
    return watch


class _Alarm:
    """Breaks into a blocked main thread by SIGALRM, armed for the earliest deadline.

    A later deadline costs no arming, and only the last watch to leave disarms.
    """

    def __init__(self) -> None:
        self._watches: set[_Watch] = set()
        self._rings_at = inf

    def is_free(self) -> bool:
        """Whether this is the main thread, and SIGALRM is ours or nobody's."""
        if get_ident() != main_thread().ident:
            return False
        return _signals.getsignal(signal.SIGALRM) in (_signals.SIG_DFL, self._ring)

    def watch(self, watch: _Watch) -> None:
        self._watches.add(watch)

    def expect(self, at: float) -> None:
        """Be ready to ring at that time, if not before."""
        # Code that borrows handler or timer for a while gives back the bare system, not ours.
        if _signals.getsignal(signal.SIGALRM) == _signals.SIG_DFL:
            _signals.signal(signal.SIGALRM, self._ring)
        if at < self._rings_at or not signal.getitimer(signal.ITIMER_REAL)[0]:
            self.hurry()

    def hurry(self) -> None:
        self._set(time.monotonic())

    def leave(self, watch: _Watch) -> None:
        self._watches.discard(watch)
        if not self._watches and _signals.getsignal(signal.SIGALRM) == self._ring:
            self._rings_at = inf
            signal.setitimer(signal.ITIMER_REAL, 0)
            _signals.signal(signal.SIGALRM, _signals.SIG_DFL)

    def _set(self, now: float) -> None:
        first = _first_act(self._watches)
        self._rings_at = max(first, now + _KNOCK / 2)
        if first < inf:
            signal.setitimer(signal.ITIMER_REAL, self._rings_at - now)

    def _ring(self, _: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._set(now)
        # The handler runs in the context of the code it interrupts, so this is whose time it is.
        deadline = _running.get()
        while deadline is not None and not deadline.is_missed(now):
            deadline = deadline.outer
        # Python swallows what is raised in a finalizer; the next ring finds better ground.
        if deadline is not None and not _is_finalizing(frame):
            deadline.expire()
            raise Expired(f"{deadline.seconds} seconds are over")


class _Patrol:
    """Breaks into blocked loops of other threads, from a thread of its own."""

    def __init__(self) -> None:
        self._watches: set[_Watch] = set()
        self._looks_at = inf
        self._changed = Condition()
        self._walker: Thread | None = None

    def watch(self, watch: _Watch) -> None:
        with self._changed:
            self._watches.add(watch)

    def expect(self, at: float) -> None:
        """Be ready to break in at that time, if not before."""
        with self._changed:
            if at < self._looks_at:
                self._changed.notify()
            if self._walker is None or not self._walker.is_alive():
                self._walker = Thread(target=self._walk, name="greenroom-watchdog", daemon=True)
                # An empty context: it outlives the case that happens to come first.
                Context().run(self._walker.start)

    def hurry(self) -> None:
        with self._changed:
            self._changed.notify()

    def leave(self, watch: _Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _walk(self) -> None:
        while True:
            for watch, deadline in self._wait_for_missed():
                watch.break_in(deadline)

    def _wait_for_missed(self) -> list[tuple[_Watch, Deadline]]:
        with self._changed:
            self._looks_at = max(_first_act(self._watches), time.monotonic() + _KNOCK / 2)
            self._changed.wait(min(self._looks_at - time.monotonic(), _YEAR))
            now = time.monotonic()
            found = [(watch, it) for watch in self._watches for it in watch.deadlines()]
            return [(watch, it) for watch, it in found if it.is_missed(now)]


_alarm: Final = _Alarm()
_patrol: Final = _Patrol()


def _first_act(watches: Iterable[_Watch]) -> float:
    return min((it.acts_at() for watch in tuple(watches) for it in watch.deadlines()), default=inf)


def _settle(over: asyncio.Future[None]) -> None:
    if not over.done():
        over.set_result(None)


def _is_finalizing(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename.endswith(("weakref.py", "_weakrefset.py")):
            return True
        frame = frame.f_back
    return False


def _close_unheard(task: asyncio.Task[Any]) -> None:
    _close(task)
    task.add_done_callback(lambda task: task.cancelled() or task.exception())


def _close(task: asyncio.Task[Any]) -> None:
    """End a coroutine that swallows its cancellation, in its own context."""
    coroutine: Any = task.get_coro()
    with suppress(BaseException):  # whatever its last words are, nobody listens any more
        _context_of(task).run(coroutine.close)
    task.cancel()  # the task notices when it next tries to go on


def _carried_by(task: asyncio.Task[Any]) -> Iterator[Deadline]:
    deadline = _context_of(task).get(_running)
    while deadline is not None:
        yield deadline
        deadline = deadline.outer


def _context_of(task: asyncio.Task[Any]) -> Context:
    # Before Python 3.12 and its `get_context`, a task shows it to the garbage collector only.
    referents: list[object] = gc.get_referents(task)
    return next((it for it in referents if isinstance(it, Context)), Context())
