"""The outcomes of a metric: a score, not applicable, or unmeasured."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from math import isfinite
from typing import Any, get_args

from greenroom.errors import BadMetric, Phase

DEFAULT_THRESHOLD = 0.5


@dataclass(frozen=True, slots=True)
class Score:
    """A measurement from 0 to 1, and whether it passed.

    Without `passed` it passes at `threshold` (0.5 if none is given). `measured` is the raw number
    or value behind it, `evidence` what a reader should look at.
    """

    value: float
    passed: bool = None  # type: ignore[assignment]  # filled in below
    _: KW_ONLY
    threshold: float | None = None
    reason: str = ""
    evidence: Sequence[str] = ()
    details: Any = None
    measured: Any = None
    name: str = ""

    def __post_init__(self) -> None:
        # No report could show words that are not strings.
        if type(self.reason) is not str:
            object.__setattr__(self, "reason", checked_words(self.reason, "a Score's `reason`"))
        if type(self.name) is not str:
            object.__setattr__(self, "name", checked_words(self.name, "a Score's `name`"))
        if self.evidence != ():
            self._check_evidence()
        if type(self.value) is float and 0.0 <= self.value <= 1.0 and type(self.passed) is bool:
            return
        number = python_value(self.value)
        number = float(number) if isinstance(number, bool) else number
        object.__setattr__(self, "value", number)
        object.__setattr__(self, "passed", python_value(self.passed))
        if not isinstance(number, int | float) or not isfinite(number) or not 0 <= number <= 1:
            raise BadMetric(
                f"a score must be a number from 0 to 1 or a bool, but is {number!r}. "
                f"Scale it, and keep the raw number in `measured`."
            )
        if self.passed is None:  # pyright: ignore[reportUnnecessaryComparison]
            object.__setattr__(self, "passed", self.value >= self._bar())

    def _check_evidence(self) -> None:
        if type(self.evidence) not in (list, tuple) and (
            isinstance(self.evidence, str) or not isinstance(self.evidence, Sequence)  # pyright: ignore[reportUnnecessaryIsInstance]
        ):
            raise BadMetric(
                f"a Score's `evidence` is {self.evidence!r}, but should be a list of strings."
            )
        if {*map(type, self.evidence)} - {str}:
            lines = tuple(
                checked_words(line, "a line of a Score's `evidence`") for line in self.evidence
            )
            object.__setattr__(self, "evidence", lines)

    def _bar(self) -> float:
        """The threshold; one that every score reaches, or that none can reach, is refused."""
        bar: Any = DEFAULT_THRESHOLD if self.threshold is None else self.threshold
        if isinstance(bar, bool) or not isinstance(bar, int | float) or not 0 < bar <= 1:
            raise BadMetric(
                f"a score has threshold={bar!r}; its scale is 0 to 1: give a number above 0, at most 1, "
                f"or say `passed` yourself."
            )
        return bar


def python_value(given: Any) -> Any:
    """A single value of numpy or torch as Python's own; anything else as it is."""
    is_single = getattr(given, "shape", None) == () and callable(getattr(given, "item", None))
    return given.item() if is_single else given


class _NoScore:
    """Has the attributes of a score, without numbers, so that outcomes can be read without checking their type."""

    __slots__ = ()
    why: str

    @property
    def value(self) -> None:
        """None: there is no number."""

    @property
    def passed(self) -> None:
        """None: neither passed nor failed."""

    @property
    def threshold(self) -> None:
        """None: there is nothing to hold against it."""

    @property
    def details(self) -> Any:
        """Empty: there are none."""

    @property
    def measured(self) -> None:
        """None: nothing was measured."""

    @property
    def evidence(self) -> tuple[()]:
        """Empty: there is none."""
        return ()

    @property
    def reason(self) -> str:
        """Why there is no score."""
        return self.why


@dataclass(frozen=True, slots=True)
class NotApplicable(_NoScore):
    """The case does not say what this metric would need; neither passed nor failed."""

    why: str

    def __post_init__(self) -> None:
        if type(self.why) is not str:
            object.__setattr__(self, "why", checked_words(self.why, "NotApplicable's `why`"))


@dataclass(frozen=True, slots=True)
class Unmeasured(_NoScore):
    """The metric could not measure: it broke, or lacked what it needs. Never a number.

    `phase` says where it broke: a user who broke character leaves a trial unmeasured too.
    """

    why: str
    phase: Phase = "metric"

    def __post_init__(self) -> None:
        if type(self.why) is not str:
            object.__setattr__(self, "why", checked_words(self.why, "Unmeasured's `why`"))
        if self.phase not in get_args(Phase):
            raise BadMetric(
                f"Unmeasured's `phase` is {self.phase!r}; use one of {', '.join(get_args(Phase))}."
            )


def checked_words(given: Any, what: str) -> str:
    """The string that was given, without its subclass; anything else is refused."""
    if not isinstance(given, str):
        raise BadMetric(f"{what} is {given!r}, but should be a string: say why in words.")
    return str.__str__(given)


Outcome = Score | NotApplicable | Unmeasured
"""What a metric found: a score, nothing to measure, or why it could not measure."""


def told_apart(value: float, bar: float) -> str:
    """A value with the two digits of every score, or as many as tell it from its threshold."""
    return next((t for n in range(2, 17) if float(t := f"{value:.{n}f}") < bar), repr(value))
