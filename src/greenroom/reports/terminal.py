"""The terminal or pipe to which reports are printed."""

import os
import sys
from collections.abc import Iterable
from functools import cached_property
from typing import IO

from rich.console import Console
from rich.segment import Segment, Segments
from rich.table import Table
from rich.text import Text

from greenroom.ledger.safe_text import harmless

# Lines in a file are not wrapped, so that grep and diff find them whole.
_UNWRAPPED = 10_000
_HEIGHT = 25


class Terminal(Console):
    """Prints text as it is: no markup, no emoji codes, no automatic colours."""

    def __init__(self, file: IO[str] | None = None, *, width: int | None = None) -> None:
        stream = file or sys.stdout
        variables = dict(os.environ)
        if not variables.get("COLUMNS", "").strip("0"):  # of no width: it is not known
            variables.pop("COLUMNS", None)
        piped = not stream.isatty() and "COLUMNS" not in variables
        fixed = width or (_UNWRAPPED if piped else None)
        super().__init__(
            file=file,
            width=fixed,
            # A height is given too, or the terminal would be measured again for every line.
            height=_HEIGHT if fixed else None,
            markup=False,
            emoji=False,
            highlight=False,
            _environ=variables,
        )

    @cached_property
    def is_ascii(self) -> bool:
        """Whether the terminal can print only ASCII."""
        return self.options.ascii_only

    def on_broken_pipe(self) -> None:
        """Stop printing when the pipe is closed, without changing the exit code."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    def needed(self, table: Table) -> int:
        """How wide a table would be if there were room."""
        return self.measure(table, options=self.options.update(width=_UNWRAPPED)).maximum

    def say(self, *parts: str | Text, indent: int = 0) -> None:
        """Print a line without control characters; it wraps with the same indent."""
        self.hang(Text(), plain(*parts), indent)

    def say_lines(self, text: str) -> None:
        """Print lines that may be indented; each wraps with its own indent."""
        for line in text.splitlines():
            words = line.lstrip(" ")
            self.say(words, indent=len(line) - len(words))

    def hang(self, label: Text, body: Text, indent: int = 0, width: int = 0) -> None:
        """Print `body` next to `label`, in its own column."""
        column = indent + width
        room = max(self.width - column, 20)
        # Most lines fit, and wrapping takes longer than everything else here.
        fits = "\n" not in body.plain and body.cell_len <= room
        for number, line in enumerate([body] if fits else body.wrap(self, room) or [Text()]):
            left = label if number == 0 else Text()
            line.rstrip()
            whole = Text(" " * indent).append_text(left)
            whole.append(" " * (width - left.cell_len)).append_text(line)
            self.print(whole, soft_wrap=True)

    def put(self, lines: Iterable[str]) -> None:
        """Print lines that are laid out and coloured already, as they are."""
        self.print(Segments([Segment(f"{line}\n") for line in lines]), soft_wrap=True, end="")

    def brush(self, style: str) -> tuple[str, str]:
        """The codes before and after text that give it a style on this terminal."""
        with self.capture() as painted:
            self.print(Text("|", style), end="")
        before, _, behind = painted.get().partition("|")
        return before, behind


def plain(*parts: str | Text) -> Text:
    """One text made of several, with control characters escaped and markup ignored."""
    whole = Text()
    for part in parts:
        whole.append(part if isinstance(part, Text) else harmless(part))
    return whole


def styled(text: str, style: str) -> Text:
    """Text in a style, with control characters escaped."""
    return Text(harmless(text), style)
