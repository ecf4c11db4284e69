"""Reads eval sets from files of any known shape; they are checked here and trusted inside."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from greenroom.cases.attachments import attachments_near
from greenroom.cases.case import Case, CaseOrigin
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.adk_expect import says_more
from greenroom.cases.files.documents import Document, opened, sound
from greenroom.cases.files.shapes import (
    CASE_LISTS,
    Shape,
    Unrecognised,
    likeliest,
    recognised,
    shape_named,
)
from greenroom.cases.files.tables import Columns, table_shape
from greenroom.cases.parts import metric_name
from greenroom.cases.problems import Problem, at, invalid, problems_of
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import is_array, is_object


def read_evalset(
    path: str | Path, *, shape: str | None = None, columns: Columns | None = None
) -> EvalSet:
    """The eval set in a file of any known shape.

    The shape is recognised by what the file holds unless `shape` names it. `columns` maps places in
    a case to the columns of a table. BadFile lists everything that is wrong.
    """
    document = opened(Path(path))
    taken, why = chosen_shape(document, shape, columns)
    found = read_as(document, taken)
    if not isinstance(found, EvalSet):
        message = invalid(document.source, found, f"format: {taken.name}, since {why}")
        raise BadFile(message, found)
    judged = judged_as(found, taken)
    cases = [
        replace(case, origin=CaseOrigin(str(path), index, taken.name))
        for index, case in enumerate(judged)
    ]
    return replace(judged, shape=taken.name, cases=cases)


def read_as(document: Document, shape: Shape) -> EvalSet | list[Problem]:
    """The eval set in a document of this shape, or everything that is wrong with it."""
    flaws = list(document.flaws)
    try:
        with attachments_near(document.source):
            found = shape.read(document.data, document.stem)
    except BadInput as error:
        # A problem caused by a flaw need not be reported twice.
        known = {flaw.where for flaw in flaws}
        flaws += [found for found in problems_of(error, "") if found.where not in known]
    else:
        if not flaws:
            return found
    return document.located(flaws)


def judged_as(found: EvalSet, shape: Shape) -> EvalSet:
    """The set, with the criteria of the tool behind such files."""
    if shape.usual is None:
        return found
    named = {metric_name(metric) for metric in found.metrics}
    usual = [criterion for criterion in shape.usual if criterion.name not in named]
    cases = [replace(case, implied=says_more(case)) for case in found]
    return replace(found, cases=cases, usual=tuple(usual))


def lines_of_cases(path: Path, count: int) -> list[int]:
    """The line on which each case begins in its file; 1 if it is unknown."""
    document = opened(path)
    data = document.data
    name = next((name for name in CASE_LISTS if is_object(data) and name in data), "")
    listed = data.get(name) if name and is_object(data) else data
    if not is_array(listed) or len(listed) != count:
        return [1] * count
    places = document.located(Problem(at(name, index), "") for index in range(count))
    return [place.line or 1 for place in places]


def problems(
    path: str | Path, *, shape: str | None = None, columns: Columns | None = None
) -> list[Problem]:
    """Everything that keeps a file from being read, with lines; empty if it can be read."""
    try:
        read_evalset(path, shape=shape, columns=columns)
    except BadFile as error:
        return list(error.problems) or [Problem("", str(error))]
    return []


def chosen_shape(
    document: Document, shape: str | None = None, columns: Columns | None = None
) -> tuple[Shape, str]:
    """The shape of a document, and why; a file with misspelt fields has the shape that it resembles most."""
    if columns is not None or (shape is None and document.is_table):
        return table_shape(columns), "each row is a case"
    if shape is not None:
        return shape_named(shape), "it was asked for"
    try:
        return recognised(document.data, document.source)
    except Unrecognised:
        sound(document)  # a flaw may have kept it from being recognised
        likely = likeliest(document.data)
        if likely is None or isinstance(read_as(document, likely), EvalSet):
            raise
        return likely, "most of its fields are of that"


def in_files(found: Iterable[tuple[Case, Problem]]) -> list[tuple[str, Problem]]:
    """The file of each problem, and the problem with its place there; "" for cases from no file.

    The problems passed in have places relative to their cases.
    """
    by_file: dict[tuple[str, str], list[tuple[CaseOrigin | None, Problem]]] = {}
    for case, problem in found:
        origin = case.origin
        key = ("", "") if origin is None else (origin.file, origin.shape)
        by_file.setdefault(key, []).append((origin, problem))
    return [
        (file, problem)
        for (file, shape), theirs in by_file.items()
        for problem in _located(file, shape, theirs)
    ]


def _located(
    file: str, shape_name: str, theirs: list[tuple[CaseOrigin | None, Problem]]
) -> list[Problem]:
    with suppress(BadInput):  # in a file that was changed since, places are unknown
        if file:
            document = opened(Path(file))
            shape, _ = chosen_shape(document, None if document.is_table else shape_name)
            read_as(document, shape)  # a table knows its columns only after it was read
            return document.located(
                replace(problem, where=shape.place(f"cases[{origin.index}].{problem.where}"))
                for origin, problem in theirs
                if origin is not None
            )
    return [problem for _, problem in theirs]
