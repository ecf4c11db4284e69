"""A report as a table: one row for each trial, one column for each fact and each metric."""

from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Literal

from greenroom.cases.scores import Score
from greenroom.errors import BadInput, MissingExtra
from greenroom.results.report import Report
from greenroom.results.result import CaseResult

Library = Literal["pandas", "polars"]
_LIBRARIES: tuple[Library, ...] = ("pandas", "polars")


def frame_of(report: Report, library: Library | None = None) -> object:
    """The report as a data frame of pandas or polars, whichever is installed."""
    if library is not None and library not in _LIBRARIES:
        raise BadInput(f"to_frame({library!r}) is not known; use {' or '.join(_LIBRARIES)}.")
    for name in _LIBRARIES if library is None else (library,):
        if find_spec(name) is not None:
            return import_module(name).DataFrame(frame_columns(report))
    raise MissingExtra(
        f"data frames are made with {library or ' or '.join(_LIBRARIES)}, which is not installed: pip "
        f"install {library or _LIBRARIES[0]}. report.to_json() needs neither."
    )


def frame_columns(report: Report) -> dict[str, list[object]]:
    """The columns of the table. A score that was not measured is None, and so is its verdict."""
    rows = [*report.results, *report.confirmed]
    columns: dict[str, list[Any]] = {
        name: [value(result) for result in rows] for name, value in _FACTS.items()
    }
    metrics = dict.fromkeys(name for result in rows for name in result.scores)
    for name in metrics:
        scores = [result.scores.get(name) for result in rows]
        columns[_free(name, columns)] = [s.value if isinstance(s, Score) else None for s in scores]
        passed = [s.passed if isinstance(s, Score) else None for s in scores]
        if any(verdict is not None for verdict in passed):
            columns[_free(f"{name} passed", columns)] = passed
        if any(name in result.replaced for result in rows):
            replaced = [result.replaced.get(name) for result in rows]
            columns[_free(f"{name} replaced", columns)] = replaced
    return columns


def _free(name: str, columns: Mapping[str, object]) -> str:
    """The column names of metrics; one may have the name of a built-in column."""
    return name if name not in columns else f"metric {name}"


def _error(result: CaseResult) -> str | None:
    return None if result.error is None else f"{result.error.type}: {result.error.message}"


_FACTS: Mapping[str, Callable[[CaseResult], Any]] = {
    "case": lambda result: result.case_id,
    "trial": lambda result: result.trial,
    "status": lambda result: result.status,
    "tags": lambda result: list(result.tags),
    "ended": lambda result: result.ended,
    "turns": lambda result: result.turns,
    "seconds": lambda result: result.seconds,
    "cost": lambda result: result.spent,
    "error": _error,
}
