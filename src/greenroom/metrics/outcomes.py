"""What a metric returned, turned into what it concluded."""

from dataclasses import replace
from math import isfinite
from numbers import Real
from typing import Any

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric, BadValue
from greenroom.ledger.plain import plain

OUTCOMES = (Score, NotApplicable, Unmeasured)
_EXPECTED = "return a bool, a number from 0 to 1, a Score, NotApplicable or Unmeasured"


def as_outcome(returned: Any, name: str, threshold: float | None = None) -> Outcome:
    """The outcome meant by `returned`; what cannot be one is unmeasured, with the reason."""
    if isinstance(returned, Score):
        return _sound(returned, name)
    if isinstance(returned, NotApplicable | Unmeasured):
        return returned
    if isinstance(returned, bool):
        return Score(returned, threshold=threshold, name=name)
    if isinstance(returned, Real):
        return _number(float(returned), name, threshold)
    if returned is None:
        return Unmeasured(f"the metric returned None (a forgotten return?); {_EXPECTED}")
    kind = type(returned).__name__
    return Unmeasured(f"the metric returned {_short(returned)} of type {kind}; {_EXPECTED}")


def _number(value: float, name: str, threshold: float | None) -> Outcome:
    if isfinite(value) and 0 <= value <= 1:
        return Score(value, threshold=threshold, name=name)
    return Unmeasured(
        f"the metric returned {value!r}, which is no number from 0 to 1; scale it, and keep the "
        f"raw number in Score(..., measured=...)"
    )


def _sound(score: Score, name: str) -> Outcome:
    """The score, if a report could hold it: a verdict that is a bool, and details that are JSON."""
    if score.passed is not True and score.passed is not False:  # pyright: ignore[reportUnnecessaryComparison]
        return Unmeasured(f"the metric's Score has passed={_short(score.passed)}; give a bool")
    try:
        if type(score.measured) not in _SIMPLE:
            plain(score.measured, "Score.measured")
        if score.details is not None:
            plain(score.details, "Score.details")
    except BadValue as error:
        return Unmeasured(str(error))
    return score if score.name else replace(score, name=name)


_SIMPLE = frozenset((type(None), bool, int, str))


def checked_threshold(threshold: object, where: str) -> float:
    """The threshold, if some score would miss it and some would reach it."""
    if (
        isinstance(threshold, int | float)
        and not isinstance(threshold, bool)
        and 0 < threshold <= 1
    ):
        return float(threshold)
    raise BadMetric(
        f"{where} has threshold={threshold!r}; its scale is 0 to 1: give a number above 0, at most 1."
    )


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
