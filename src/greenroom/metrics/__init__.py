"""Case and ledger in, score out: metrics of one's own, the built-in ones, and judges."""

from greenroom.cases.parts import Metric
from greenroom.metrics.calls import called
from greenroom.metrics.counts import event_count
from greenroom.metrics.judging import judge
from greenroom.metrics.limits import completed_within, cost_within
from greenroom.metrics.metric import as_metric, metric
from greenroom.metrics.response import contains, exact, matches
from greenroom.metrics.scoring import score
from greenroom.metrics.state import state_is

__all__ = [
    "Metric",
    "as_metric",
    "called",
    "completed_within",
    "contains",
    "cost_within",
    "event_count",
    "exact",
    "judge",
    "matches",
    "metric",
    "score",
    "state_is",
]
