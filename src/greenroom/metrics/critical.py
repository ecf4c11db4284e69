"""A metric on which the others depend: when it fails, they are not measured."""

from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.parts import Metric
from greenroom.cases.scores import NotApplicable, Outcome, Score
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record


@record
class Critical:
    """Another metric, measured before those that are not critical."""

    inner: Metric
    critical = True

    @property
    def name(self) -> str:
        """The name of the metric inside."""
        return self.inner.name

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Any:
        """What the metric inside makes of this run."""
        return self.inner.measure(case, ledger, world)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as when a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)


def is_critical(metric: Metric) -> bool:
    """Whether a metric says of itself that the others depend on it."""
    return bool(getattr(metric, "critical", False))


def falls_short(outcome: Outcome) -> bool:
    """Whether an outcome is a failure, or none at all where one was due."""
    if isinstance(outcome, Score):
        return not outcome.passed
    return not isinstance(outcome, NotApplicable)
