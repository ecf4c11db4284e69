"""Built-in metrics behind the forms in which a case or a run may give them."""

from collections.abc import Collection

from greenroom.cases.criteria import Criterion
from greenroom.cases.parts import MetricLike
from greenroom.metrics.builtin import BuiltIn
from greenroom.metrics.definition import as_metric


def built_in(metric: MetricLike, names: Collection[str]) -> BuiltIn | None:
    """The built-in metric that this is, wraps, or asks for by one of these names."""
    if isinstance(metric, Criterion):
        if metric.name not in names:
            return None
        metric = as_metric(metric)
    found = getattr(metric, "inner", metric)
    return found if isinstance(found, BuiltIn) else None
