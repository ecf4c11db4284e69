"""Ctrl-C, SIGTERM and SIGHUP: the first asks a run to stop, the second ends the process at once."""

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from math import inf
from select import select
from threading import Thread, current_thread, main_thread
from time import monotonic
from types import FrameType
from typing import Any, Final, Self

from greenroom.apps.cli.exits import ENDINGS, HUNG_UP, INTERRUPTED, TERMINATED, harmless
from greenroom.suite.cancel import Cancel

_CODES: Final = {
    signal.SIGINT: INTERRUPTED,
    signal.SIGTERM: TERMINATED,
    signal.SIGHUP: HUNG_UP,
}
_SHOW_CURSOR: Final = b"\x1b[?25h"

# Seconds: until a run that does not stop is left behind, and for saying what it came to.
_PATIENCE: Final = 3.5
_LAST_WORDS: Final = 5.0


class Signals:
    """Hears signals on a thread of its own, so that code which blocks the event loop hides none.

    The first signal cancels. If that is no use, `overdue` tells what there is, and the process ends.
    The second ends it at once, with what `farewell` knows of how to go on.
    """

    def __init__(
        self, cancel: Cancel, overdue: Callable[[int], None], farewell: Callable[[], str]
    ) -> None:
        self.code = 0
        """The exit code of the signal that came; 0 while none has."""
        self._cancel = cancel
        self._overdue = overdue
        self._farewell = farewell
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        if current_thread() is not main_thread():
            return self  # only the main thread may set handlers
        heard, told = os.pipe()
        os.set_blocking(told, False)
        self._told = told
        for number in _CODES:
            if signal.getsignal(number) not in (signal.SIG_IGN, None):
                self._before[number] = signal.signal(number, self._handle)
        self._woken = signal.set_wakeup_fd(told, warn_on_full_buffer=False)
        self._ear = Thread(
            target=self._listen, args=(heard,), name="greenroom-signals", daemon=True
        )
        self._ear.start()
        return self

    def __exit__(self, *_: object) -> None:
        if current_thread() is not main_thread():
            return
        signal.set_wakeup_fd(self._woken)
        for number, handler in self._before.items():
            signal.signal(number, handler)
        os.close(self._told)  # which is how the thread learns that it is over
        self._ear.join()

    def _handle(self, number: int, _: FrameType | None) -> None:
        """The thread has heard it already, unless an event loop has taken its pipe's place."""
        taken = signal.set_wakeup_fd(self._told, warn_on_full_buffer=False)
        if taken != self._told:
            signal.set_wakeup_fd(taken)
            os.write(self._told, bytes([number]))

    def _listen(self, heard: int) -> None:
        if first := _next(heard, inf):
            self.code = first
            self._cancel.cancel(ENDINGS[first])
            second = _next(heard, monotonic() + _PATIENCE)
            if second is not None:
                self._end(asked_twice=bool(second))
        os.close(heard)

    def _end(self, *, asked_twice: bool) -> None:
        """End the process, however deep its main thread is stuck."""
        if asked_twice:
            _say(f"greenroom: {ENDINGS[self.code]}\n")
            _in_time(self._say_farewell)
        else:
            _in_time(lambda: self._overdue(self.code))
            with suppress(Exception):
                sys.stdout.flush()
        if sys.stdout.isatty():
            os.write(1, _SHOW_CURSOR)
        os._exit(self.code)

    def _say_farewell(self) -> None:
        if told := self._farewell():
            _say(f"{harmless(told)}\n")


def _in_time(tell: Callable[[], None]) -> None:
    """Do not wait for last words that do not come."""
    telling = Thread(target=tell, daemon=True)
    telling.start()
    telling.join(_LAST_WORDS)


def _next(heard: int, until: float) -> int | None:
    """The exit code of the next signal; 0 when time is up, None when the run is over."""
    while (left := until - monotonic()) > 0:
        if not select([heard], [], [], None if left == inf else left)[0]:
            break
        number = os.read(heard, 1)
        if not number:
            return None
        if number[0] in _CODES:  # others have theirs, the alarm among them
            return _CODES[signal.Signals(number[0])]
    return 0


def _say(text: str) -> None:
    with suppress(OSError):
        os.write(2, text.encode())
