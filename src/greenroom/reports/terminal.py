"""The terminal, or the pipe in its place, as renderers write to it."""

import os
import sys
from typing import IO

from rich.console import Console
from rich.table import Table
from rich.text import Text

from greenroom.ledger.shown import harmless

# Nobody wraps lines in a file: whoever greps or diffs it wants them whole.
_UNWRAPPED = 10_000


class Terminal(Console):
    """Prints only what it is told: no markup, no emoji codes, no colours of its own invention."""

    def __init__(self, file: IO[str] | None = None, *, width: int | None = None) -> None:
        stream = file or sys.stdout
        piped = not stream.isatty() and "COLUMNS" not in os.environ
        super().__init__(
            file=file,
            width=width or (_UNWRAPPED if piped else None),
            markup=False,
            emoji=False,
            highlight=False,
        )

    def on_broken_pipe(self) -> None:
        """A reader that went away ends the printing, not the verdict."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())

    def needed(self, table: Table) -> int:
        """How wide a table would be if there were room."""
        return self.measure(table, options=self.options.update(width=_UNWRAPPED)).maximum

    def say(self, *parts: str | Text, indent: int = 0) -> None:
        """Print a line made harmless; what does not fit goes on below, indented alike."""
        self.hang(Text(), plain(*parts), indent)

    def hang(self, label: Text, body: Text, indent: int = 0, width: int = 0) -> None:
        """Print `body` beside `label`, in a column of its own."""
        column = indent + width
        room = max(self.width - column, 20)
        for number, line in enumerate(body.wrap(self, room) or [Text()]):
            left = label if number == 0 else Text()
            padding = " " * (width - left.cell_len)
            line.rstrip()
            self.print(Text(" " * indent) + left + padding + line, soft_wrap=True)


def plain(*parts: str | Text) -> Text:
    """One text of several, each word of a stranger made harmless and none read as markup."""
    whole = Text()
    for part in parts:
        whole.append(part if isinstance(part, Text) else harmless(part))
    return whole


def styled(text: str, style: str) -> Text:
    """A stranger's word in a style of ours."""
    return Text(harmless(text), style)
