"""Tables: a case in each row of a CSV file or each line of a JSONL file.

A column is a path into our own shape: `says`, `expect.reference`, `state.user.name`. The usual names
of such columns are known; others are mapped by `columns`, or refused.
"""

import csv
import io
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from typing import cast

from greenroom.cases.case import Case
from greenroom.cases.data import written_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import ProblemList
from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.files.csv_text import Rows
from greenroom.cases.files.json_text import parsed_json
from greenroom.cases.files.own import read_case
from greenroom.cases.files.shapes import TABLE, Shape
from greenroom.cases.names import near_name
from greenroom.cases.problems import at, keys_of, mapping_at, put, shown, wrong
from greenroom.cases.reader import CASE_FIELDS, EXPECT_FIELDS
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json, as_array, as_object, is_array, is_object

Columns = Mapping[str, str]
"""The names of columns by the path they fill."""

USUAL: dict[str, tuple[str, ...]] = {
    "id": ("id", "case_id", "eval_id"),
    "says": ("says", "question", "query", "input", "prompt"),
    "expect.reference": ("reference", "answer", "reference_answer", "expected", "expected_output"),
    "expect.contains": ("contains", "expected_response_contains"),
    "expect.tools": ("tools", "expected_tools", "expected_tool_calls", "expected_trajectory"),
    "tags": ("tags",),
}
"""The column names that are known without a mapping; in each line, the first match counts."""

_TEXTS = frozenset(
    ("id", "says", "name", "description", "target", "expect.response", "expect.reference")
)
_LISTS = frozenset(("tags", "allow_tools", "expect.tools", "expect.intermediate"))


def table_shape(columns: Columns | None = None) -> Shape:
    """The shape of tables with these columns."""
    given = dict(columns or {})
    for path in given:
        if not _is_path(path):
            raise BadFile(f"columns={{{path!r}: ...}}: {path!r} is not a place in a case.")
    known: dict[str, str] = {}
    return Shape(
        TABLE,
        "rows with a column for what the user says",
        # Nothing in a list of mappings shows that it is a table; the file's ending does.
        lambda _: None,
        lambda data, stem: _read(data, stem, given, known),
        lambda evalset: [written_data(case) for case in evalset.cases],
        lists=("", "turns"),
        inside=lambda where: _in_column(where, known),
        called_by_file="set",
    )


def _in_column(where: str, paths: Mapping[str, str]) -> str:
    """The place in a row, by the name of its column."""
    row, *keys = keys_of(where) or [0]
    for name, path in paths.items():
        steps = keys_of(path)
        if name != path and keys[: len(steps)] == steps:
            return at("", row, name, *keys[len(steps) :])
    return where


def _is_path(path: str) -> bool:
    match keys_of(path):
        case ["expect", str(field)]:
            return field in EXPECT_FIELDS
        case [str(field), *_]:
            return field in CASE_FIELDS
        case _:
            return False


def _read(data: Json, stem: str, columns: Columns, known: dict[str, str]) -> EvalSet:
    if not is_array(data):
        raise wrong("", f"{shown(data)} should be a list of rows")
    problems = ProblemList()
    header = data.columns if isinstance(data, Rows) else []
    names = list(
        dict.fromkeys([*header, *(name for row in data if is_object(row) for name in row)])
    )
    paths = _paths(names, columns)
    unknown = [name for name in names if name not in paths]
    for name in header:
        if name in unknown:
            problems.add(_unknown(name, paths, ""), "")
    # A misspelt column is read as the one it means: it may hold more problems.
    meant = {name: path for name in unknown if (path := _meant(name, paths))}
    paths |= {name: path for name, path in meant.items() if [*meant.values()].count(path) == 1}
    if names and not any(keys_of(path)[0] in ("says", "turns", "user") for path in paths.values()):
        fix = "Call it `says`; in Python, map it with columns={'says': ...}"
        raise wrong("", f"none of the columns {names[:20]} is what the user says", fix)
    known.update(paths)
    refused = set(unknown).difference(header)
    cases = problems.cases(data, "", lambda row, at: _case(row, at, paths, refused), "id")
    problems.settle()
    return EvalSet(stem, cases)


def _paths(names: list[str], columns: Columns) -> dict[str, str]:
    """The path that each column fills; columns that fill none are left out."""
    for path, name in columns.items():
        if names and name not in names:
            raise wrong("", f"there is no column {name!r} for `{path}`", f"There are {names[:20]}")
    paths = {name: path for path, name in columns.items()}
    filled = {*paths.values(), *(name for name in names if _is_path(name) and name not in paths)}
    for path, usual in USUAL.items():
        known = [name for name in usual if name in names and name not in paths]
        if path not in filled and known:
            paths[known[0]] = path
    return paths | {name: name for name in names if name not in paths and _is_path(name)}


