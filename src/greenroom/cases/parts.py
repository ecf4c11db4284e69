"""The small protocols by which a case holds live parts, so that it need not import their packages."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from greenroom.cases.scores import Outcome
from greenroom.ledger.ledger import Ledger


class Metric(Protocol):
    """A metric: measures a case's ledger; `world` is where a judge asks its model."""

    @property
    def name(self) -> str:
        """The name of its column in reports."""
        ...

    def measure(self, case: Any, ledger: Ledger, world: Any) -> Outcome | Awaitable[Outcome]:
        """Measure the trial: a score, or why there is none."""
        ...


MetricLike = Metric | Callable[..., object] | str | Any
"""A metric, its name, a function bound by parameter names, or an object with `evaluate(...)`."""


def metric_name(metric: MetricLike) -> str:
    """The name of a metric, before it is converted to one."""
    if isinstance(metric, str):
        return metric
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", repr(metric)))
