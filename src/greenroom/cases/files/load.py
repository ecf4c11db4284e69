"""Eval sets read from files of any known shape, doubted here and trusted inside."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.documents import Document, parsed
from greenroom.cases.files.shapes import Shape, recognised, shape_named
from greenroom.cases.files.tables import Columns, table_shape
from greenroom.cases.parts import metric_name
from greenroom.cases.problems import Problem, invalid, keys_of, problems_of
from greenroom.errors import BadFile, BadInput
from greenroom.ledger.plain import is_array, is_object


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
        raise BadFile(
            invalid(document.source, problems, f"format: {taken.name}, since {why}"), problems
        ) from error
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


def readable_part(
    document: Document, found: Sequence[Problem]
) -> tuple[EvalSet, Shape, list[int]] | None:
    """What can be read of a file without the cases and fields in which something was found.

    With it come its shape, and the place of each of its cases in the file; None if nothing is left.
    """
    shape, _ = _chosen(document, None, None)
    name = shape.lists[0]
    data = dict(document.data) if is_object(document.data) else document.data
    listed = data.get(name) if is_object(data) else data
    if not is_array(listed):
        return None
    bad: set[int] = set()
    for problem in found:
        keys = keys_of(problem.where)
        depth = 1 if is_object(data) else 0
        if len(keys) > depth and isinstance(keys[depth], int) and (not depth or keys[0] == name):
            bad.add(int(keys[depth]))
        elif is_object(data) and keys and keys[0] != name:
            data.pop(str(keys[0]), None)
    kept = [i for i in range(len(listed)) if i not in bad]
    cases = [listed[i] for i in kept]
    try:
        rest = shape.read({**data, name: cases} if is_object(data) else cases, document.stem)
    except BadInput:
        return None
    return _judged(rest, shape), shape, kept


def _chosen(document: Document, shape: str | None, columns: Columns | None) -> tuple[Shape, str]:
    if columns is not None or (shape is None and document.is_table):
        return table_shape(columns), "each row is a case"
    if shape is not None:
        return shape_named(shape), "it was asked for"
    return recognised(document.data, document.source)