def _near(name: str) -> str:
    """The known column name that this one misspells, if any."""
    places = (*CASE_FIELDS, *(f"expect.{field}" for field in EXPECT_FIELDS))
    return near_name(name, [*places, *chain(*USUAL.values())])


def _meant(name: str, paths: Mapping[str, str]) -> str:
    """The path that a misspelt column is meant to fill, if no other column fills it."""
    near = _near(name)
    path = next((path for path, usual in USUAL.items() if near in usual), near)
    is_usual = any(name in usual for usual in USUAL.values())
    return "" if is_usual or path in paths.values() else path


def _unknown(name: str, paths: Mapping[str, str], place: str) -> BadFile:
    """The error for a column that fills no place of a case."""
    message = f"the column {shown(name)} is unknown"
    same = next((path for path, usual in USUAL.items() if name in usual), "")
    if same:
        other = next((column for column, path in paths.items() if path == same), same)
        fix = f"{shown(other)} fills `{same}` already: keep one of them"
    else:
        near = _near(name)
        meant = f"Did you mean {near!r}? " if near else ""
        fix = f"{meant}Name your own column {f'metadata.{name}'!r}; in Python, columns= maps it to the place that it fills"
    return wrong(at(place, name), message, fix)


def _case(row: Json, place: str, paths: Mapping[str, str], refused: Collection[str]) -> Case:
    data: dict[str, Json] = {}
    problems = ProblemList()
    given = mapping_at(place, row)
    own = {name: path for name, path in paths.items() if name in given}
    for name, value in given.items():
        path = paths.get(name)
        if name in refused:  # an unknown column is one problem, not one per row
            problems.add(_unknown(name, paths, place), place)
            # In a row that lacks it, a misspelt column is read as the one it means.
            path = path or _meant(name, own)
        if not path:
            continue
        cell = problems.part(
            at(place, name), lambda p=path, v=value, n=name: _value(p, v, at(place, n)), None
        )
        if not put(data, path, cell):
            message = f"`{path}` is filled twice, or conflicts with another column"
            problems.add(wrong(at(place, name), message), place)
    number = int(place.strip("[]")) + 1
    data.setdefault("id", f"case_{number}")
    try:
        case = read_case(data, place)
    except BadFile as error:
        found = [replace(p, where=_in_column(p.where, paths)) for p in error.problems]
        taken = {problem.where for problem in problems.found}
        problems.found += [problem for problem in found if problem.where not in taken]
        case = None
    problems.settle()
    assert case is not None  # otherwise a problem would have been raised
    return case


def _value(path: str, value: Json, place: str) -> Json:
    """A cell as the type that its path needs; anything but a string is written as JSON."""
    if not isinstance(value, str) or path in _TEXTS:
        return value
    if path in _LISTS:
        return _list(value, place)
    if path == "expect.contains":
        return _json(value) if value.startswith("[") else value
    return _whole(value, place) if path in CASE_FIELDS else _json(value)


def _list(cell: str, place: str) -> list[Json]:
    if not cell.lstrip().startswith("["):
        return [word.strip() for word in cell.split(",") if word.strip()]
    try:
        return cast("list[Json]", parsed_json(cell))
    except Unreadable as error:
        raise wrong(place, f"{shown(cell)} is not a list in JSON ({error})") from error


def _whole(cell: str, place: str) -> Json:
    """A cell that is a whole part of a case: what begins as JSON has to be JSON."""
    try:
        return parsed_json(cell)
    except Unreadable as error:
        if cell.lstrip()[:1] in ("{", "["):
            raise wrong(place, f"{shown(cell)} is not valid JSON: {error}") from error
        return cell


def _json(cell: str) -> Json:
    try:
        return parsed_json(cell)
    except Unreadable:
        return cell


def csv_text(cases: Json, delimiter: str) -> str:
    """Cases as a CSV file: a row for each, a column for each place, what is not text in JSON."""
    rows = [dict(_cells(as_object(case))) for case in as_array(cases)]
    names = list(dict.fromkeys(name for row in rows for name in row)) or ["id"]
    written = io.StringIO()
    writer = csv.writer(written, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([row.get(name, "") for name in names] for row in rows)
    return written.getvalue()


def _cells(case: dict[str, Json]) -> Iterator[tuple[str, str]]:
    for name, value in case.items():
        if name == "expect" and is_object(value):
            for field, inner in value.items():
                yield f"expect.{field}", _cell(f"expect.{field}", inner)
        else:
            yield name, _cell(name, value)


def _cell(path: str, value: Json) -> str:
    if isinstance(value, str) and (path in _TEXTS or path == "expect.contains"):
        return value
    return json.dumps(value, ensure_ascii=False)


SHAPE = table_shape()
