"""`greenroom eval-set validate`: everything that is wrong, and safe repairs."""

import json
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from greenroom.apps.cli.exits import BAD_INPUT, PASSED, Stopped, harmless, put_out, telling
from greenroom.cases import Problem, check, fix
from greenroom.cases.checking import metric_problems
from greenroom.cases.files import problems, read_evalset
from greenroom.cases.files.criteria import criteria_in
from greenroom.cases.files.documents import parsed
from greenroom.cases.files.saving import json_or_yaml, save_text
from greenroom.cases.files.shapes import shape_named
from greenroom.cases.parts import MetricLike
from greenroom.errors import BadInput
from greenroom.ledger.plain import is_object
from greenroom.metrics import as_metric


def validate(files: Sequence[str], mend: bool, as_json: bool) -> int:
    """Check files, mend them first if asked; exit code 3 while one of them has a problem."""
    found: dict[str, list[Problem]] = {}
    repairs: dict[str, list[Problem]] = {}
    with telling(verbose=False):
        for file in files:
            repairs[file] = _mended(Path(file)) if mend else []
            found[file] = problems_in(file)
    if as_json:
        click.echo(
            json.dumps([_data(file, found[file], repairs[file]) for file in files], indent=2)
        )
    else:
        for file in files:
            _show(file, found[file], repairs[file])
    bad = [file for file in files if not all(problem.hint for problem in found[file])]
    if bad:
        raise Stopped(f"not fit to be played: {', '.join(bad)}", BAD_INPUT)
    return PASSED


def problems_in(file: str) -> list[Problem]:
    """What keeps a file from being read, and what is wrong with its criteria and its cases."""
    unreadable = problems(file)
    if any(not problem.where and not problem.line for problem in unreadable):
        return unreadable  # it is no eval set, or no text at all
    document = parsed(Path(file))
    found = list(metric_problems(criteria_in(document.data), _metric_problem))
    if unreadable:
        known = {problem.where for problem in unreadable}
        found = [problem for problem in found if problem.where not in known]
        return _in_order([*unreadable, *document.located(found)])
    evalset = read_evalset(file)
    shape = shape_named(evalset.shape)
    has_rows = document.is_table  # there a criterion may stand in a cell
    for problem in check(evalset, metric_problem=_metric_problem if has_rows else None):
        if has_rows or ".metrics[" not in f".{problem.where}" or "threshold" not in problem.where:
            found.append(replace(problem, where=shape.place(problem.where)))
    return _in_order(document.located(found))


def _in_order(found: Sequence[Problem]) -> list[Problem]:
    return sorted(found, key=lambda problem: problem.line or 0)


def _metric_problem(metric: MetricLike) -> str | None:
    try:
        as_metric(metric)
    except BadInput as error:
        return str(error)
    return None


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
