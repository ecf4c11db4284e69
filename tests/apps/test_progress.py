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

from apps.terminals import WORDS, environment
from warm_python import WarmPython

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
        await asyncio.sleep(3600 if os.environ.get("HANGS") else float(os.environ.get("SLEEPS", 0.3)))
        if os.environ.get("BREAKS"):
            raise RuntimeError("it fell over")
        return ModelReply("money")

agent = Agent("slow", model=Slow())
cases = [Case(f"case-{n}", says="Hi", metrics=[contains("money")]) for n in range(3)]
"""


class Screen:
    """A command on a terminal of a real size, and what a person sees on it in the end."""

    def __init__(self, folder: Path, width: int, *signals: int, **env: str) -> None:
        narrowed = int(env.pop("NARROWED", 0))
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, width, 0, 0))
        screen = pyte.HistoryScreen(width, 50, history=500)
        stream = pyte.ByteStream(screen)
        self.received = b""
        with WarmPython(
            [*WORDS, "eval", "run", "shop.py"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
            env=environment(env),
        ) as process:
            os.close(theirs)
            waiting = list(signals)
            for piece in self._pieces(ours):
                self.received += piece
                stream.feed(piece)
                is_shown = b"rehearsing" in self.received or "TERM" in env
                if waiting and is_shown and (folder / "waiting").exists():
                    process.send_signal(waiting.pop(0))
                # Behind the logs, where the bar is drawn once in a while.
                drawn = self.received.rpartition(b"a line of")[2].count(b"rehearsing")
                if narrowed and drawn > 2 and piece.endswith(b"left"):
                    process.send_signal(signal.SIGSTOP)
                    if not select.select([ours], [], [], 0.1)[0]:  # it is not just drawing
                        width, narrowed = narrowed, 0
                        _narrow(screen, width, rewraps="XTERM_VERSION" not in env)
                        size = struct.pack("HHHH", 50, width, 0, 0)
                        fcntl.ioctl(ours, termios.TIOCSWINSZ, size)
                        (folder / "narrowed").touch()
                    process.send_signal(signal.SIGCONT)
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


def _narrow(screen: pyte.Screen, width: int, *, rewraps: bool) -> None:
    """Make the window narrower: most terminals break their lines again then, others cut them."""
    lines = [line.rstrip() for line in screen.display[: screen.cursor.y + 1]]
    screen.resize(columns=width)
    if not rewraps:
        return
    broken = [line[n : n + width] for line in lines for n in range(0, len(line) or 1, width)]
    screen.erase_in_display(2)
    screen.cursor_position(1, 1)
    for number, line in enumerate(broken):
        if number:
            screen.carriage_return()
            screen.linefeed()
        screen.draw(line)


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


def test_the_window_of_this_test_would_show_the_rest_of_a_bar_that_was_broken():
    screen = pyte.Screen(100, 5)
    stream = pyte.Stream(screen)
    stream.feed("a log\r\nrehearsing " + "━" * 40 + " 1/3 0:00:00 -:--:-- left")
    _narrow(screen, 40, rewraps=True)
    stream.feed("\r\x1b[2K")
    assert "rehears" in screen.display[1]


@pytest.mark.parametrize("env", [{}, {"XTERM_VERSION": "XTerm(390)"}, {"COLUMNS": "160"}])
def test_no_bar_stays_when_the_window_gets_narrower(author, tmp_path, env):
    author(SLOW)
    # A bar that is just being drawn while the window changes may break; not in three runs.
    for _ in range(3):
        seen = Screen(tmp_path, 100, NARROWED="42", SLEEPS="1", **env)
        text = seen.text.replace("\n", "")
        lines = [text.count(line) for line in ("a line of a log", "a line of the agent")]
        found = (seen.is_stale, lines, seen.has_cursor)
        if (tmp_path / "narrowed").exists() and found == (False, [3, 3], True):
            return
    raise AssertionError(seen.text)  # pyright: ignore[reportPossiblyUnboundVariable]


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
    # The second may come when Python itself is ending; a shell calls that 130 too.
    assert seen.exit_code in (130, -signal.SIGINT)
    assert b"rehears" in seen.received
    assert not seen.is_stale, seen.text
    assert seen.has_cursor
    assert "interrupted" in seen.text
