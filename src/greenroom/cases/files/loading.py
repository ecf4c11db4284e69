"""Eval sets read from files of any known shape, doubted here and trusted inside."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.documents import Document, parsed
from greenroom.cases.files.shapes import Shape, recognised, shape_named
from greenroom.cases.files.tables import Columns, table_shape
from greenroom.cases.parts import metric_name
from greenroom.cases.places import problems_of
from greenroom.cases.problems import Problem, listed
from greenroom.errors import BadFile, BadInput

_SHOWN = 10


def read_evalset(
    path: str | Path, *, shape: str | None = None, columns: Columns | None = None
) -> EvalSet:
    """The eval set in a file of any known shape.

    The shape is recognised by what the file holds unless `shape` names it. `columns` maps places in
    a case to the columns of a table. BadFile lists everything that is wrong.
    """
    document = parsed(Path(path))
    taken, why = _chosen(document, shape, columns)
    try:
        found = taken.read(document.data, document.stem)
    except BadInput as error:
        problems = document.located(problems_of(error, ""))
        raise BadFile(_told(document, taken, why, problems), problems) from error
    return replace(_judged(found, taken), shape=taken.name)


def _judged(found: EvalSet, shape: Shape) -> EvalSet:
    """The set, judged as the tool behind such files judges them."""
    if shape.usual is None:
        return found
    named = {metric_name(metric) for metric in found.metrics}
    usual = [criterion for criterion in shape.usual if criterion.name not in named]
    return replace(
        found, cases=[replace(case, implied=False) for case in found], usual=tuple(usual)
    )


def problems(
    path: str | Path, *, shape: str | None = None, columns: Columns | None = None
) -> list[Problem]:
    """Everything that keeps a file from being read, with lines; empty if it can be read."""
    try:
        read_evalset(path, shape=shape, columns=columns)
    except BadFile as error:
        return list(error.problems) or [Problem("", str(error))]
    return []


def _chosen(document: Document, shape: str | None, columns: Columns | None) -> tuple[Shape, str]:
    if columns is not None or (shape is None and document.is_table):
        return table_shape(columns), "each row is a case"
    if shape is not None:
        return shape_named(shape), "it was asked for"
    return recognised(document.data, document.source)


def _told(document: Document, shape: Shape, why: str, problems: Sequence[Problem]) -> str:
    taken = f"taken for {shape.name}: {why}"
    if len(problems) == 1:
        return f"{document.source}: {problems[0]} ({taken})"
    shown = listed(problems[:_SHOWN])
    more = f"\n- and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"{document.source} has {len(problems)} problems ({taken}):\n{shown}{more}"
