"""What stands on the screen after a run: the report, and nothing of the progress bar."""

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from pathlib import Path

import pyte
import pytest

from apps.terminals import WORDS, environment, hears_interrupts

SLOW = """
import asyncio, logging, os, time
from pathlib import Path
from greenroom.models import ModelReply

logging.basicConfig(level=logging.INFO)

class Slow:
    name = "slow"
    async def respond(self, request, on_delta=None):
        logging.getLogger("agent").info("a line of a log")
        print("a line of the agent")
        Path("waiting").touch()
        if os.environ.get("BLOCKS"):
            while True:
                time.sleep(0.01)
        await asyncio.sleep(3600 if os.environ.get("HANGS") else 0.3)
        if os.environ.get("BREAKS"):
            raise RuntimeError("it fell over")
        return ModelReply("money")

agent = Agent("slow", model=Slow())
cases = [Case(f"case-{n}", says="Hi", metrics=[contains("money")]) for n in range(3)]
"""


class Screen:
    """A command on a terminal of a real size, and what a person sees on it in the end."""

    def __init__(self, folder: Path, width: int, *signals: int, **env: str) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        screen = pyte.HistoryScreen(width, 50, history=500)
        stream = pyte.ByteStream(screen)
        self.received = b""
        with subprocess.Popen(
            [*WORDS, "eval", "run", "shop.py"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=environment(env),
            preexec_fn=hears_interrupts,  # noqa: PLW1509 - no threads run here yet
        ) as process:
            os.close(theirs)
            waiting = list(signals)
            for piece in self._pieces(ours):
                self.received += piece
                stream.feed(piece)
                is_shown = b"rehearsing" in self.received or "TERM" in env
                if waiting and is_shown and (folder / "waiting").exists():
                    process.send_signal(waiting.pop(0))
        os.close(ours)
        self.exit_code = process.returncode
        above = ["".join(line[n].data for n in range(width)) for line in screen.history.top]
        self.text = "\n".join(line.rstrip() for line in [*above, *screen.display])
        self.has_cursor = not screen.cursor.hidden

    def _pieces(self, terminal: int):
        while True:
            if select.select([terminal], [], [], 0.2)[0]:
                try:
                    piece = os.read(terminal, 65536)
                except OSError:
                    return
                if not piece:
                    return
                yield piece
            else:
                yield b""

    @property
    def is_stale(self) -> bool:
        return any(mark in self.text for mark in ("rehears", "━", "-:--:--"))


def test_the_screen_of_this_test_would_show_a_bar_that_stays():
    screen = pyte.Screen(80, 5)
    pyte.Stream(screen).feed("rehearsing ━━━━ 0/3 0:00:00 -:--:-- leftINFO a line of a log\r\n")
    assert "rehears" in screen.display[0]


@pytest.mark.parametrize("width", [100, 80, 40, 25])
def test_no_bar_stays_in_wide_and_narrow_terminals(author, tmp_path, width):
    author(SLOW)
    seen = Screen(tmp_path, width)
    assert b"rehears" in seen.received
    assert seen.exit_code == 0
    assert not seen.is_stale, seen.text
    assert seen.text.replace("\n", "").count("a line of a log") == 3
    assert seen.has_cursor


def test_no_bar_stays_where_the_environment_claims_more_columns_than_there_are(author, tmp_path):
    author(SLOW)
    seen = Screen(tmp_path, 60, COLUMNS="160")
    assert b"rehears" in seen.received
    assert not seen.is_stale, seen.text


def test_a_dumb_terminal_gets_no_bar_at_all(author, tmp_path):
    author(SLOW)
    seen = Screen(tmp_path, 80, TERM="dumb")
    assert b"rehears" not in seen.received
    assert b"\x1b[?25l" not in seen.received


def test_no_bar_stays_after_errors(author, tmp_path):
    author(SLOW)
    seen = Screen(tmp_path, 80, BREAKS="1")
    assert seen.exit_code == 2
    assert not seen.is_stale, seen.text
    assert "it fell over" in " ".join(seen.text.split())


@pytest.mark.parametrize("way", ["HANGS", "BLOCKS"])
@pytest.mark.parametrize("signals", [[signal.SIGINT], [signal.SIGINT, signal.SIGINT]])
def test_no_bar_stays_after_ctrl_c(author, tmp_path, way, signals):
    author(SLOW)
    seen = Screen(tmp_path, 80, *signals, **{way: "1"})
    assert seen.exit_code == 130
    assert b"rehears" in seen.received
    assert not seen.is_stale, seen.text
    assert seen.has_cursor
    assert "interrupted" in seen.text
