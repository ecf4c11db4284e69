"""The gate at the end of a run: whether its results suffice, and why not.

The command line, the pytest plug-in and scripts ask the same gate.
"""

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from greenroom.errors import BadInput
from greenroom.ledger.records import record
from greenroom.results.comparison import THRESHOLD, compare
from greenroom.results.intervals import percent
from greenroom.results.report import Report
from greenroom.results.text import number_of

FailOn = Literal["regression", "skipped"]
Kind = Literal["errors", "pass_rate", "regression", "skipped", "cost"]

_NAMED = 10


@record
class Missed:
    """One thing that keeps the gate shut."""

    kind: Kind
    why: str


@record
class Decision:
    """What the gate said. `str(decision)` is why it stays shut, a line for each reason."""

    missed: Sequence[Missed] = ()

    @property
    def passed(self) -> bool:
        """Whether the gate opens."""
        return not self.missed

    @property
    def broke(self) -> bool:
        """Whether too much broke for the run to prove anything."""
        return any(missed.kind == "errors" for missed in self.missed)

    def __str__(self) -> str:
        return "\n".join(missed.why for missed in self.missed)


@record(kw_only=True)
class Gate:
    """What a report must reach.

    With `confident` the lower end of the pass rate's 95 % interval must reach the minimum, not just
    the pass rate itself. `fail_on` names what else keeps it shut: a case that got worse than in the
    baseline, or one that was skipped. `max_cost` is what agents, users and judges may cost together
    in USD; a cost that nobody knows is not shown to stay below it.
    """

    min_pass_rate: float = 1.0
    confident: bool = False
    fail_on: Sequence[FailOn] = ("regression",)
    max_errors: int = 0
    threshold: float = THRESHOLD
    max_cost: float | None = None

    def __post_init__(self) -> None:
        if not 0 <= self.min_pass_rate <= 1:
            raise BadInput(
                f"min_pass_rate={self.min_pass_rate!r} is no share; give 0 to 1, as in 0.9."
            )
        if self.max_errors < 0:
            raise BadInput(f"max_errors={self.max_errors!r} is no count; give 0 or more.")
        if self.max_cost is not None and not self.max_cost >= 0:
            raise BadInput(f"max_cost={self.max_cost!r} is no amount in USD; give 0 or more.")
        if unknown := [name for name in self.fail_on if name not in get_args(FailOn)]:
            raise BadInput(
                f"fail_on={unknown[0]!r} is unknown; there are {list(get_args(FailOn))}."
            )

    def decide(self, report: Report, baseline: Report | None = None) -> Decision:
        """Whether the report suffices. Errors come first, since they prove nothing either way."""
        return Decision(tuple(self._missed(report, baseline)))

    def _missed(self, report: Report, baseline: Report | None) -> Iterator[Missed]:
        summary = report.summary
        if faults := report.faults:
            yield Missed("errors", "; ".join(faults))
        if summary.errors > self.max_errors:
            yield Missed("errors", _errors(report, self.max_errors))
        elif why := self._too_low(report):
            yield Missed("pass_rate", why)
        if baseline is not None and "regression" in self.fail_on:
            worse = compare(baseline, report, self.threshold).regressed
            if worse:
                names = _listed([case.case_id for case in worse])
                yield Missed("regression", f"worse than the baseline: {names}")
        if summary.skipped and "skipped" in self.fail_on:
            names = [result.label for result in report.results if result.status == "skipped"]
            yield Missed("skipped", f"{number_of(len(names), 'case')} skipped: {_listed(names)}")
        if self.max_cost is not None and (why := _too_dear(report, self.max_cost)):
            yield Missed("cost", why)

    def _too_low(self, report: Report) -> str:
        rate, minimum = report.summary.pass_rate, self.min_pass_rate
        if rate is None or rate < minimum:
            return below(rate, minimum)
        return self._unsure(report) if self.confident else ""

    def _unsure(self, report: Report) -> str:
        interval, minimum = report.interval, self.min_pass_rate
        if interval is None:
            return (
                f"too few cases were evaluated to be sure of a pass rate of {percent(minimum)}; "
                f"it takes at least 2."
            )
        if interval.low >= minimum:
            return ""
        bottom, bar = _apart(interval.low, minimum)
        return (
            f"the pass rate is {interval}: it may be as low as {bottom}, below the minimum of {bar}"
        )


def below(rate: float | None, minimum: float) -> str:
    """Why a pass rate does not suffice, with as many digits as it takes to see the difference."""
    if rate is None:
        return f"no case was evaluated, so a pass rate of {percent(minimum)} cannot be shown"
    found, bar = _apart(rate, minimum)
    return f"the pass rate of {found} is below the minimum of {bar}"


def _apart(share: float, bar: float) -> tuple[str, str]:
    digits = next((d for d in range(1, 9) if percent(share, d) != percent(bar, d)), 9)
    return percent(share, digits), percent(bar, digits)


def _too_dear(report: Report, most: float) -> str:
    spent, bar = report.spent, f"a maximum of ${most:.4f}"
    if spent is None:
        return f"the cost is unknown, so {bar} cannot be shown"
    return f"the cost of ${spent:.4f} is above {bar}" if spent > most else ""


def _errors(report: Report, allowed: int) -> str:
    told = f", {allowed} allowed" if allowed else ""
    is_repeated = len(report) > len(report.by_case())
    count = number_of(report.summary.errors, "trial" if is_repeated else "case")
    return f"{count} ended in an error{told}"


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
