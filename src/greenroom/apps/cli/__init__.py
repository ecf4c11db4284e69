"""The command line. Only click is imported until a command runs, so that `--help` is instant.

Ctrl-C before it is handled here would print a traceback, so next to nothing is loaded before that.
"""

import os

_INTERRUPTED = 130

try:
    import signal

    def _leave(_: int, __: object) -> None:
        os._exit(_INTERRUPTED)

    # Only the main thread receives signals, and another program's handler is left in place.
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
