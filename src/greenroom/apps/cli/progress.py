"""What a terminal shows while cases run: a bar, the counts, the cost and the time.

Nothing of it stays on the screen, whatever ends the run and whoever else writes to the terminal.
"""

import os
from collections import Counter
from time import perf_counter
from types import TracebackType
from typing import Self

from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from greenroom.apps.cli.exits import write_first
from greenroom.reports.terminal import Terminal
from greenroom.results import CaseResult, Report, Summary
from greenroom.results.text import counted

_ERASE = b"\r\x1b[2K"


class Watching:
    """Collects results as they come and shows their counts; in a pipe it only collects."""

    def __init__(
        self, terminal: Terminal, total: int, *, trials: int = 1, shown: bool = True
    ) -> None:
        self.total = total
        self._trials = trials
        self.done: list[CaseResult] = []
        self._begun = 0.0
        self._counts: Counter[str] = Counter()
        self._cost: float | None = 0.0
        self._bar = Progress(
            TextColumn("rehearsing", style="bold", markup=False),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.description}", markup=False),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("left", markup=False),
            console=_as_wide_as_it_is(terminal),
            transient=True,
            disable=not (shown and terminal.file.isatty() and not terminal.is_dumb_terminal),
        )
        self._task = self._bar.add_task("", total=total)

    def take(self, result: CaseResult) -> None:
        """One more case is over."""
        self.done.append(result)
        self._counts[result.status] += 1
        paid = result.spent
        self._cost = None if self._cost is None or paid is None else self._cost + paid
        spent = ", cost unknown" if self._cost is None else f", ${self._cost:.4f}"
        words = f"{counted(Summary.of(self.total, self._counts))}{spent if self._cost != 0 else ''}"
        # Cases that are run again come on top.
        total = max(self.total, len(self.done))
        self._bar.update(self._task, advance=1, total=total, description=words)

    @property
    def so_far(self) -> Report:
        """The cases that are over, for a run that will not end."""
        own, again = list[CaseResult](), list[CaseResult]()
        for result in self.done:
            (own if result.trial <= self._trials else again).append(result)
        took = perf_counter() - self._begun
        return Report(own, seconds=took, confirmed=tuple(again))

    def __enter__(self) -> Self:
        self._begun = perf_counter()
        if not self._bar.disable:
            # Handlers of logs that were made before the bar know nothing of it.
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
        """Take the bar away."""
        self._bar.stop()
        write_first(b"")


def _as_wide_as_it_is(terminal: Terminal) -> Terminal:
    """The terminal, or it at its real width: a bar that is wider breaks into lines that would stay."""
    try:
        real = os.get_terminal_size(terminal.file.fileno()).columns
    except (OSError, ValueError):
        return terminal
    return Terminal(terminal.file, width=real) if 0 < real < terminal.width else terminal
