"""Metrics as foreign files ask for them: a list of names beside a map of thresholds."""

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom.cases.criteria import Criterion
from greenroom.cases.files.fields import Fields
from greenroom.cases.places import shown, wrong
from greenroom.ledger.plain import Json

RESEMBLES = "response_match_score"


def listed_metrics(fields: Fields) -> list[Criterion]:
    """The metrics that `metrics` and `thresholds` ask for; one without a threshold has its own."""
    names = fields.texts("metrics") or []
    thresholds = fields.mapping("thresholds")
    for name, value in thresholds.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise wrong(fields.at("thresholds", name), f"{shown(value)} should be a number")
    asked = dict.fromkeys([*names, *thresholds])
    return [Criterion(name, threshold=thresholds.get(name)) for name in asked]


def metric_lists(metrics: Sequence[Any]) -> dict[str, Json]:
    """The same again: names, and the thresholds that are not the metrics' own."""
    asked = [Criterion(m) if isinstance(m, str) else m for m in metrics]
    known = [criterion for criterion in asked if isinstance(criterion, Criterion)]
    thresholds: Mapping[str, Json] = {c.name: c.threshold for c in known if c.threshold is not None}
    data: dict[str, Json] = {"metrics": [c.name for c in known]} if known else {}
    return {**data, **({"thresholds": thresholds} if thresholds else {})}
