"""The small protocols by which a case holds live parts, so that it need not know their rooms."""

from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from greenroom.cases.scores import Outcome
from greenroom.ledger.ledger import Ledger


class Metric(Protocol):
    """Case and ledger in, outcome out; `world` is where a judge asks its model."""

    @property
    def name(self) -> str:
        """What its column in reports is called."""
        ...

    def measure(self, case: Any, ledger: Ledger, world: Any) -> Outcome | Awaitable[Outcome]:
        """A score, or why there is none."""
        ...


MetricLike = Metric | Callable[..., object] | str | Any
"""A metric, its name, a function bound by parameter names, or an object with `evaluate(...)`."""


def metric_name(metric: MetricLike) -> str:
    """What a metric is called, before one is made of it."""
    if isinstance(metric, str):
        return metric
    return str(getattr(metric, "name", None) or getattr(metric, "__name__", repr(metric)))
