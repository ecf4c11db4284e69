"""The counts of a report: how its cases ended, and what one metric found in all of them."""

from collections.abc import Mapping
from typing import get_args

from msgspec import Struct

from greenroom.results.endings import Status

_STATUSES: tuple[Status, ...] = get_args(Status)


class Summary(Struct, frozen=True):
    """How many cases ended in each status."""

    total: int = 0
    passed: int = 0
    failed: int = 0
    errors: int = 0
    terminated: int = 0
    skipped: int = 0

    @classmethod
    def of(cls, total: int, counts: Mapping[str, int]) -> "Summary":
        """The summary of `total` results, from the number in each status."""
        return cls(total, *[counts.get(status, 0) for status in _STATUSES])

    @property
    def by_status(self) -> dict[str, int]:
        """The counts by status, in their usual order."""
        counts = (self.passed, self.failed, self.errors, self.terminated, self.skipped)
        return dict(zip(_STATUSES, counts, strict=True))

    @property
    def evaluated(self) -> int:
        """The denominator of the pass rate: without errors and skipped trials, with those stopped at a limit."""
        return self.passed + self.failed + self.terminated

    @property
    def pass_rate(self) -> float | None:
        """The share of evaluated cases that passed; None when nothing was evaluated."""
        return self.passed / self.evaluated if self.evaluated else None


class MetricSummary(Struct, frozen=True):
    """One metric over all cases; cases that it could not measure are counted separately."""

    name: str
    mean: float | None
    passed: int
    failed: int
    not_applicable: int
    unmeasured: int
    min: float | None = None
    max: float | None = None

    @property
    def measured(self) -> int:
        """How many cases it gave a score."""
        return self.passed + self.failed
