"""The first moments of the command line, in which there is nothing yet to stop.

Whatever is loaded before this can be broken into by Ctrl-C with a traceback, so next to nothing is.
"""

import os

_INTERRUPTED = 130

try:
    import signal
except KeyboardInterrupt:  # it takes Python a few milliseconds, and nothing has begun
    os._exit(_INTERRUPTED)


class Interruptible:
    """Lets Ctrl-C end the process without a traceback through modules that are being loaded."""

    def __enter__(self) -> None:
        self._is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if self._is_ours:
            try:
                signal.signal(signal.SIGINT, _leave)
            except ValueError:  # only the main thread hears signals
                self._is_ours = False

    def __exit__(self, *_: object) -> None:
        if self._is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _leave(_: int, __: object) -> None:
    os._exit(_INTERRUPTED)
