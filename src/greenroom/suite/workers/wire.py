"""The lines between parent and worker. A worker's begin with a mark, its parent's are bare JSON.

R {...}          ready: what was found, to be compared
F {...}          failed: why no trial can run
B7               begun: trial 7 is being worked on
A7 {...}         an event of trial 7's run, as ledgers are written
J7 {...}         an event of its measuring
W7 {...}         waits: a real tool of trial 7 is about to act; the parent answers when the call is on disk
T {...}          turn: asks when a model may be asked next, or reports how that went
K {...}          keeps: a secret that the worker learned, for the parent to redact too
S7 {...}         stall: trial 7 blocked the event loop, for this long; S: code of no trial did
D7 {...}         done: its verdict, and what a reader should know
N [...]          notes of a worker that has no more trials to run
"""

import json
import os
from collections.abc import Callable
from contextvars import Context
from itertools import count
from threading import Lock
from typing import Final

READY: Final = "R"
FAILED: Final = "F"
BEGUN: Final = "B"
AGENT: Final = "A"
JUDGE: Final = "J"
WAITS: Final = "W"
TURN: Final = "T"
STALLED: Final = "S"
KEEPS: Final = "K"
DONE: Final = "D"
NOTES: Final = "N"
_MARKS: Final = (READY, FAILED, BEGUN, AGENT, JUDGE, WAITS, TURN, STALLED, KEEPS, DONE, NOTES)

LONGEST: Final = 64 * 1024 * 1024
"""The most bytes in one line; a worker that sends more at once is broken."""


def packed(message: object) -> bytes:
    """A message of the parent as one line."""
    return json.dumps(message).encode() + b"\n"


def unpacked(line: bytes) -> tuple[str, int, str]:
    """Mark, position and text of a worker's line; ValueError if it is not one."""
    head, space, text = line.decode().partition(" ")
    if not space or head[:1] not in _MARKS:
        raise ValueError(f"{line[:80]!r} is not a line of a worker")
    return head[:1], int(head[1:] or -1), text


class Outbox:
    """The worker's end of its pipe. Writing here waits until the parent can take it."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._writing = Lock()
        self._waiting: dict[int, Callable[[None], None]] = {}
        self._turns: dict[int, Callable[[float], None]] = {}
        self._numbers = count()

    def send(self, mark: str, position: int | None, text: bytes) -> None:
        """Send a line, whole."""
        number = "" if position is None else position
        # An empty context: the watchdog must not break into it when a case's time is up.
        Context().run(self._write, b"%s %s\n" % (f"{mark}{number}".encode(), text))

    def tell(self, mark: str, position: int | None, message: object) -> None:
        """Send a message as JSON."""
        self.send(mark, position, json.dumps(message).encode())

    def ask(self, position: int, call_id: str, tell: Callable[[None], None]) -> None:
        """Have the parent write to disk that a real tool is called; `tell` is called when it has.

        By then it has read all that was sent before. A parent that cannot write ends its workers.
        """
        number = next(self._numbers)
        self._waiting[number] = tell
        self.tell(WAITS, position, {"number": number, "call": call_id})

    def answer(self, number: int) -> None:
        """Handle the parent's message that the call with this number is on disk."""
        self._waiting.pop(number)(None)

    def ask_turn(self, model: str, left: float, tell: Callable[[float], None]) -> None:
        """Ask when the model may be asked; `tell` is called with 0 when it may, or with the wait if that is longer."""
        number = next(self._numbers)
        self._turns[number] = tell
        self.tell(TURN, None, {"ask": number, "model": model, "left": left})

    def give_turn(self, number: int, wait: float) -> None:
        """Handle the turn that the parent gives to the question with this number."""
        self._turns.pop(number)(wait)

    def _write(self, line: bytes) -> None:
        with self._writing:
            try:
                while line:
                    line = line[os.write(self._fd, line) :]
            except BrokenPipeError:
                os._exit(1)  # the parent is gone, and nothing else waits
