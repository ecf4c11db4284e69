"""A report broken down: by tag, and by case where a case ran several times."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from math import comb

from greenroom.results.intervals import Interval, Tally, of_trials
from greenroom.results.report import Report, Summary
from greenroom.results.result import EVALUATED, CaseResult


@dataclass(frozen=True, slots=True)
class TagSummary:
    """The results that carry one tag."""

    tag: str
    counts: Summary
    cost: float | None
    """What the agents' models cost in USD; None when a price is unknown."""
    interval: Interval | None = None
    """How sure the pass rate is; None with fewer than two evaluated cases."""
    pass_rate: float | None = None
    """The mean of its cases' own pass rates; None when none was evaluated."""

    @property
    def total(self) -> int:
        """How many results carry the tag."""
        return self.counts.total

    @property
    def passed(self) -> int:
        """How many of them passed."""
        return self.counts.passed


@dataclass(frozen=True, slots=True)
class CaseSummary:
    """All trials of one case."""

    case_id: str
    counts: Summary
    cost: float | None
    """What all its trials cost in USD; None when a price is unknown."""

    @property
    def pass_rate(self) -> float | None:
        """Share of its evaluated trials that passed; None when none was."""
        return self.counts.pass_rate

    @property
    def interval(self) -> Interval | None:
        """How sure the pass rate of this one case is; None before its second evaluated trial."""
        return of_trials(self.counts.passed, self.counts.evaluated)

    @property
    def flaky(self) -> bool:
        """Whether it sometimes passed and sometimes did not."""
        return 0 < self.counts.passed < self.counts.evaluated

    @property
    def flakiness(self) -> float | None:
        """The chance that two of its trials end differently, from 0 to 1; None before the second."""
        passed, evaluated = self.counts.passed, self.counts.evaluated
        if evaluated < 2:
            return None
        return passed * (evaluated - passed) / comb(evaluated, 2)

    def any_of(self, k: int) -> float | None:
        """The chance that at least one of `k` trials passes (pass@k), drawn without putting back.

        None when fewer than `k` trials were evaluated.
        """
        fell_short, evaluated = self.counts.evaluated - self.counts.passed, self.counts.evaluated
        return 1 - comb(fell_short, k) / comb(evaluated, k) if 0 < k <= evaluated else None

    def all_of(self, k: int) -> float | None:
        """The chance that `k` trials all pass (pass^k), from trials drawn without putting back.

        None when fewer than `k` trials were evaluated.
        """
        evaluated = self.counts.evaluated
        return comb(self.counts.passed, k) / comb(evaluated, k) if 0 < k <= evaluated else None


def per_tag(report: Report) -> dict[str, TagSummary]:
    """The results by tag, in the order of the alphabet; one with several tags counts for each."""
    found: dict[str, list[CaseResult]] = {}
    for result in report.results:
        for tag in dict.fromkeys(map(str, result.tags)):
            found.setdefault(tag, []).append(result)
    parts = {tag: Report(results) for tag, results in sorted(found.items())}
    return {
        tag: TagSummary(tag, part.summary, part.cost, part.interval, part.pass_rate)
        for tag, part in parts.items()
    }


def per_case(report: Report) -> dict[str, CaseSummary]:
    """The trials of each case, in the order of the report."""
    return {
        case_id: CaseSummary(case_id, Report(results).summary, Report(results).cost)
        for case_id, results in report.by_case().items()
    }


def tallies_of(report: Report) -> Collection[Tally]:
    """How many trials of each case passed, and of how many; of those that were evaluated."""
    tallies: dict[str, tuple[int, int]] = {}
    for result in report.results:
        if result.status in EVALUATED:
            passed, evaluated = tallies.get(result.case_id, (0, 0))
            tallies[result.case_id] = (passed + result.passed, evaluated + 1)
    return tallies.values()


def mean_over(report: Report, measure: Callable[[CaseSummary], float | None]) -> float | None:
    """The mean of a measure over the evaluated cases; None if it is unknown for one of them."""
    cases = [case for case in per_case(report).values() if case.counts.evaluated]
    known = [value for case in cases if (value := measure(case)) is not None]
    return sum(known) / len(known) if known and len(known) == len(cases) else None
