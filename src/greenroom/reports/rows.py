"""Rows of a long table, laid out at once: each cell is measured once and no line is wrapped twice."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache

from rich.cells import cell_len, chop_cells

from greenroom.reports.terminal import Terminal

Cell = tuple[str, str]
"""A text and its style."""
Brush = Callable[[str], tuple[str, str]]

_BETWEEN = "  "
_NARROWEST = 8
_RULE = "─-"


class Rows:
    """Rows below their titles, which may have several lines; the last `right` columns are flush right."""

    def __init__(self, titles: Sequence[Sequence[str]], right: int = 0) -> None:
        self._titles = titles
        self._rows: list[Sequence[Cell]] = []
        self._widths = [max(map(cell_len, lines)) for lines in titles]
        self._right = len(titles) - right

    def add(self, row: Sequence[Cell]) -> None:
        """One row more."""
        self._rows.append(row)
        for place, (text, _) in enumerate(row):
            if (width := _length(text)) > self._widths[place]:
                self._widths[place] = width

    @property
    def width(self) -> int:
        """How wide the table is if there is room."""
        return sum(self._widths) + len(_BETWEEN) * (len(self._widths) - 1)

    def lines(self, terminal: Terminal) -> Iterator[str]:
        """The table, painted for a terminal; what its first column has no room for goes on below."""
        widths, brush = list(self._widths), lru_cache(terminal.brush)
        if (over := self.width - terminal.width) > 0:
            widths[0] = min(widths[0], max(widths[0] - over, _NARROWEST))
        height = max(map(len, self._titles))
        for number in range(height):
            texts = [(["" for _ in range(height - len(t))] + [*t])[number] for t in self._titles]
            yield self._line([(text, "bold") for text in texts], widths, brush)
        yield _RULE[terminal.is_ascii] * (sum(widths) + len(_BETWEEN) * (len(widths) - 1))
        for (text, style), *rest in self._rows:
            *above, last = self._folded(text, widths[0])
            yield from above
            yield self._line([(last, style), *rest], widths, brush)

    def _folded(self, text: str, width: int) -> list[str]:
        if _length(text) <= width:
            return [text]
        return [piece for line in text.split("\n") for piece in chop_cells(line, width) or [""]]

    def _line(self, cells: Sequence[Cell], widths: Sequence[int], brush: Brush) -> str:
        shown: list[str] = []
        for place, (text, style) in enumerate(cells):
            padding = " " * (widths[place] - _length(text))
            before, behind = brush(style) if style and text else ("", "")
            painted = f"{before}{text}{behind}"
            shown.append(f"{padding}{painted}" if place >= self._right else f"{painted}{padding}")
        return _BETWEEN.join(shown).rstrip(" ")


def _length(text: str) -> int:
    """How many cells the longest line takes."""
    if text.isascii() and "\n" not in text:
        return len(text)
    return max(map(cell_len, text.split("\n")))
