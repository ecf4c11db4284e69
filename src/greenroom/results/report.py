"""What a run of many cases came to."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field

from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import NotFound
from greenroom.ledger.records import record
from greenroom.results.result import CaseResult, Status


@record
class Summary:
    """How many cases ended how."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    terminated: int = 0
    skipped: int = 0

    @property
    def evaluated(self) -> int:
        """The gate's denominator: errors and skipped are counted apart, cut runs stay in."""
        return self.passed + self.failed + self.terminated

    @property
    def pass_rate(self) -> float | None:
        """Share of evaluated cases that passed; None when nothing was evaluated."""
        return self.passed / self.evaluated if self.evaluated else None


@record
class MetricSummary:
    """One metric over all cases; what it could not measure is no number here."""

    name: str
    mean: float | None
    passed: int
    failed: int
    not_applicable: int
    unmeasured: int


@record(repr=False)
class Report:
    """The results of an evaluation, in the order of its cases. `str(report)` is plain text."""

    results: Sequence[CaseResult]
    name: str = ""
    seconds: float = 0.0
    notes: Sequence[str] = field(default=())

    @property
    def passed(self) -> bool:
        """Whether every case passed, and there was at least one."""
        return bool(self.results) and all(result.passed for result in self.results)

    @property
    def summary(self) -> Summary:
        """The counts."""
        count = self._count
        return Summary(
            len(self.results),
            count("passed"),
            count("failed"),
            count("error"),
            count("terminated"),
            count("skipped"),
        )

    def _count(self, status: Status) -> int:
        return sum(result.status == status for result in self.results)

    @property
    def cost(self) -> float | None:
        """What the agents' models cost in USD; None when a price is unknown."""
        costs = [r.cost for r in self.results if r.ended is not None]
        known = [cost for cost in costs if cost is not None]
        return sum(known, 0.0) if len(known) == len(costs) else None

    @property
    def models(self) -> dict[str, int]:
        """Which models answered in these runs, and how often."""
        return _added(result.models for result in self.results)

    @property
    def user_models(self) -> dict[str, int]:
        """Which models played the users in these runs, and how often."""
        return _added(result.user_models for result in self.results)

    @property
    def metrics(self) -> Mapping[str, MetricSummary]:
        """Each metric over all cases."""
        outcomes: dict[str, list[Outcome]] = {}
        for result in self.results:
            for name, outcome in result.scores.items():
                outcomes.setdefault(name, []).append(outcome)
        return {name: self._metric(name, found) for name, found in outcomes.items()}

    def _metric(self, name: str, outcomes: Sequence[Outcome]) -> MetricSummary:
        scores = [o for o in outcomes if isinstance(o, Score)]
        return MetricSummary(
            name,
            sum(s.value for s in scores) / len(scores) if scores else None,
            sum(s.passed for s in scores),
            sum(not s.passed for s in scores),
            sum(isinstance(o, NotApplicable) for o in outcomes),
            sum(isinstance(o, Unmeasured) for o in outcomes),
        )

    def __getitem__(self, case_id: str) -> CaseResult:
        for result in self.results:
            if result.case_id == case_id:
                return result
        raise NotFound(f"the report has no case {case_id!r}; it has {self._ids()}.")

    def _ids(self) -> list[str]:
        return [result.case_id for result in self.results]

    def __iter__(self) -> Iterator[CaseResult]:
        return iter(self.results)

    def __len__(self) -> int:
        return len(self.results)

    def __repr__(self) -> str:
        return f"<Report of {len(self.results)} results: {self.summary.passed} passed>"

    def __str__(self) -> str:
        from greenroom.results.text import plain_text

        return plain_text(self)


def _added(counts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for count in counts:
        for name, number in count.items():
            found[name] = found.get(name, 0) + number
    return found
