"""The command line. Only click is imported until a command runs, so that `--help` is instant."""

from greenroom.apps.cli.beginning import Interruptible

with Interruptible():
    from greenroom.apps.cli.commands import main

__all__ = ["main"]
