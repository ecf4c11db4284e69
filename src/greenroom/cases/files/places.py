"""Where in their files the problems of cases stand that were read, and then looked at more closely."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from greenroom.cases.case import Case, CaseOrigin
from greenroom.cases.files.documents import opened
from greenroom.cases.files.load import chosen_shape, read_as
from greenroom.cases.problems import Problem
from greenroom.errors import BadInput


def in_files(found: Iterable[tuple[Case, Problem]]) -> list[tuple[str, Problem]]:
    """The file of each problem, and the problem with its place there; "" for cases that are from none.

    Problems are given by their places in their cases.
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
    with suppress(BadInput):  # a file that was changed since has no places to show
        if file:
            document = opened(Path(file))
            shape, _ = chosen_shape(document, None if document.is_table else shape_name)
            read_as(document, shape)  # a table knows its columns when it has been read
            return document.located(
                replace(problem, where=shape.place(f"cases[{origin.index}].{problem.where}"))
                for origin, problem in theirs
                if origin is not None
            )
    return [problem for _, problem in theirs]
