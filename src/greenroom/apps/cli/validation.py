"""`greenroom eval-set validate`: everything that is wrong, and safe repairs."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from greenroom.apps.cli.exits import (
    BAD_INPUT,
    PASSED,
    Stopped,
    harmless,
    put_out,
    put_out_json,
    telling,
)
from greenroom.cases import EvalSet, Problem, check, fix
from greenroom.cases.checks import metric_problems
from greenroom.cases.files.criteria import criteria_in
from greenroom.cases.files.documents import opened, parsed
from greenroom.cases.files.load import chosen_shape, read_as
from greenroom.cases.files.readable import ReadablePart
from greenroom.cases.files.save import json_or_yaml, save_text
from greenroom.errors import BadFile
from greenroom.ledger.plain import is_object
from greenroom.suite.criteria import problem_with

_CASE = re.compile(r"^cases\[(\d+)\]")


def validate(files: Sequence[str], mend: bool, as_json: bool) -> int:
    """Check files, mend them first if asked; exit code 3 while one of them has a problem."""
    found: dict[str, list[Problem]] = {}
    repairs: dict[str, list[Problem]] = {}
    with telling(verbose=False):
        for file in files:
            repairs[file] = _mended(Path(file)) if mend else []
            found[file] = problems_in(file)
    if as_json:
        put_out_json(
            json.dumps([_data(file, found[file], repairs[file]) for file in files], indent=2)
        )
    else:
        for file in files:
            _show(file, found[file], repairs[file])
    bad = [file for file in files if not all(problem.hint for problem in found[file])]
    if bad:
        raise Stopped(f"{', '.join(bad)} {'is' if len(bad) == 1 else 'are'} not valid", BAD_INPUT)
    return PASSED


def problems_in(file: str) -> list[Problem]:
    """What keeps a file from being read, and what is wrong with its criteria and its cases."""
    try:
        document = opened(Path(file))
        shape, _ = chosen_shape(document)
    except BadFile as error:  # it is no eval set, or no text at all
        return list(error.problems) or [Problem("", str(error))]
    read = read_as(document, shape)
    unreadable = [] if isinstance(read, EvalSet) else read
    part = ReadablePart(document, shape, unreadable)
    found = list(metric_problems(criteria_in(document.data), problem_with))
    if part.evalset is not None:
        found += _case_problems(part.evalset, part, has_rows=document.is_table)
    known = {problem.where for problem in unreadable}
    others = [problem for problem in found if problem.where not in known]
    return document.located([*unreadable, *others])


def _case_problems(evalset: EvalSet, part: ReadablePart, has_rows: bool) -> Iterator[Problem]:
    """What is wrong with cases that can be read, where it stands in their file."""
    # In a table a criterion may stand in a cell; elsewhere those have been looked at.
    judged = problem_with if has_rows else None
    places = part.places
    for problem in check(evalset, metric_problem=judged):
        where = _CASE.sub(lambda found: f"cases[{places[int(found[1])]}]", problem.where)
        if has_rows or "metrics[" not in where or not where.endswith(".threshold"):
            place = part.spelt(part.shape.place(where))
            if part.is_news(place):
                yield replace(problem, where=place)


def _mended(file: Path) -> list[Problem]:
    """Repair a file in place, and say what was done."""
    data = parsed(file).data
    if not is_object(data):
        return []
    mended, repairs = fix(data)
    if repairs:
        save_text(json_or_yaml(mended, file), file)
    return repairs


def _show(file: str, found: Sequence[Problem], repairs: Sequence[Problem]) -> None:
    lines = [f"{file}: fixed {repair}" for repair in repairs]
    lines += [f"{file}: {'hint: ' if problem.hint else ''}{problem}" for problem in found]
    if all(problem.hint for problem in found):
        lines.append(f"{file}: fine")
    put_out(harmless("\n".join(lines)))


def _data(file: str, found: Sequence[Problem], repairs: Sequence[Problem]) -> dict[str, Any]:
    return {
        "file": file,
        "valid": all(problem.hint for problem in found),
        "problems": [asdict(problem) for problem in found],
        "repairs": [asdict(repair) for repair in repairs],
    }
