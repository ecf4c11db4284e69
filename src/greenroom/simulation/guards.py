"""Who breaks into a blocked event loop: the alarm on the main thread, a patrol on all others."""

import asyncio
import atexit
import signal
import time
from collections.abc import Iterable, Sequence
from contextvars import Context, ContextVar
from importlib import import_module
from math import inf
from pathlib import Path
from threading import Condition, Thread, get_ident, main_thread
from types import FrameType
from typing import Any, Final, Protocol

from greenroom.simulation.stalls import Charged, frame_of
from greenroom.world.threads import Expired, plant

YEAR: Final = 365 * 86400.0

# Seconds: guards break in no more often than that.
_PAUSE: Final = 0.05

# The public functions spend microseconds on turning numbers into enums.
_signals: Final[Any] = import_module("_signal")
_LOOP: Final = asyncio.__path__[0]
# Whoever begins or ends a deadline must come to the end of it.
_BOOKS: Final = (_LOOP, __file__, str(Path(__file__).with_name("watchdog.py")))
_SIGALRM: Final = int(signal.SIGALRM)
_ITIMER_REAL: Final = int(signal.ITIMER_REAL)


class Watched(Charged, Protocol):
    """A deadline, as a guard sees it."""

    seconds: float
    task: asyncio.Task[Any] | None
    expired: bool
    was_cut: bool

    @property
    def outer(self) -> "Watched | None":
        """The deadline around this one."""
        ...

    def acts_at(self) -> float:
        """When its loop counts as blocked."""
        ...

    def is_missed(self, now: float) -> bool:
        """Whether its loop is blocked."""
        ...

    def expire(self) -> None:
        """Note that time ran out."""
        ...

    def end(self) -> None:
        """Stop the clock."""
        ...

    def break_in(self) -> None:
        """Raise `Expired` in the thread of its loop, if its work is what runs there."""
        ...


class Watch(Protocol):
    """The deadlines of one event loop, as a guard sees them."""

    def deadlines(self) -> Sequence[Watched]:
        """Those watched at this moment."""
        ...


RUNNING: Final[ContextVar[Watched | None]] = ContextVar("greenroom_deadline", default=None)


class SignalGuard:
    """Breaks into a blocked main thread by SIGALRM, armed for the earliest deadline.

    A later deadline costs no arming, and only the last watch to leave disarms.
    """

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._rings_at = inf
        # Kept, so that there is one object to be found again; each `self._ring` is another.
        self._handler = self._ring
        self._is_stopped_at_exit = False

    def is_free(self) -> bool:
        """Whether this is the main thread, and SIGALRM is ours or nobody's."""
        if get_ident() != main_thread().ident:
            return False
        return _signals.getsignal(signal.SIGALRM) in (_signals.SIG_DFL, self._handler)

    def is_set(self) -> bool:
        """Whether SIGALRM is ours at this moment; code may have borrowed it and not given back."""
        return _signals.getsignal(signal.SIGALRM) is self._handler

    def is_set_by(self, at: float) -> bool:
        """Whether it rings at that time or before, as things are; asked for every deadline."""
        return (
            at >= self._rings_at
            and _signals.getsignal(_SIGALRM) is self._handler
            and _signals.getitimer(_ITIMER_REAL)[0] > 0
        )

    def watch(self, watch: Watch) -> None:
        self._watches.add(watch)
        _signals.signal(signal.SIGALRM, self._handler)
        if not self._is_stopped_at_exit:
            # Python forgets the handler when it ends, and then the alarm would kill the process.
            self._is_stopped_at_exit = True
            atexit.register(self._stop)

    def expect(self, at: float) -> None:
        """Be ready to ring at that time, if not before."""
        # Code that uses the timer for a while stops it when done, and ours with it.
        if not self.is_set_by(at):
            self.hurry()

    def hurry(self) -> None:
        self._set(time.monotonic())

    def leave(self, watch: Watch) -> None:
        self._watches.discard(watch)
        if not self._watches and (self.is_set() or _is_our_timer()):
            self._rings_at = inf
            signal.setitimer(signal.ITIMER_REAL, 0)
            if self.is_set():
                _signals.signal(signal.SIGALRM, _signals.SIG_DFL)

    def _stop(self) -> None:
        if _is_our_timer():
            signal.setitimer(signal.ITIMER_REAL, 0)

    def _set(self, now: float) -> None:
        first = _first_act(self._watches)
        self._rings_at = max(first, now + _PAUSE)
        if first < inf:
            # And again until it is heard: a signal that comes just before a call blocks does not
            # break it, and no Python code runs then that could set the timer anew.
            signal.setitimer(signal.ITIMER_REAL, self._rings_at - now, _PAUSE)
        else:
            self._stop()

    def _ring(self, _: int, frame: FrameType | None) -> None:
        now = time.monotonic()
        self._set(now)
        # The handler runs in the context of the code it interrupts, so this is whose time it is.
        deadline = RUNNING.get()
        while deadline is not None and not deadline.is_missed(now):
            deadline = deadline.outer
        # On bad ground the next ring may find better.
        if deadline is not None and can_break(frame):
            deadline.expire()
            raise Expired(f"{deadline.seconds} seconds are over")


class ThreadGuard:
    """Breaks into blocked loops of other threads, from a thread of its own."""

    def __init__(self) -> None:
        self._watches: set[Watch] = set()
        self._looks_at = inf
        self._changed = Condition()
        self._walker: Thread | None = None

    def watch(self, watch: Watch) -> None:
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

    def leave(self, watch: Watch) -> None:
        with self._changed:
            self._watches.discard(watch)

    def _walk(self) -> None:
        while True:
            for deadline in self._wait_for_missed():
                deadline.break_in()

    def _wait_for_missed(self) -> list[Watched]:
        with self._changed:
            self._looks_at = max(_first_act(self._watches), time.monotonic() + _PAUSE)
            self._changed.wait(min(self._looks_at - time.monotonic(), YEAR))
            now = time.monotonic()
            found = (deadline for watch in self._watches for deadline in watch.deadlines())
            return [deadline for deadline in found if deadline.is_missed(now)]


ALARM: Final = SignalGuard()
PATROL: Final = ThreadGuard()


def _is_our_timer() -> bool:
    """Whether the timer is as we set it; whoever borrowed it has hardly chosen the same pause."""
    return signal.getitimer(signal.ITIMER_REAL)[1] == _PAUSE


def _first_act(watches: Iterable[Watch]) -> float:
    return min((it.acts_at() for watch in tuple(watches) for it in watch.deadlines()), default=inf)


def can_break(frame: FrameType | None) -> bool:
    """Whether `Expired` may be raised there.

    Python swallows what is raised in a finalizer, and a loop that is broken while it keeps its books
    forgets whom to call.
    """
    return frame is None or not (
        frame.f_code.co_filename.startswith(_BOOKS) or _is_finalizing(frame)
    )


def break_thread(thread: int) -> None:
    """Raise `Expired` in the Python code that a thread is at, unless that is bad ground."""
    frame = frame_of(thread)
    if frame is None:
        return
    at = frame.f_lasti
    # What is planted is raised at the thread's next step, and it may have gone on while we looked.
    if can_break(frame) and frame_of(thread) is frame and frame.f_lasti == at:
        plant(thread)


def _is_finalizing(frame: FrameType | None) -> bool:
    while frame is not None:
        code = frame.f_code
        if code.co_name == "__del__" or code.co_filename.endswith(("weakref.py", "_weakrefset.py")):
            return True
        frame = frame.f_back
    return False
