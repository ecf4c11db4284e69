"""A report broken down: by tag, and by case where a case was played several times."""

from collections.abc import Sequence
from math import comb

from greenroom.ledger.records import record
from greenroom.results.report import Report, Summary
from greenroom.results.result import CaseResult


@record
class TagSummary:
    """The results that carry one tag."""

    tag: str
    counts: Summary
    cost: float | None
    """What the agents' models cost in USD; None when a price is unknown."""

    @property
    def total(self) -> int:
        """How many results carry the tag."""
        return self.counts.total

    @property
    def passed(self) -> int:
        """How many of them passed."""
        return self.counts.passed

    @property
    def pass_rate(self) -> float | None:
        """Share of those evaluated that passed; None when none was."""
        return self.counts.pass_rate


@record
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
    def flaky(self) -> bool:
        """Whether it sometimes passed and sometimes did not."""
        return 0 < self.counts.passed < self.counts.evaluated

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
    return {tag: TagSummary(tag, _counts(r), _cost(r)) for tag, r in sorted(found.items())}


def per_case(report: Report) -> dict[str, CaseSummary]:
    """The trials of each case, in the order of the report."""
    return {
        case_id: CaseSummary(case_id, _counts(results), _cost(results))
        for case_id, results in report.by_case().items()
    }


def _counts(results: Sequence[CaseResult]) -> Summary:
    return Report(results).summary


def _cost(results: Sequence[CaseResult]) -> float | None:
    return Report(results).cost
