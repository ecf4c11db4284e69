"""`greenroom perform`: a chat in a real terminal, in a pipe, and what is left of it."""

import json
import os
import pty
import re
import select
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python
from apps.terminals import hears_interrupts

SHOP = '''
import asyncio
from pathlib import Path

from greenroom import Agent, Scripted, call, tool


class Slowly(Scripted):
    """A model that streams."""

    async def respond(self, request, on_delta=None):
        reply = await super().respond(request, None)
        for word in (reply.text or "").split():
            if on_delta is not None:
                on_delta(word + " ")
            await asyncio.sleep(0.01)
        return reply


@tool
def book(day: str) -> str:
    """Book a day."""
    with Path("acted").open("a") as file:
        file.write(day + "\\n")
    return f"booked {day}"


@tool(yields=True)
def approve(price: int) -> bool:
    """Ask whether the price is all right."""


model = Slowly(call("approve", price=90), call("book", day="Monday"), "See you on Monday.", "Bye.")
agent = Agent("desk", model=model, tools=[book, approve])
'''


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("GREENROOM_STORE", raising=False)
    (tmp_path / "shop.py").write_text(SHOP)
    return tmp_path


def greenroom(folder: Path, *args: str, given: str = "") -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "greenroom.apps.cli", *args]
    return warm_python.run(
        command, cwd=folder, input=given, capture_output=True, text=True, check=False
    )


def conversation_in(text: str) -> str:
    found = re.search(r"--conversation (\S+)", text)
    assert found is not None, text
    return found[1]


@pytest.mark.e2e
def test_lines_of_a_pipe_are_a_conversation_that_becomes_a_case_which_passes(shop):
    comment = "# mine\nversion: 1\ncases:\n- id: one\n  says: Hi  # first\n"
    (shop / "mine.yaml").write_text(comment)
    lines = "Monday, please\ny\n/state\nThanks\n/save shop.yaml visit\n/save mine.yaml visit\n"
    ended = greenroom(shop, "perform", "shop.py", given=lines)
    assert ended.returncode == 0, ended.stderr
    assert (shop / "mine.yaml").read_text().startswith(f"{comment}- id: visit\n")
    assert "See you on Monday." in ended.stdout
    assert ended.stdout.rstrip().endswith("Bye.")
    assert "book → booked Monday" in ended.stderr
    assert (shop / "acted").read_text() == "Monday\n"
    rehearsed = greenroom(shop, "eval", "run", "shop.py", "shop.yaml")
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr
    assert (shop / "acted").read_text() == "Monday\n"


@pytest.mark.e2e
def test_one_message_is_answered_and_the_rest_is_said_later(shop):
    begun = greenroom(shop, "perform", "shop.py", "-m", "Monday, please", "--user", "u7")
    assert begun.returncode == 0, begun.stderr
    assert "waits for approve(price=90)" in begun.stderr
    key = conversation_in(begun.stderr)
    listed = json.loads(greenroom(shop, "perform", "--list", "--json").stdout)
    assert [(one["id"], one["user"], one["is_open"]) for one in listed] == [(key, "u7", False)]
    ended = greenroom(shop, "perform", "shop.py", "--conversation", key, given="yes\n")
    assert "See you on Monday." in ended.stdout
    data = json.loads(
        greenroom(
            shop, "perform", "shop.py", "--conversation", key, "-m", "Thanks", "--json"
        ).stdout
    )
    assert data["responses"] == ["See you on Monday.", "Bye."]
    assert (shop / "acted").read_text() == "Monday\n"


def test_the_command_that_continues_has_the_options_that_it_was_begun_with(shop):
    guard = "class Guard:\n    async def before_tool(self, call):\n        return None\n\n\nown = Guard()\n"
    (shop / "guard.py").write_text(guard)
    options = [
        "--user",
        "a b",
        "--seconds",
        "50",
        "--store",
        "other",
        "--middleware",
        "guard.py:own",
    ]
    begun = greenroom(shop, "perform", "shop.py", "-m", "Monday, please", *options)
    assert begun.returncode == 0, begun.stderr
    [hint] = [line for line in begun.stderr.splitlines() if line.startswith("kept: ")]
    words = shlex.split(hint.removeprefix("kept: greenroom "))
    for name, value in zip(options[::2], options[1::2], strict=True):
        assert words[words.index(name) + 1] == value
    assert "-m" not in words
    ended = greenroom(shop, *words, given="yes\n")
    assert "See you on Monday." in ended.stdout, ended.stderr


def test_words_after_the_agent_are_refused_and_say_where_they_belong(shop):
    ended = greenroom(shop, "perform", "shop.py", "Hello", "there")
    assert ended.returncode == 3
    assert "To say 'Hello there' to it, give --message TEXT." in ended.stderr
    assert json.loads(greenroom(shop, "perform", "--list", "--json").stdout) == []


