"""Tables as text: rows below a header with the names of the columns, and the positions of their cells."""

import csv
import re
from collections.abc import Iterator
from functools import partial
from sys import getsizeof

from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.files.json_text import MAX_WEIGHT
from greenroom.cases.problems import Branches, Found, Key, Position, Problem, at, shown
from greenroom.ledger.plain import Json

_ROW, _CELL = 200, 64
"""About how many bytes a row of a table takes, and each of its cells."""
_MOST_FLAWS = 1000


class Rows(list[Json]):
    """The rows of a table, with the names of its columns and the line on which each begins.

    The first of `lines` is that of the header.
    """

    def __init__(self) -> None:
        super().__init__()
        self.columns: list[str] = []
        self.lines: list[int] = []


def rows_with_flaws(text: str, delimiter: str) -> tuple[Rows, list[Problem]]:
    """The rows below a header, with their problems; an empty cell is missing."""
    reader = csv.reader(text_lines(text), delimiter=delimiter, strict=True)
    room = MAX_WEIGHT - getsizeof(text)
    rows, flaws = Rows(), list[Problem]()
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells:
                continue
            if not rows.lines:
                rows.columns = [cell.strip() for cell in cells]
                flaws += _wrong_names(rows.columns, line)
            elif len(cells) != len(rows.columns):
                message = f"the row has {len(cells)} cells, but the header names {len(rows.columns)} columns"
                flaws.append(Problem("", message, line=line, column=1))
                if len(flaws) >= _MOST_FLAWS:
                    break
                continue
            else:
                named = zip(rows.columns, cells, strict=True)
                rows.append({name: cell for name, cell in named if cell})
            rows.lines.append(line)
            if len(rows) * (_ROW + _CELL * len(rows.columns)) > room:
                raise Unreadable("it holds too many cells; split it")
    except csv.Error as error:
        broken = Unreadable(str(error), reader.line_num)
        broken.flaws = flaws
        raise broken from error
    if not rows.lines:
        raise Unreadable("it has no header with the names of the columns")
    return rows, flaws


def _wrong_names(names: list[str], line: int) -> Iterator[Problem]:
    for index, name in enumerate(names):
        if not name:
            yield Problem("", f"column {index + 1} has no name", line=line)
        elif name in names[:index]:
            yield Problem("", f"two columns are called {shown(name)}", line=line)


def text_lines(text: str) -> Iterator[str]:
    """The lines of a text, one by one: a list of them would take the memory of the text again."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


# Positions in the text


def cell_positions(text: str, delimiter: str, rows: Rows, branches: Branches) -> Found:
    """The positions of the rows and cells that `branches` lead to; a name alone is a column."""
    starts = [0, *(end.end() for end in re.finditer("\n", text))]
    cells_of = partial(_positions, text, delimiter, starts)
    header = dict(zip(rows.columns, cells_of(rows.lines[0]), strict=False))
    found: Found = {(name,): header[name] for name in branches if name in header}
    for row, inner in branches.items():
        if not isinstance(row, int) or row + 1 >= len(rows.lines):
            continue
        places = cells_of(rows.lines[row + 1])
        cells = dict(zip(rows.columns, places, strict=False))
        found[row,] = places[0]
        for way in _ways(inner):
            # The name of a column may be a path of several steps.
            if (name := at("", *way)) in cells or (
                len(way) == 1 and (name := str(way[0])) in cells
            ):
                found[row, *way] = cells[name]
    return found


def _ways(branches: Branches, way: tuple[Key, ...] = ()) -> Iterator[tuple[Key, ...]]:
    for key, inner in branches.items():
        yield (*way, key)
        yield from _ways(inner, (*way, key))


def _positions(text: str, delimiter: str, starts: list[int], line: int) -> list[Position]:
    """Where each cell begins, of the row that begins on this line."""
    cell = re.compile(rf'"(?:[^"]|"")*"|[^{delimiter}\n]*')
    position, found = starts[line - 1], list[Position]()
    while True:
        while line < len(starts) and starts[line] <= position:
            line += 1
        found.append((line, position - starts[line - 1] + 1))
        matched = cell.match(text, position)
        position = matched.end() if matched else len(text)
        if text[position : position + 1] != delimiter:
            return found
        position += 1
