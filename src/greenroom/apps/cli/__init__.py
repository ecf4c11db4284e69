"""The command line. Only click is imported until a command runs, so that `--help` is instant.

Whatever is loaded before Ctrl-C is handled here would break into a traceback, so next to nothing is.
"""

import os

_INTERRUPTED = 130

try:
    import signal

    def _leave(_: int, __: object) -> None:
        os._exit(_INTERRUPTED)

    # Only the main thread hears signals, and a handler of another program stays.
    _is_ours = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    try:
        if _is_ours:
            signal.signal(signal.SIGINT, _leave)
    except ValueError:
        _is_ours = False
    try:
        from greenroom.apps.cli.commands import main
    finally:
        if _is_ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
except KeyboardInterrupt:  # nothing has begun that could be lost
    os._exit(_INTERRUPTED)

__all__ = ["main"]
