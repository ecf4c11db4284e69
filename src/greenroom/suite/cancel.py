"""Stopping a run from outside: what is finished stays, the rest is left out and says so."""

from collections.abc import Callable
from threading import Lock


class Cancel:
    """A token to stop a run with: `evaluate(..., cancel=token)`, then `token.cancel()`.

    Any thread or signal handler may cancel. The run stops the trials in progress, starts no more, and
    returns its report, in which the rest is skipped.
    """

    def __init__(self) -> None:
        self.reason = ""
        self._lock = Lock()
        self._listeners: list[Callable[[], None]] = []

    def cancel(self, reason: str = "cancelled") -> None:
        """Stop every run that has this token; the first reason counts."""
        if not self.reason:
            self.reason = reason or "cancelled"
        for listener in tuple(self._listeners):
            listener()

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` on cancellation, at once if that has happened."""
        with self._lock:
            self._listeners.append(listener)
        if self.reason:
            listener()

    def leave(self, listener: Callable[[], None]) -> None:
        """Stop calling this listener."""
        with self._lock:
            self._listeners.remove(listener)
