"""All problems of an eval-set file: what cannot be read, and what could not be run."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from greenroom.backends.backend import Backend
from greenroom.cases import EvalSet, Problem, check
from greenroom.cases.checks import metric_problems
from greenroom.cases.files.criteria import criteria_in
from greenroom.cases.files.documents import opened, opened_text
from greenroom.cases.files.load import chosen_shape, read_as
from greenroom.cases.files.readable import ReadablePart
from greenroom.errors import BadFile
from greenroom.suite.checks.tool_names import name_problems_of
from greenroom.suite.inputs.criteria import problem_with

_CASE = re.compile(r"^cases\[(\d+)\]")


def problems_in(
    file: str, text: str | None = None, *, imports: bool = True, agent: Backend | None = None
) -> list[Problem]:
    """The problems that keep a file from being read, and those of its criteria and cases.

    `text` is checked in place of the file's content. Without `imports`, no code that it names is run.
    With an `agent`, the tools that cases name must be its own.
    """
    judged = partial(problem_with, imports=imports)
    try:
        document = opened(Path(file)) if text is None else opened_text(Path(file), text)
        shape, _ = chosen_shape(document)
    except BadFile as error:  # it is not an eval set, or no text at all
        return list(error.problems) or [Problem("", str(error))]
    read = read_as(document, shape)
    unreadable = [] if isinstance(read, EvalSet) else read
    part = ReadablePart(document, shape, unreadable)
    found = list(metric_problems(criteria_in(document.data), judged))
    if part.evalset is not None:
        # In a table a criterion may be in a cell; elsewhere they have been checked already.
        in_cells = judged if document.is_table else None
        wrong = [*check(part.evalset, metric_check=in_cells), *_of_tools(part.evalset, agent)]
        found += _in_file(wrong, part, has_rows=document.is_table)
    known = {problem.where for problem in unreadable}
    others = [problem for problem in found if problem.where not in known]
    return document.located([*unreadable, *others])


def _of_tools(evalset: EvalSet, agent: Backend | None) -> Iterator[Problem]:
    if agent is None:
        return
    for index, case in enumerate(evalset):
        for problem in name_problems_of(case, agent):
            yield replace(problem, where=f"cases[{index}].{problem.where}")


def _in_file(
    problems: Iterable[Problem], part: ReadablePart, *, has_rows: bool
) -> Iterator[Problem]:
    """The problems of cases that can be read, each with its place in the file."""
    places = part.places
    for problem in problems:
        if problem.where == "cases" and part.is_partial:
            continue  # there are cases, though none that can be read
        where = _CASE.sub(lambda found: f"cases[{places[int(found[1])]}]", problem.where)
        if has_rows or "metrics[" not in where or not where.endswith(".threshold"):
            place = part.spelt(part.shape.place(where))
            if part.is_news(place):
                yield replace(problem, where=place)
