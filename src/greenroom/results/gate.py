"""The quality gate at the end of a run: whether its results suffice, and why not.

The command line, the pytest plug-in and scripts use the same gate.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from sys import float_info
from typing import Literal, cast, get_args

from greenroom.errors import BadInput
from greenroom.ledger.safe_text import on_one_line
from greenroom.results.comparisons.comparison import (
    FEWEST_CASES,
    FEWEST_IN_TAG,
    THRESHOLD,
    Comparison,
    Metrics,
    Missed,
    compare,
)
from greenroom.results.report import Report
from greenroom.results.statistics.intervals import percent
from greenroom.results.totals import cases_of
from greenroom.results.words import dollars, dollars_apart, listed, number_of, shortened

FailOn = Literal["regression", "unclear", "removed", "skipped"]

_AGAINST: tuple[FailOn, ...] = ("unclear", "removed")
"""What a report can only fail on against a baseline, and does not unless it is asked for."""

_REASONS = 3
"""How many different errors a gate names."""
_LONGEST = 200
_NO_REASON = "without a reason"
_ROUNDING = 1e-12
"""The rounding error that a mean of rates may have."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The quality gate's decision. `str(decision)` says why it fails, one line per reason."""

    missed: Sequence[Missed] = ()
    comparison: Comparison | None = field(default=None, repr=False, compare=False)
    """What the report was compared with, if anything."""

    @property
    def passed(self) -> bool:
        """Whether the gate passes."""
        return not self.missed

    @property
    def broke(self) -> bool:
        """Whether too much broke for the run to prove anything."""
        return any(missed.kind == "errors" for missed in self.missed)

    @property
    def exit_code(self) -> int:
        """A command's exit code: 3 nothing could be compared, 2 it broke, 1 it fell short, 0 passed."""
        if any(missed.kind == "incomparable" for missed in self.missed):
            return 3
        return 2 if self.broke else 1 if self.missed else 0

    def __str__(self) -> str:
        return "\n".join(missed.why for missed in self.missed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate:
    """A quality gate: what a report must reach.

    `min_pass_rate` is 1 unless it is given; with a baseline there is no minimum unless it is given. With
    `confident` the lower end of the pass rate's 95 % interval must reach the minimum, not just the
    pass rate itself; a report of adaptive trials must show that it reaches it, which needs a minimum below 1.
    `fail_on` names what else makes it fail: what got worse than in the baseline, what may have (`unclear`), a
    case that only the baseline has (`removed`), or one that was skipped or has not run yet.
    `threshold` is by how much the mean of a metric must fall to have got worse; `metrics` names those
    that count, `tags` those whose cases are tested like the whole set. `max_cost` is the total that agents,
    users and judges may cost in USD; an unknown cost fails.
    """

    min_pass_rate: float | None = None
    confident: bool = False
    fail_on: Sequence[FailOn] = ("regression",)
    max_errors: int = 0
    threshold: float = THRESHOLD
    max_cost: float | None = None
    tags: Sequence[str] = ()
    metrics: Metrics = "all"

    def __post_init__(self) -> None:
        if self.min_pass_rate is not None and not _is_number(self.min_pass_rate, most=1):
            raise BadInput(
                f"min_pass_rate={self.min_pass_rate!r} is not a share; give 0 to 1, as in 0.9."
            )
        if self.confident not in (True, False):
            raise BadInput(f"confident={self.confident!r}: give True or False.")
        if not isinstance(self.max_errors, int) or not _is_number(self.max_errors):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise BadInput(f"max_errors={self.max_errors!r} is not a count; give 0 or more.")
        if not _is_number(self.threshold, most=1):
            raise BadInput(
                f"threshold={self.threshold!r} is not a difference of scores; give 0 to 1."
            )
        if self.max_cost is not None and not _is_number(self.max_cost):
            raise BadInput(f"max_cost={self.max_cost!r} is not an amount in USD; give 0 or more.")
        for name in ("fail_on", "tags", "metrics"):
            if isinstance(given := getattr(self, name), str) and (name, given) != (
                "metrics",
                "all",
            ):
                raise BadInput(f"{name}={given!r} is a string; give a list: [{given!r}].")
        # An iterator would be used up by the first look at it.
        for name in ("fail_on", "tags"):
            object.__setattr__(self, name, self._names(name))
        if self.metrics != "all":
            object.__setattr__(self, "metrics", self._names("metrics"))
        if unknown := [name for name in self.fail_on if name not in get_args(FailOn)]:
            raise BadInput(
                f"fail_on={unknown[0]!r} is unknown; use one of {list(get_args(FailOn))}."
            )

    def _names(self, field: str) -> tuple[str, ...]:
        given: object = getattr(self, field)
        if isinstance(given, Iterable):
            names = tuple(cast("Iterable[object]", given))
            if all(isinstance(name, str) for name in names):
                return cast("tuple[str, ...]", names)
        raise BadInput(f"{field}={given!r} is not a list of names; give one, as in ['a', 'b'].")

    def decide(self, report: Report, baseline: Report | Sequence[Report] | None = None) -> Decision:
        """Whether the report suffices. Errors come first, since they prove nothing either way."""
        if baseline is None:
            self._check_alone()
            return Decision(tuple(self._missed(report, None)))
        return self.weigh(self.compare(report, baseline))

    def compare(self, report: Report, baseline: Report | Sequence[Report]) -> Comparison:
        """Compare the report with a baseline, by what this gate counts as worse."""
        return compare(baseline, report, self.threshold, tags=self.tags, metrics=self.metrics)

    def weigh(self, comparison: Comparison) -> Decision:
        """Decide on a report that was already compared with its baseline."""
        return Decision(tuple(self._missed(comparison.current, comparison)), comparison)

    @property
    def without_baseline(self) -> "Gate":
        """This gate for a report that has no baseline: it leaves out what only a baseline could show."""
        fail_on = [name for name in self.fail_on if name not in _AGAINST]
        return replace(self, fail_on=fail_on, tags=(), metrics="all")

    def _check_alone(self) -> None:
        """Refuse what only means something against a baseline: without one it would gate nothing."""
        given = {
            "tags": self.tags,
            "metrics": () if self.metrics == "all" else self.metrics,
            "fail_on": [name for name in self.fail_on if name in _AGAINST],
        }
        for name, asked in given.items():
            if asked:
                raise BadInput(
                    f"{name}={list(asked)!r} needs a baseline; give one, or leave it out."
                )

    def _missed(self, report: Report, comparison: Comparison | None) -> Iterator[Missed]:
        minimum = self.min_pass_rate
        if minimum is None and comparison is None:
            minimum = 1.0
        if self.confident and minimum is None:
            raise BadInput(
                "confident=True is about a minimum; give min_pass_rate below 1, or leave it out."
            )
        if report.adaptive and minimum == 1:
            raise BadInput(
                "this is the report of an adaptive run (trials='auto'), and no number of trials shows that a case "
                "always passes. Give min_pass_rate (--min-pass-rate) below 1."
            )
        if faults := report.faults:
            yield Missed("errors", "; ".join(faults))
        broke = _errors(report, self.max_errors, all_count=comparison is not None)
        if broke:
            yield Missed("errors", broke)
        elif minimum is not None and (why := self._too_low(report, minimum)):
            yield Missed("pass_rate", why)
        if comparison is not None:
            yield from self._against(comparison, broke=bool(broke or faults))
        if "skipped" in self.fail_on:
            yield from self._left_out(report)
        if self.max_cost is not None and (why := _too_dear(report, self.max_cost)):
            yield Missed("cost", why)

    def _left_out(self, report: Report) -> Iterator[Missed]:
        if left := report.unfinished:
            yield Missed("skipped", f"{left}, and what is left may fail. Resume it, then decide.")
        if names := [result.label for result in report.results if result.status == "skipped"]:
            yield Missed("skipped", f"{number_of(len(names), 'case')} skipped: {listed(names)}")

    def _against(self, comparison: Comparison, *, broke: bool) -> Iterator[Missed]:
        """The reasons to fail that come from the comparison with a baseline."""
        if why := comparison.incomparable:
            # If everything broke, that was already reported.
            if not (broke and comparison.shared):
                yield Missed("incomparable", why)
            return
        if untested := self._untested(comparison):
            yield Missed(
                "incomparable",
                f"{listed(untested)}: measured on fewer than {FEWEST_CASES} cases of both reports, which "
                f"is too few to show a change. Leave it out of `metrics`, or give it more cases",
            )
        if tags := comparison.untested_tags:
            yield Missed(
                "incomparable",
                f"{listed(tags)}: fewer than {FEWEST_IN_TAG} cases with this tag can be compared, which is "
                f"too few to show a change. Leave the tag out, or give it more cases",
            )
        if "regression" in self.fail_on:
            yield from comparison.worse
        if "unclear" in self.fail_on:
            yield from comparison.undecided
        if "removed" in self.fail_on and comparison.removed:
            names = [case.case_id for case in comparison.removed]
            yield Missed("removed", f"{number_of(len(names), 'case')} removed: {listed(names)}")

    def _untested(self, comparison: Comparison) -> list[str]:
        """The metrics that this gate names, and that no difference could ever show in."""
        named = () if self.metrics == "all" else self.metrics
        return [name for name in named if name not in comparison.asked]

    def _too_low(self, report: Report, minimum: float) -> str:
        from greenroom.results.adaptive import open_minimum  # few reports are adaptive

        rate = report.pass_rate
        if rate is None or rate < minimum - _ROUNDING:
            return below(rate, minimum)
        if report.adaptive and (why := open_minimum(report, minimum)):
            return why
        if not self.confident:
            return ""
        interval = report.interval
        if interval is None:
            return (
                f"too few cases were evaluated to be sure of a pass rate of {percent(minimum)}; "
                f"at least 2 are needed."
            )
        if interval.low >= minimum:
            return ""
        bottom, bar = _apart(interval.low, minimum)
        return (
            f"the pass rate is {interval}: it may be as low as {bottom}, below the minimum of {bar}"
        )


def _is_number(given: object, most: float = float_info.max) -> bool:
    """Whether this is a number from 0 to `most`; True is none."""
    if isinstance(given, bool) or not isinstance(given, int | float):
        return False
    return 0 <= given <= most


def held_against(
    report: Report, baseline: Report | None, decision: Decision | None
) -> Comparison | None:
    """The report compared with its baseline as the gate did; by the default rules if there was no gate."""
    seen = None if decision is None else decision.comparison
    if seen is None:
        return None if baseline is None else compare(baseline, report)
    if seen.current is report:
        return seen
    before = baseline or seen.baseline
    return compare(before, report, seen.threshold, tags=seen.tags, metrics=seen.gated)


def below(rate: float | None, minimum: float) -> str:
    """Why a pass rate does not suffice, with enough digits to see the difference."""
    if rate is None:
        return f"no case was evaluated, so a pass rate of {percent(minimum)} cannot be shown"
    found, bar = _apart(rate, minimum)
    return f"the pass rate of {found} is below the minimum of {bar}"


def _apart(share: float, bar: float) -> tuple[str, str]:
    digits = next((d for d in range(1, 9) if percent(share, d) != percent(bar, d)), 9)
    return percent(share, digits), percent(bar, digits)


def _too_dear(report: Report, most: float) -> str:
    spent = report.spent
    if spent is None:
        return f"the cost is unknown, so a maximum of {dollars(most)} cannot be shown"
    found, bar = dollars_apart(spent, most)
    return f"the cost of {found} is above a maximum of {bar}" if spent > most else ""


def _errors(report: Report, allowed: int, *, all_count: bool) -> str:
    """Why too much broke; empty if it did not. If only errors are left, too much broke."""
    errors = report.summary.errors
    again = sum(result.error is not None for result in report.confirmed)
    is_all = all_count and bool(errors) and not report.summary.evaluated
    if errors + again <= allowed and not is_all:
        return ""
    is_repeated = len(report) > report.totals.cases
    counts = [number_of(errors, "trial" if is_repeated else "case")] if errors else []
    counts += [f"{number_of(again, 'trial')} of cases run again"] if again else []
    limit = f", {allowed} allowed" if allowed else ""
    return f"{' and '.join(counts)} ended in an error{limit}: {_reasons(report)}"


def _reasons(report: Report) -> str:
    """What broke, the most frequent first, and how often."""
    broke = [one for trials in cases_of(report) for one in trials if one.status == "error"]
    found = Counter(
        _NO_REASON
        if one.error is None
        else f"{one.error.phase}: {shortened(on_one_line(one.error.headline), _LONGEST)}"
        for one in (*broke, *(one for one in report.confirmed if one.error is not None))
    )
    most = [
        f"{count} x {why}" if len(found) > 1 else why for why, count in found.most_common(_REASONS)
    ]
    more = len(found) - _REASONS
    return "; ".join([*most, f"and {number_of(more, 'other reason')}"] if more > 0 else most)
