"""A progress bar in a notebook: drawn again as trials are done, and gone when the run is over, however it ends."""

import sys
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import copy_context
from time import monotonic
from typing import Any

from greenroom.results.result import CaseResult
from greenroom.results.summary import Summary
from greenroom.results.words import counted
from greenroom.store.runs import Plan
from greenroom.suite.options import Options

_PAUSE = 0.1
"""The least number of seconds between two drawings, since each one is sent to the notebook."""


@contextmanager
def with_progress(options: Options) -> Generator[Options]:
    """The options of a run, with a plug-in that shows in a notebook how far it is."""
    if options.get("progress", True) is not True or not in_notebook():
        yield options
        return
    bar = NotebookProgress()
    try:
        yield {**options, "plugins": [*options.get("plugins", ()), bar]}
    finally:
        bar.close()


def in_notebook() -> bool:
    """Whether this code was started from a cell that can show more than text."""
    # A module that was never loaded runs no notebook.
    ipython: object = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookProgress:
    """A plug-in that draws how many trials are done, and how they ended."""

    def __init__(self) -> None:
        from IPython.display import DisplayHandle  # loaded in notebooks only

        self._total, self._drawn_at = 0, 0.0
        self._counts: Counter[str] = Counter()
        self._is_open = False
        # Hooks may be called on other threads, where a notebook does not know whose cell it is.
        self._cell = copy_context()
        self._handle: Any = DisplayHandle()

    def on_run_start(self, plan: Plan) -> None:
        """Draw the bar as the run begins."""
        self._total = 0 if plan.adaptive else plan.cases * plan.trials
        self._draw()

    def on_case_complete(self, result: CaseResult) -> None:
        """Count a finished trial."""
        self._counts[result.status] += 1
        if monotonic() - self._drawn_at >= _PAUSE:
            self._draw()

    def close(self) -> None:
        """Take the bar away."""
        if self._is_open:
            self._show("")

    def _draw(self) -> None:
        from html import escape

        done = self._counts.total()
        total = max(self._total, done)
        words = escape(counted(Summary.of(total, self._counts)))
        share = f' max="{total}" value="{done}"' if self._total else ""
        of = f"{done} of {total}" if self._total else f"{done}"
        self._show(f"<progress{share}></progress> {of} trials: {words}")
        self._drawn_at = monotonic()

    def _show(self, html: str) -> None:
        data = {"text/html": html, "text/plain": ""}
        send = self._handle.update if self._is_open else self._handle.display
        self._is_open = True
        self._cell.copy().run(send, data, raw=True)
