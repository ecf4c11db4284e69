"""The command line as a process of its own, in a pipe or on a pseudo-terminal."""

import os
import pty
import re
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from warm_python import WarmPython

WORDS = [sys.executable, "-c", "from greenroom.apps.cli import main; main()"]
SGR = re.compile(r"\x1b\[([0-9;]*)m")


@dataclass(frozen=True)
class Shown:
    """What a terminal received, byte for byte, and how the command ended."""

    text: str
    exit_code: int

    @property
    def colours(self) -> set[str]:
        """The colours asked for; bold and dim are none."""
        numbers = {n for codes in SGR.findall(self.text) for n in codes.split(";") if n}
        return {n for n in numbers if re.fullmatch(r"(3|4|9|10)[0-8]", n)}


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what would decide about colours and widths."""
    deciding = ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "TTY_COMPATIBLE", "TTY_INTERACTIVE")
    kept = {key: value for key, value in os.environ.items() if key not in deciding}
    return {**kept, "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8", **extra}


def started(*words: str, cwd: Path, stdout: int = subprocess.PIPE, **env: str) -> WarmPython:
    """The command, under way."""
    return WarmPython(
        [*WORDS, *words],
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=stdout,
        stderr=subprocess.STDOUT,
        env=environment(env),
    )


def wait_for(file: Path, process: subprocess.Popen) -> None:
    """Come back when the command, or what it plays, has made this file."""
    while not file.exists():
        assert process.poll() is None, process.stdout and process.stdout.read()
        time.sleep(0.01)


def hears_interrupts() -> None:
    """What runs in the background is deaf to Ctrl-C, and so would be all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_terminal(*words: str, cwd: Path, **env: str) -> Shown:
    """The command on a pseudo-terminal, to its end."""
    ours, theirs = pty.openpty()
    with started(*words, cwd=cwd, stdout=theirs, **{"COLUMNS": "100", **env}) as process:
        os.close(theirs)
        text = _all(ours).decode()
    os.close(ours)
    return Shown(text, process.returncode)


def _all(terminal: int) -> bytes:
    received = b""
    # Linux ends a terminal whose other side is closed with an error, others with nothing.
    with suppress(OSError):
        while piece := os.read(terminal, 65536):
            received += piece
    return received
