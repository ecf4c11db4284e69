"""A report broken down: by tag, and by case where a case ran several times."""

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from math import comb, fsum

from msgspec import Struct

from greenroom.errors import BadInput
from greenroom.results.facts import Facts
from greenroom.results.report import Report
from greenroom.results.statistics.intervals import Interval, Tally, mean_rate, of_cases, of_trials
from greenroom.results.summary import Summary
from greenroom.results.totals import Spent, Tagged, by_case


class TagSummary(Struct, frozen=True):
    """The results that carry one tag."""

    tag: str
    counts: Summary
    cost: float | None
    """What the agents' models cost in USD; None when a price is unknown."""
    interval: Interval | None = None
    """The interval of the pass rate; None with fewer than two evaluated cases."""
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


class CaseSummary(Struct, frozen=True):
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
        """The interval of this case's pass rate; None before its second evaluated trial."""
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
        """The chance that at least one of `k` trials passes (pass@k), drawn without replacement.

        None when fewer than `k` trials were evaluated.
        """
        _check_count(k)
        fell_short, evaluated = self.counts.evaluated - self.counts.passed, self.counts.evaluated
        return 1 - comb(fell_short, k) / comb(evaluated, k) if 0 < k <= evaluated else None

    def all_of(self, k: int) -> float | None:
        """The chance that `k` trials all pass (pass^k), from trials drawn without replacement.

        None when fewer than `k` trials were evaluated.
        """
        _check_count(k)
        evaluated = self.counts.evaluated
        return comb(self.counts.passed, k) / comb(evaluated, k) if 0 < k <= evaluated else None


def _check_count(k: object) -> None:
    if type(k) is not int:
        raise BadInput(f"k={k!r} is not a number of trials; give a whole number, as in 3.")


def per_tag(report: Report) -> dict[str, TagSummary]:
    """The results by tag, in alphabetical order; one with several tags counts for each."""
    found = sorted(report.totals.tags.items())
    return {tag: _tag(tag, tagged) for tag, tagged in found}


def _tag(tag: str, found: Tagged) -> TagSummary:
    rate = mean_rate(found.tallies)
    return TagSummary(tag, found.summary, found.spent.cost, of_cases(found.tallies), rate)


def per_case(report: Report) -> dict[str, CaseSummary]:
    """The trials of each case, in the order of the report."""
    return {
        trials[0].case_id: CaseSummary(trials[0].case_id, summary_of(trials), _cost(trials))
        for trials in by_case(report)
    }


def summary_of(trials: Collection[Facts]) -> Summary:
    """How many of these trials ended in each status."""
    return _summary(tuple([trial.status for trial in trials]))


@lru_cache(maxsize=1024)
def _summary(statuses: tuple[str, ...]) -> Summary:
    """Cached: most cases of a run end in one of a few ways."""
    return Summary.of(len(statuses), Counter(statuses))


def _cost(trials: Sequence[Facts]) -> float | None:
    spent = Spent()
    for trial in trials:
        if trial.ended is not None:
            spent.add(trial.cost, None)
    return spent.cost


def mean_over(report: Report, measure: Callable[[CaseSummary], float | None]) -> float | None:
    """The mean of a measure over the evaluated cases; None if it is unknown for one of them.

    The measure may depend only on how many trials passed and failed.
    """
    tallies = report.totals.tallies
    of = {tally: measure(_case(tally)) for tally in set(tallies)}
    known = [value for tally in tallies if (value := of[tally]) is not None]
    return fsum(known) / len(known) if known and len(known) == len(tallies) else None


def _case(tally: Tally) -> CaseSummary:
    passed, evaluated = tally
    return CaseSummary("", Summary(evaluated, passed, evaluated - passed), None)
