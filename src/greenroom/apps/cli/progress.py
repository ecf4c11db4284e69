"""What a terminal shows while cases run: a bar, the counts, the cost and the time.

It leaves nothing on the screen, whatever ends the run and whatever else writes to the terminal.
"""

import os
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from time import perf_counter
from types import TracebackType
from typing import Self

from rich.console import ConsoleDimensions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from greenroom.apps.cli.streams import write_first
from greenroom.reports.terminal import Terminal
from greenroom.results import CaseResult, Report, Summary
from greenroom.results.words import counted, dollars, number_of

_ERASE = b"\r\x1b[2K"
_MOST_KEPT = 10_000
"""At most this many results are kept, to report a run that does not end; a store has them all."""


class Watching:
    """Collects results as they come and shows their counts; in a pipe it only collects."""

    def __init__(
        self, terminal: Terminal, total: int, *, trials: int = 1, shown: bool = True
    ) -> None:
        self.total = total
        self._trials = trials
        self.done = 0
        self._results: list[CaseResult] = []
        self._begun = 0.0
        self._counts: Counter[str] = Counter()
        self._cost: float | None = 0.0
        self._bar = _Bar(
            TextColumn("rehearsing", style="bold", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left", markup=False),
            screen=_RealWidth(terminal.file),
            is_shown=shown and terminal.file.isatty() and not terminal.is_dumb_terminal,
        )
        self._task = self._bar.add_task("", total=total)

    def take(self, result: CaseResult) -> None:
        """Count a finished trial."""
        self.done += 1
        if self.done <= _MOST_KEPT:
            self._results.append(result)
        self._counts[result.status] += 1
        paid = result.spent
        self._cost = None if self._cost is None or paid is None else self._cost + paid
        spent = ", cost unknown" if self._cost is None else f", {dollars(self._cost)}"
        words = f"{counted(Summary.of(self.total, self._counts))}{spent if self._cost != 0 else ''}"
        # Cases that are run again come in addition.
        total = max(self.total, self.done)
        self._bar.update(self._task, advance=1, total=total, description=words)

    @property
    def so_far(self) -> Report:
        """A report of the finished trials (of very many, the first), for a run that does not end."""
        own, again = list[CaseResult](), list[CaseResult]()
        for result in self._results:
            (own if result.trial <= self._trials else again).append(result)
        took, more = perf_counter() - self._begun, self.done - len(self._results)
        notes = [f"{number_of(more, 'more trial')} ended and are not shown"] if more else []
        return Report(own, seconds=took, notes=notes, confirmed=tuple(again))

    def __enter__(self) -> Self:
        self._begun = perf_counter()
        if not self._bar.disable:
            # Log handlers that were made before the bar do not know about it.
            write_first(_ERASE)
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Erase the bar."""
        self._bar.stop()
        write_first(b"")


class _Bar(Progress):
    """A one-line bar; if a narrower window wrapped it into several lines, all of them are erased."""

    def __init__(self, *columns: ProgressColumn, screen: "_RealWidth", is_shown: bool) -> None:
        self._screen, self._drawn = screen, 0
        super().__init__(*columns, console=screen, transient=True, disable=not is_shown)

    def get_renderables(self) -> Iterable[RenderableType]:
        """The line, after the last one is erased."""
        screen, width = self._screen, self._screen.look()
        above = max(0, -(-self._drawn // width) - 1) if _rewraps() else 0
        if above:
            screen.file.write(_ERASE.decode() + "\x1b[1A\x1b[2K" * above)
            screen.file.flush()
        line = self.make_tasks_table(self.tasks)
        self._drawn = min(width, screen.measure(line).maximum)
        yield line


class _RealWidth(Terminal):
    """A terminal at its real width, even if the environment claims more: a wider bar would wrap.

    The width is that of the last `look`, so that a line is measured and drawn at the same one.
    """

    _columns = 0

    def look(self) -> int:
        """How many columns there are now."""
        self._columns = 0
        claimed = self.width
        with suppress(OSError, ValueError):
            self._columns = min(claimed, os.get_terminal_size(self.file.fileno()).columns)
        return self._columns or claimed

    @property
    def size(self) -> ConsoleDimensions:  # pyright: ignore[reportIncompatibleMethodOverride] - only read
        """As wide as it was at the last look."""
        claimed = super().size
        return claimed._replace(width=self._columns or claimed.width)


def _rewraps() -> bool:
    """Whether the terminal rewraps its lines when its window gets narrower; others truncate them."""
    term = os.environ.get("TERM", "")
    is_screen = term.startswith("screen") and "TMUX" not in os.environ
    return not is_screen and term != "linux" and "XTERM_VERSION" not in os.environ
