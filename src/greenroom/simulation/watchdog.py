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
"""

import asyncio
import gc
import signal
import time
from collections.abc import Callable, Coroutine, Generator, Iterable, Iterator
from contextlib import contextmanager, suppress
from contextvars import Context, ContextVar, copy_context
from functools import partial
from importlib import import_module
from math import inf
from threading import Condition, Thread, get_ident, main_thread
from types import FrameType
from typing import Any, Final, TypeVar

from greenroom.world.threads import Expired, plant

T = TypeVar("T")

# Seconds: between two cancellations, until a silent loop counts as blocked, until work is given up.
_KNOCK: Final = 0.1
_GRACE: Final = 0.1
_PATIENCE: Final = 0.2
_YEAR: Final = 365 * 86400.0

# The public `signal.signal` spends 6 µs on turning numbers into enums, twice for every case.
_signals: Final[Any] = import_module("_signal")


class Deadline:
    """The time by which one piece of work must be over, carried by the context of that work.

    `expired` says that time ran out first; `was_cut`, that somebody ended the work before.
    """

    def __init__(self, seconds: float, on_expired: Callable[[], None] | None = None) -> None:
        self.seconds = seconds
        self.expired = False
        self.was_cut = False
        self.outer = _running.get()
        self.due = inf
        self._expects_loop_at = inf
        self._on_expired = on_expired
        self._on_stubborn: Callable[[], None] | None = None
        self._knocks = 0
        self._guard: _Alarm | _Patrol | None = None

    def begin(self, task: asyncio.Task[Any], on_stubborn: Callable[[], None] | None = None) -> None:
        """Start the clock for a task of the running loop.

        `on_stubborn` is called when the task still runs a moment after it was first cancelled.
        """
        seconds = 0.0 if self.was_cut else min(self.seconds, _YEAR)
        self._task, self._on_stubborn = task, on_stubborn
        self._loop, self._thread = asyncio.get_running_loop(), get_ident()
        self.due = self._expects_loop_at = time.monotonic() + seconds
        self._timer = self._loop.call_later(seconds, self._knock)
        self._guard = _alarm if _alarm.is_free() else _patrol
        self._guard.watch(self)

    def end(self) -> None:
        """Stop the clock: the work is over."""
        if self._guard is not None:
            self._timer.cancel()
            self._guard.leave(self)
            self._guard = None

    def take_back(self) -> None:
        """Uncancel the task, for work that goes on after this deadline."""
        for _ in range(self._knocks):
            self._task.uncancel()

    def cut(self) -> None:
        """End the work now rather than in time; any thread may ask for it."""
        self.was_cut = True
        if self._guard is None:
            return
        self.due = self._expects_loop_at = time.monotonic()
        self._guard.hurry()
        with suppress(RuntimeError):  # a closed loop has ended its work already
            self._loop.call_soon_threadsafe(self._knock)

    def acts_at(self) -> float:
        """When the loop counts as blocked, unless it has acted on this deadline by then."""
        return self._expects_loop_at + _GRACE

    def is_missed(self, now: float) -> bool:
        """Whether the work is still watched and its loop, being blocked, let the time pass."""
        return self._guard is not None and now >= self.acts_at()

    def expire(self) -> None:
        """Note that time ran out, and tell whoever asked to be told."""
        if self.expired or self.was_cut:
            return
        self.expired = True
        if self._on_expired is not None:
            self._on_expired()

    def break_in(self) -> None:
        """Raise `Expired` in the thread of the loop, if this work is what runs there."""
        task = asyncio.current_task(self._loop)
        if task is not None and self in _carried_by(task):
            self.expire()
            plant(self._thread)

    def _knock(self) -> None:
        if self._guard is None or self._task.done():
            return
        self.expire()
        self._timer.cancel()
        self._timer = self._loop.call_later(_KNOCK, self._knock)
        now = time.monotonic()
        self._expects_loop_at = now + _KNOCK
        self._knocks += 1
        self._task.cancel()
        if self._on_stubborn is not None and now >= self.due + _PATIENCE:
            self._on_stubborn()


_running: Final[ContextVar[Deadline | None]] = ContextVar("greenroom_deadline", default=None)


@contextmanager
def watched(
    task: asyncio.Task[Any], seconds: float, on_expired: Callable[[], None] | None = None
) -> Generator[Deadline]:
    """Let this task, the running one, work inside for so long and then cancel it.

    The end comes as `CancelledError`, or as `Expired` if the work blocked its event loop; the
    deadline says whether it was time. A task that catches it may go on outside, no longer counted
    as cancelled. Work that swallows both inside goes on: `finish` would leave it behind.
    """
    deadline = Deadline(seconds, on_expired)
    token = _running.set(deadline)
    deadline.begin(task)
    try:
        yield deadline
    finally:
        deadline.end()
        deadline.take_back()
        _running.reset(token)


async def finish(work: Coroutine[Any, Any, T], deadline: Deadline) -> asyncio.Task[T]:
    """Run the work in a task of its own until it is over, or until it is given up.

    Comes back within 0.3 s of the deadline, or of `deadline.cut()`, whatever the work does. The
    task is done, unless it could not even be closed; it stays watched for as long as it lives.
    """
    context = copy_context()
    context.run(_running.set, deadline)
    task = asyncio.create_task(work, context=context)
    over = asyncio.get_running_loop().create_future()
    deadline.begin(task, partial(_give_up, task, context, over))
    task.add_done_callback(partial(_retire, deadline, over))
    try:
        await over
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
            task.cancel() if is_patient else _close_where_it_stands(task)
        if left:
            _, left = await asyncio.wait(left, timeout=_KNOCK)


class _Alarm:
    """Breaks into a blocked main thread by SIGALRM, armed for the earliest deadline.

    A later deadline costs no arming, and only the last to leave disarms.
    """

    def __init__(self) -> None:
        self._watched: set[Deadline] = set()
        self._rings_at = inf

    def is_free(self) -> bool:
        """Whether this is the main thread, and SIGALRM is ours or nobody's."""
        if get_ident() != main_thread().ident:
            return False
        return _signals.getsignal(signal.SIGALRM) in (signal.SIG_DFL, self._ring)

    def watch(self, deadline: Deadline) -> None:
        if not self._watched:
            _signals.signal(signal.SIGALRM, self._ring)
        self._watched.add(deadline)
        # Code that uses the timer for a while stops it when done, and ours with it.
        if deadline.acts_at() < self._rings_at or not signal.getitimer(signal.ITIMER_REAL)[0]:
            self.hurry()

    def hurry(self) -> None:
        self._set(time.monotonic())

    def leave(self, deadline: Deadline) -> None:
        self._watched.discard(deadline)
        if not self._watched and _signals.getsignal(signal.SIGALRM) == self._ring:
            self._rings_at = inf
            signal.setitimer(signal.ITIMER_REAL, 0)
            _signals.signal(signal.SIGALRM, _signals.SIG_DFL)

    def _set(self, now: float) -> None:
        first = min((deadline.acts_at() for deadline in self._watched), default=inf)
        if first < inf:
            self._rings_at = max(first, now + _KNOCK / 2)
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
        self._watched: set[Deadline] = set()
        self._looks_at = inf
        self._changed = Condition()
        self._walker: Thread | None = None

    def watch(self, deadline: Deadline) -> None:
        with self._changed:
            self._watched.add(deadline)
            if deadline.acts_at() < self._looks_at:
                self._changed.notify()
            if self._walker is None or not self._walker.is_alive():
                self._walker = Thread(target=self._walk, name="greenroom-watchdog", daemon=True)
                # An empty context: it outlives the case that happens to come first.
                Context().run(self._walker.start)

    def hurry(self) -> None:
        with self._changed:
            self._changed.notify()

    def leave(self, deadline: Deadline) -> None:
        with self._changed:
            self._watched.discard(deadline)

    def _walk(self) -> None:
        while True:
            for deadline in self._wait_for_missed():
                deadline.break_in()

    def _wait_for_missed(self) -> list[Deadline]:
        with self._changed:
            first = min((deadline.acts_at() for deadline in self._watched), default=inf)
            self._looks_at = max(first, time.monotonic() + _KNOCK / 2)
            self._changed.wait(min(self._looks_at - time.monotonic(), _YEAR))
            now = time.monotonic()
            return [deadline for deadline in self._watched if deadline.is_missed(now)]


_alarm: Final = _Alarm()
_patrol: Final = _Patrol()


def _give_up(task: asyncio.Task[Any], context: Context, over: asyncio.Future[None]) -> None:
    _close(task, context)
    if not over.done():
        over.set_result(None)


def _is_finalizing(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename.endswith(("weakref.py", "_weakrefset.py")):
            return True
        frame = frame.f_back
    return False


def _retire(deadline: Deadline, over: asyncio.Future[None], task: asyncio.Task[Any]) -> None:
    deadline.end()
    if not task.cancelled():
        task.exception()  # seen: asyncio must not log what `finish` hands over
    if not over.done():
        over.set_result(None)


def _close_where_it_stands(task: asyncio.Task[Any]) -> None:
    _close(task, _context_of(task))
    task.add_done_callback(lambda task: task.cancelled() or task.exception())


def _close(task: asyncio.Task[Any], context: Context) -> None:
    """End a coroutine that swallows its cancellation, in its own context."""
    coroutine: Any = task.get_coro()
    with suppress(BaseException):  # whatever its last words are, nobody listens any more
        context.run(coroutine.close)
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
