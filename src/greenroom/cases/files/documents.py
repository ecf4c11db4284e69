"""Files parsed: what they say as JSON, and on which line, whatever they are written in."""

import csv
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from sys import getsizeof

from greenroom.cases.files.bounds import Unreadable, check_bounds
from greenroom.cases.files.json_text import MAX_WEIGHT, check_weight, json_lines, parsed_json
from greenroom.cases.files.yaml_text import parsed_yaml, yaml_lines
from greenroom.cases.problems import Branches, Found, Problem, branches_to, line_of, shown
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json
from greenroom.ledger.text_files import text_of

TABLES = (".jsonl", ".ndjson", ".csv", ".tsv")
SUFFIXES = (".json", ".yaml", ".yml", *TABLES)
_ENDINGS = (".evalset", ".test", ".scenarios")
_ROW, _CELL = 200, 64
"""About how many bytes a row of a table takes, and each of its cells."""


class Rows(list[Json]):
    """The rows of a table, with the names of its columns and the line those stand on."""

    def __init__(self, columns: list[str], line: int) -> None:
        super().__init__()
        self.columns = columns
        self.line = line


@dataclass(frozen=True, slots=True)
class Document:
    """What a file says; `find` knows the lines of the places in it."""

    source: Path
    data: Json
    find: Callable[[Branches], Found]

    @property
    def stem(self) -> str:
        """The file's name without its endings: what an eval set without an id is called."""
        stem = self.source.stem
        for ending in _ENDINGS:
            stem = stem.removesuffix(ending)
        return stem or self.source.stem

    @property
    def is_table(self) -> bool:
        """Whether each row or line of it is a case."""
        return self.source.suffix in TABLES

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems with the lines they stand on."""
        given = list(problems)
        found = self.find(branches_to(problem.where for problem in given))
        return [
            Problem(p.where, p.message, p.fix, p.line or line_of(p.where, found), p.hint)
            for p in given
        ]


def parsed(source: Path) -> Document:
    """The document in a file; BadFile says why there is none."""
    if source.suffix not in SUFFIXES:
        raise BadFile(f"{source} is none of {', '.join(SUFFIXES)}; eval sets are kept in these.")
    return parsed_text(source, text_of(source))


def parsed_text(source: Path, text: str) -> Document:
    """The document that a file with this text would hold."""
    kind = source.suffix
    try:
        return _READERS[kind](source, text)
    except Unreadable as error:
        line = f", line {error.line}" if error.line else ""
        raise BadFile(f"Invalid {_NAMES[kind]} in {source}{line}: {error}.") from error
    except BadFile as error:
        raise BadFile(f"{source}: {error}", error.problems) from error


def _json(source: Path, text: str) -> Document:
    data = parsed_json(text)
    check_bounds(data, text)
    return Document(source, data, lambda branches: json_lines(text, branches))


def _yaml(source: Path, text: str) -> Document:
    return Document(source, parsed_yaml(text), lambda branches: yaml_lines(text, branches))


def _json_lines(source: Path, text: str) -> Document:
    """One JSON value a line; blank lines are nothing."""
    check_weight(text)
    rows: list[Json] = []
    lines: list[int] = []
    for number, line in enumerate(_lines(text), start=1):
        if not line.strip():
            continue
        try:
            row = parsed_json(line)
        except Unreadable as error:
            raise Unreadable(str(error), number) from error
        check_bounds(row, line, f"[{len(rows)}]")
        rows.append(row)
        lines.append(number)
    return Document(source, rows, lambda branches: _row_lines(branches, lines))


def _csv(source: Path, text: str) -> Document:
    """One row a line below a header with the names of the columns; an empty cell says nothing."""
    delimiter = "\t" if source.suffix == ".tsv" else ","
    reader = csv.reader(_lines(text), delimiter=delimiter, strict=True)
    room = MAX_WEIGHT - getsizeof(text)
    rows = Rows([], 0)
    lines: list[int] = []
    names: list[str] | None = None
    before = 0
    try:
        for cells in reader:
            line, before = before + 1, reader.line_num
            if not cells:
                continue
            if names is None:
                rows.columns, rows.line = names, _ = _header(cells, line), line
                continue
            if len(cells) != len(names):
                message = (
                    f"the row has {len(cells)} cells, but the header names {len(names)} columns"
                )
                raise Unreadable(message, line)
            rows.append({n: cell for n, cell in zip(names, cells, strict=True) if cell})
            lines.append(line)
            if len(rows) * (_ROW + _CELL * len(names)) > room:
                raise Unreadable("it holds more cells than are read at once; split it")
    except csv.Error as error:
        raise Unreadable(str(error), reader.line_num) from error
    if names is None:
        raise Unreadable("it has no header with the names of the columns")
    return Document(source, rows, lambda branches: _row_lines(branches, lines))


def _lines(text: str) -> Iterator[str]:
    """The lines of a text, one after the other; a list of them would be the text once more."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def _header(cells: list[str], line: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    for index, name in enumerate(names):
        if not name:
            raise Unreadable(f"column {index + 1} has no name", line)
        if name in names[:index]:
            raise Unreadable(f"two columns are called {shown(name)}", line)
    return names


def _row_lines(branches: Branches, lines: list[int]) -> Found:
    return {(row,): lines[row] for row in branches if isinstance(row, int) and row < len(lines)}


_READERS: dict[str, Callable[[Path, str], Document]] = {
    ".json": _json,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _csv,
    ".tsv": _csv,
}
_NAMES = {suffix: suffix.strip(".").upper() for suffix in SUFFIXES} | {".yml": "YAML"}