@pytest.mark.parametrize(
    "args, says",
    [
        (["perform"], "name the agent"),
        (["perform", "shop.py", "--conversation", "x", "-m", "Hi"], "no conversation 'x'"),
        (["perform", "none.py", "-m", "Hi"], "none.py"),
        (["perform", "shop.py", "--conversation", "x", "--store", "off"], "store is off"),
    ],
)
def test_what_cannot_be_meant_is_bad_input(shop, args, says):
    ended = greenroom(shop, *args)
    assert (ended.returncode, says in ended.stderr) == (3, True), ended.stderr


class Screen:
    """A terminal in which the command runs."""

    def __init__(self, folder: Path, *args: str) -> None:
        self.child, self.fd = pty.fork()
        if self.child == 0:
            os.chdir(folder)
            hears_interrupts()
            os.execv(sys.executable, [sys.executable, "-m", "greenroom.apps.cli", *args])
        self.text = ""

    def wait_for(self, words: str) -> None:
        """Read until these words appear; what comes after them stays to be read."""
        while words not in self.text:
            assert self._read(), self.text
        self.text = self.text.partition(words)[2]

    def _read(self) -> bool:
        """Whether something more came within a minute; the end of the command is none."""
        if not select.select([self.fd], [], [], 60)[0]:
            return False
        try:
            piece = os.read(self.fd, 4096)
        except OSError:  # as Linux ends a terminal whose other side is closed
            return False
        self.text += piece.decode(errors="replace")
        return bool(piece)

    def type(self, line: str) -> None:
        os.write(self.fd, line.encode())

    def interrupt(self) -> None:
        """Press Ctrl-C, as a person does: once more if nothing happens.

        A signal that comes between the prompt and the reading of the line is heard with the next key.
        """
        for _ in range(6):
            self.type("\x03")
            while select.select([self.fd], [], [], 10)[0]:
                if not self._read() or "kept:" in self.text:
                    return

    def ended(self) -> int:
        self.wait_for("kept: greenroom perform")
        while self._read():
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1])
        os.close(self.fd)
        return code


@pytest.mark.e2e
def test_in_a_terminal_replies_stream_and_approvals_are_asked(shop):
    screen = Screen(shop, "perform", "shop.py")
    screen.wait_for("you> ")
    screen.type("Monday, please\n")
    screen.wait_for("approve(price=90): ")
    screen.type("perhaps\n")
    screen.wait_for("does not fit")
    screen.wait_for("approve(price=90): ")
    screen.type("y\n")
    screen.wait_for("See you on Monday.")
    screen.type("/what\n")
    screen.wait_for("/quit leaves")
    screen.type("/quit\n")
    assert screen.ended() == 0
    assert (shop / "acted").read_text() == "Monday\n"


@pytest.mark.e2e
def test_ctrl_c_leaves_a_conversation_that_goes_on(shop):
    screen = Screen(shop, "perform", "shop.py")
    screen.wait_for("you> ")
    screen.type("Monday, please\n")
    screen.wait_for("approve(price=90): ")
    screen.interrupt()
    assert screen.ended() == 130
    key = conversation_in(screen.text)
    ended = greenroom(shop, "perform", "shop.py", "--conversation", key, given="y\n")
    assert "See you on Monday." in ended.stdout


@pytest.mark.parametrize(
    "ends, word",
    [
        ("sys.exit(0)", "SystemExit(0)"),
        ("raise GeneratorExit", "GeneratorExit"),
        ("raise asyncio.CancelledError", "CancelledError"),
    ],
)
def test_an_agent_that_ends_the_conversation_by_force_is_an_error_in_words(shop, ends, word):
    source = f"import asyncio, sys\n\nasync def agent(message):\n    {ends}\n"
    (shop / "leaver.py").write_text(source)
    ended = greenroom(shop, "perform", "leaver.py", "-m", "Hi")
    assert ended.returncode == 2
    assert word in ended.stderr
    assert "Traceback" not in ended.stderr


def test_a_conversation_whose_agent_failed_says_how_to_continue_it(shop):
    (shop / "silent.py").write_text(
        "from greenroom import Agent, Scripted\n\nagent = Agent('desk', model=Scripted())\n"
    )
    failed = greenroom(shop, "perform", "silent.py", "-m", "Hi")
    assert failed.returncode == 2
    [conversation] = json.loads(greenroom(shop, "perform", "--list", "--json").stdout)
    assert conversation_in(failed.stderr) == conversation["id"]


def test_an_id_that_is_no_text_is_not_found(shop):
    ended = greenroom(shop, "perform", "shop.py", "-m", "Hi")
    assert ended.returncode == 0
    name = os.fsdecode(b"x\xff")
    ended = greenroom(shop, "perform", "shop.py", "-m", "Hi", "--conversation", name)
    assert ended.returncode == 3
    assert "there is no conversation" in ended.stderr
