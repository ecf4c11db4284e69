"""Metrics without their arguments: `called('refund')` and `called('cancel', never=True)` both belong to `called`.

A report lists one line for each; the arguments are details. Results keep the whole name, so that two
reports of the same cases can be compared whichever version wrote them.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from math import fsum

from msgspec import Struct

from greenroom.results.summary import MetricSummary

_CALL = re.compile(r"([^\W\d]\w*)\(.*(?:\)|…)", re.DOTALL)


class Family(Struct, frozen=True):
    """All metrics made by the same function, taken together."""

    name: str
    whole: MetricSummary
    members: Sequence[MetricSummary]


@lru_cache(maxsize=4096)
def family(metric: str) -> str:
    """The name of a metric without its arguments; a name without arguments unchanged."""
    found = _CALL.fullmatch(metric) if "(" in metric else None
    return found[1] if found else metric


def families(metrics: Mapping[str, MetricSummary]) -> dict[str, Family]:
    """The metrics of a report by their names without arguments, in their order."""
    found: dict[str, list[MetricSummary]] = {}
    for name, summary in metrics.items():
        found.setdefault(family(name), []).append(summary)
    return {
        name: Family(name, _together(name, members), members) for name, members in found.items()
    }


def shown_names(metrics: Iterable[str]) -> dict[str, str]:
    """The short name of each metric: without arguments, unless another metric has the same."""
    names = list(metrics)
    alike = Counter(map(family, names))
    return {name: family(name) if alike[family(name)] == 1 else name for name in names}


def _together(name: str, members: Sequence[MetricSummary]) -> MetricSummary:
    if len(members) == 1:
        return members[0]
    measured = [member for member in members if member.mean is not None]
    count = sum(member.measured for member in measured)
    sums = fsum((member.mean or 0.0) * member.measured for member in measured)
    lows, highs = _known(m.min for m in measured), _known(m.max for m in measured)
    return MetricSummary(
        name,
        sums / count if count else None,
        sum(member.passed for member in members),
        sum(member.failed for member in members),
        sum(member.not_applicable for member in members),
        sum(member.unmeasured for member in members),
        min(lows, default=None),
        max(highs, default=None),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
