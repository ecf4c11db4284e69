"""Guards that interrupt a blocked event loop: an alarm on the main thread, a patrol on all others."""

import asyncio
import atexit
import gc
import os
import signal
import sys
import time
from collections.abc import Iterable
from contextvars import Context
from importlib import import_module
from math import inf
from pathlib import Path
from threading import Condition, RLock, Thread, get_ident, main_thread
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

from greenroom.simulation.hangs.deadlines import RUNNING, YEAR, Deadline
from greenroom.world.threads import Expired, plant

if TYPE_CHECKING:
    from greenroom.simulation.hangs.watchdog import Watch

# Seconds between two interruptions at least.
_PAUSE: Final = 0.05

# Private: the functions of `signal` are Python code around these, in which the alarm could interrupt
# the beginning or the end of a deadline.
_signals: Final[Any] = import_module("_signal")
_HERE: Final = Path(__file__)
# Code that must not be interrupted: asyncio's, and that which keeps deadlines.
_UNBROKEN: Final = (
    asyncio.__path__[0],
    __file__,
    str(_HERE.with_name("deadlines.py")),
    str(_HERE.with_name("watchdog.py")),
)


class SignalGuard:
    """Breaks into a blocked main thread by SIGALRM, armed for the earliest deadline.

    A later deadline costs no arming. Any thread may bring a deadline closer, so the timer is set under the
    lock: an alarm that was set after the handler had gone would kill the process.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        os.register_at_fork(after_in_child=self._unlock)
        self._watches: set[Watch] = set()
        self._rings_at = inf
        # Kept, so that there is one object to be found again; each `self._ring` is another.
        self._handler = self._ring
        self._is_stopped_at_exit = False

    def is_free(self) -> bool:
        """Whether this is the main thread, and SIGALRM is ours or has no handler."""
        if get_ident() != main_thread().ident:
            return False
        return _signals.getsignal(signal.SIGALRM) in (_signals.SIG_DFL, self._handler)

    def is_set(self) -> bool:
        """Whether SIGALRM is ours at this moment; other code may have taken it and not restored it."""
        return _signals.getsignal(signal.SIGALRM) is self._handler

    def watch(self, watch: "Watch") -> None:
        """Ring for the deadlines of this watch too."""
        with self._lock:
            self._watches.add(watch)
            _signals.signal(signal.SIGALRM, self._handler)
        if not self._is_stopped_at_exit:
            # Python forgets the handler when it ends, and then the alarm would kill the process.
            self._is_stopped_at_exit = True
            atexit.register(self._stop)

    def expect(self, at: float) -> None:
        """Be ready to ring at that time, if not before; SIGALRM is ours."""
        # Code that uses the timer for a while stops it when done, and ours with it.
        if at < self._rings_at or _signals.getitimer(signal.ITIMER_REAL)[0] <= 0:
            self.hurry()

    def hurry(self) -> None:
        """Set the alarm again: a deadline has come closer."""
        self._set(time.monotonic())

    def leave(self, watch: "Watch") -> None:
        """Stop ringing for its deadlines; the last watch to leave disarms."""
        with self._lock:
            self._watches.discard(watch)
            if not self._watches and (self.is_set() or _is_our_timer()):
                self._rings_at = inf
                signal.setitimer(signal.ITIMER_REAL, 0)
                if self.is_set():
                    # By default, an alarm that no thread has taken yet kills the process; ignoring it drops it.
                    _signals.signal(signal.SIGALRM, _signals.SIG_IGN)
                    _signals.signal(signal.SIGALRM, _signals.SIG_DFL)

    def _unlock(self) -> None:
        self._lock = RLock()  # after a fork, the thread that held the old one may not exist

    def _stop(self) -> None:
        if _is_our_timer():
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _set(self, now: float) -> None:
        with self._lock:
            first = _first_act(self._watches)
            self._rings_at = max(first, now + _PAUSE)
            if first < inf:
                # And again until it is heard: a signal that comes just before a call blocks does not
                # break it, and no Python code runs then that could set the timer again.
                signal.setitimer(signal.ITIMER_REAL, self._rings_at - now, _PAUSE)
            else:
                self._stop()

    def _ring(self, _: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._set(now)
        # The handler runs in the context of the code it interrupts, so this is whose time it is.
        innermost = RUNNING.get()
        around = () if innermost is None else innermost.with_outer()
        deadline = next((it for it in around if it.is_missed(now)), None)
        # Where it cannot break in now, the next ring may find other code.
        if deadline is not None and can_break(frame):
            deadline.interrupt()
            raise Expired(f"{deadline.seconds} seconds are over")


class ThreadGuard:
    """Interrupts blocked loops of other threads, from its own thread."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._looks_at = inf
        self._changed = Condition()
        self._walker: Thread | None = None

    def watch(self, watch: "Watch") -> None:
        """Look after the deadlines of this watch too."""
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
        """Look again: a deadline has come closer."""
        with self._changed:
            self._changed.notify()

    def leave(self, watch: "Watch") -> None:
        """Stop watching its deadlines."""
        with self._changed:
            self._watches.discard(watch)

    def _walk(self) -> None:
        while True:
            for watch, deadline in self._wait_for_missed():
                watch.break_in(deadline)

    def _wait_for_missed(self) -> list[tuple["Watch", Deadline]]:
        with self._changed:
            self._looks_at = max(_first_act(self._watches), time.monotonic() + _PAUSE)
            self._changed.wait(min(self._looks_at - time.monotonic(), YEAR))
            now = time.monotonic()
            return [
                (watch, deadline)
                for watch in self._watches
                for deadline in watch.deadlines()
                if deadline.is_missed(now)
            ]


ALARM: Final = SignalGuard()
PATROL: Final = ThreadGuard()


def _is_our_timer() -> bool:
    """Whether the timer is as we set it; other code is unlikely to choose the same interval."""
    return signal.getitimer(signal.ITIMER_REAL)[1] == _PAUSE


def _first_act(watches: Iterable["Watch"]) -> float:
    return min((it.acts_at() for watch in tuple(watches) for it in watch.deadlines()), default=inf)


def can_break(frame: FrameType | None) -> bool:
    """Whether `Expired` may be raised there.

    Python swallows what is raised in a finalizer or a callback of the garbage collector, and a loop
    that is broken in its own code forgets what to call next.
    """
    if frame is not None and frame.f_code.co_filename.startswith(_UNBROKEN):
        return False
    callbacks = [getattr(callback, "__code__", None) for callback in gc.callbacks]
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code in callbacks:
            return False
        if code.co_filename.endswith(("weakref.py", "_weakrefset.py")):
            return False
        frame = frame.f_back
    return True


def break_thread(thread: int) -> None:
    """Raise `Expired` in the Python code that a thread is at, if it may be raised there."""
    frame = frame_of(thread)
    if frame is None:
        return
    at = frame.f_lasti
    # The exception is raised at the thread's next step, and it may have moved on while we looked.
    if can_break(frame) and frame_of(thread) is frame and frame.f_lasti == at:
        plant(thread)


def frame_of(thread: int) -> FrameType | None:
    """The Python frame that a thread is executing."""
    # Private, but there is no other way to see it.
    return sys._current_frames().get(thread)  # pyright: ignore[reportPrivateUsage]
