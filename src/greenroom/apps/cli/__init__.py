"""The command line. Only click is imported until a command runs, so that `--help` is instant."""

import os

try:
    from greenroom.apps.cli.early_signals import Interruptible

    with Interruptible():
        from greenroom.apps.cli.commands import main
except KeyboardInterrupt:  # nothing has begun that could be lost
    os._exit(130)

__all__ = ["main"]
