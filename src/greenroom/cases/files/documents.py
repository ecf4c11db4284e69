"""Parsed files of any language: their content as JSON, and the position of each part."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from msgspec import Struct

from greenroom.cases.files.bounds import Unreadable, check_bounds, has_halves
from greenroom.cases.files.csv_text import cell_positions, rows_with_flaws, text_lines
from greenroom.cases.files.json_text import check_weight, json_positions, json_with_flaws
from greenroom.cases.files.yaml_text import without_item, yaml_positions, yaml_with_flaws
from greenroom.cases.problems import (
    Branches,
    Found,
    Problem,
    as_json,
    as_yaml_line,
    at,
    branches_to,
    invalid,
    keys_of,
    position_of,
)
from greenroom.cases.suffixes import SUFFIXES, TABLES, YAML
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json
from greenroom.ledger.text_files import text_of

_MOST_BROKEN = 20
_ENDINGS = (".evalset", ".test", ".scenarios")


class Document(Struct, frozen=True):
    """The content of a file; `find` gives the position of a place in it.

    `flaws` are problems that still keep it from being read, such as a key that is given twice.
    """

    source: Path
    data: Json
    find: Callable[[Branches], Found]
    flaws: Sequence[Problem] = ()

    @property
    def stem(self) -> str:
        """The file's name without its endings: the id of an eval set that has none."""
        return stem_of(self.source)

    @property
    def is_table(self) -> bool:
        """Whether each row or line is a case."""
        return self.source.suffix in TABLES

    def located(self, problems: Iterable[Problem]) -> list[Problem]:
        """The problems with their positions, in that order, and with examples in the language of the file."""
        given = list(problems)
        found = self.find(branches_to(problem.where for problem in given))
        placed = [self._placed(problem, found) for problem in given]
        return sorted(placed, key=lambda problem: (problem.line or 0, problem.column or 0))

    def _placed(self, problem: Problem, found: Found) -> Problem:
        line, column = problem.line, problem.column
        if line is None:
            line, column = position_of(problem.where, found)
        fix = problem.fix
        if problem.example is not None:
            written = as_yaml_line if self.source.suffix in YAML else as_json
            fix = f"{fix} {written(problem.example)}"
        return replace(problem, line=line, column=column, fix=fix, example=None)


def stem_of(source: Path) -> str:
    """A file's name without its endings."""
    stem = source.stem
    for ending in _ENDINGS:
        stem = stem.removesuffix(ending)
    return stem or source.stem


def parsed(source: Path) -> Document:
    """The document in a file; BadFile says why it cannot be parsed."""
    return sound(opened(source))


def parsed_text(source: Path, text: str) -> Document:
    """The document that a file with this text would hold."""
    return sound(opened_text(source, text))


def opened(source: Path) -> Document:
    """The document in a file as far as it can be parsed, with its flaws."""
    text = text_of(source)  # a folder, or no file at all, is named as such
    if source.suffix not in SUFFIXES:
        raise BadFile(f"{source} is not one of {', '.join(SUFFIXES)}; eval sets are kept in these.")
    return opened_text(source, text)


def sound(document: Document) -> Document:
    """The document, if it has no flaws."""
    if document.flaws:
        name = _NAMES[document.source.suffix]
        raise BadFile(invalid(document.source, document.flaws, name), document.flaws)
    return document


def opened_text(source: Path, text: str) -> Document:
    """The document in a text, as far as it can be parsed, as if it were in this file."""
    kind = source.suffix
    try:
        document = _READERS[kind](source, text) if text.strip() else None
    except Unreadable as error:
        why = f"Invalid {_NAMES[kind]}: {error}"
        rest = "The rest was not read" if error.line else ""
        last = Problem("", why, rest, line=error.line, column=error.column)
        line = f", line {error.line}" if error.line else ""
        column = f", column {error.column}" if error.column else ""
        message = f"Invalid {_NAMES[kind]} in {source}{line}{column}: {error}."
        raise BadFile(message, [*error.flaws, last]) from error
    except BadFile as error:
        raise BadFile(f"{source}: {error}", error.problems) from error
    if document is None or (document.data is None and kind in YAML and not document.flaws):
        problem = Problem("", "the file is empty", f"Write a case into it{_EXAMPLES.get(kind, '')}")
        raise BadFile(f"{source} is empty. {problem.fix}.", [problem])
    return document


def _json(source: Path, text: str) -> Document:
    data, flaws = json_with_flaws(text)
    check_bounds(data, halves=has_halves(text))
    return Document(source, data, lambda branches: json_positions(text, branches), flaws)


def _yaml(source: Path, text: str) -> Document:
    """A case that cannot be parsed is a flaw and left out, so that the others are checked."""
    broken: list[Problem] = []
    while True:
        try:
            data, flaws = yaml_with_flaws(text)
        except Unreadable as error:
            rest = without_item(text, error.line) if len(broken) < _MOST_BROKEN else None
            if rest is None:
                error.flaws = [*broken, *error.flaws]
                raise
            why = f"Invalid YAML: {error}"
            broken.append(Problem("", why, line=error.line, column=error.column))
            text = rest
        else:
            find = partial(yaml_positions, text)
            return Document(source, data, find, [*broken, *flaws])


def _json_lines(source: Path, text: str) -> Document:
    """One JSON value per line; blank lines are skipped."""
    check_weight(text)
    rows: list[Json] = []
    flaws: list[Problem] = []
    begun: list[tuple[int, int]] = []
    start = 0
    for number, line in enumerate(text_lines(text), start=1):
        begin, start = start, start + len(line)
        if not line.strip():
            continue
        place = f"[{len(rows)}]"
        try:
            row, wrong = json_with_flaws(line.rstrip("\r\n"))
        except Unreadable as error:
            why = f"Invalid JSON: {error}"
            flaws.append(Problem("", why, line=number, column=error.column))
            continue
        check_bounds(row, place, halves=has_halves(line))
        flaws += [replace(f, where=at(place, *keys_of(f.where)), line=number) for f in wrong]
        rows.append(row)
        begun.append((number, begin))
    return Document(source, rows, lambda branches: _row_positions(text, begun, branches), flaws)


def _row_positions(text: str, begun: list[tuple[int, int]], branches: Branches) -> Found:
    found: Found = {}
    for row, inner in branches.items():
        if isinstance(row, int) and row < len(begun):
            number, begin = begun[row]
            line = text[begin : text.find("\n", begin) + 1 or len(text)]
            for way, (_, column) in json_positions(line, inner).items():
                found[row, *way] = number, column
    return found


def _csv(source: Path, text: str) -> Document:
    delimiter = "\t" if source.suffix == ".tsv" else ","
    rows, flaws = rows_with_flaws(text, delimiter)
    return Document(source, rows, partial(cell_positions, text, delimiter, rows), flaws)


_READERS: dict[str, Callable[[Path, str], Document]] = {
    ".json": _json,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".csv": _csv,
    ".tsv": _csv,
}
_ROWS = "; the first line names the columns, such as `id` and `says`"
_LINE = """, a line for each: {"id": "first", "says": "..."}"""
_EXAMPLES = {".csv": _ROWS, ".tsv": _ROWS, ".jsonl": _LINE, ".ndjson": _LINE}
_NAMES = {suffix: suffix.strip(".").upper() for suffix in SUFFIXES} | {".yml": "YAML"}
