"""Metrics in other tools' files: a list of names next to a map of thresholds."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from greenroom.cases.criteria import Criterion, criterion_from
from greenroom.cases.fields import Fields
from greenroom.cases.files.shapes import CASE_LISTS
from greenroom.cases.problems import at, shown
from greenroom.errors import GreenroomError
from greenroom.ledger.plain import Json, is_array, is_object

RESEMBLES = "response_match_score"
TRAJECTORY = "tool_trajectory_avg_score"
_MEASURES = {TRAJECTORY: "tools", RESEMBLES: "reference"}


def listed_metrics(fields: Fields) -> list[Criterion]:
    """The metrics that `metrics` and `thresholds` ask for; one without a threshold uses its default."""
    names = fields.texts("metrics") or []
    thresholds = fields.mapping("thresholds")
    numbers: dict[str, float] = {}
    for name, value in thresholds.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            fields.remember(fields.at("thresholds", name), f"{shown(value)} should be a number")
        else:
            numbers[name] = value
    asked = dict.fromkeys([*names, *thresholds])
    return fields.part(lambda: [Criterion(name, threshold=numbers.get(name)) for name in asked], [])


def metric_lists(metrics: Sequence[object]) -> dict[str, Json]:
    """The fields for these metrics: their names, and the thresholds that are not defaults."""
    asked = [Criterion(m) if isinstance(m, str) else m for m in metrics]
    known = [criterion for criterion in asked if isinstance(criterion, Criterion)]
    thresholds: dict[str, Json] = {c.name: c.threshold for c in known if c.threshold is not None}
    data: dict[str, Json] = {"metrics": [c.name for c in known]} if known else {}
    if thresholds:
        data["thresholds"] = thresholds
    return data


def by_verdict(metric: Json) -> Json:
    """A metric's data without options that cannot change a verdict at this threshold."""
    if not is_object(metric) or metric.get("criterion") != TRAJECTORY:
        return metric
    means_exact = metric.get("match_type") == "ADK" and metric.get("threshold", 1) == 1
    kept = {k: v for k, v in metric.items() if not (means_exact and k == "match_type")}
    return TRAJECTORY if len(kept) == 1 else kept


def measure_all(metrics: Sequence[Json], case: Mapping[str, Json]) -> bool:
    """Whether the set's metrics cover everything that a case expects, so that nothing is implied."""
    names = [metric.get("criterion") if is_object(metric) else metric for metric in metrics]
    measured = {_MEASURES[name] for name in names if isinstance(name, str) and name in _MEASURES}
    turns = case.get("turns")
    expected = [turn.get("expect") for turn in turns if is_object(turn)] if is_array(turns) else []
    return all(
        measured.issuperset(expect.keys() - {"extra"}) for expect in expected if is_object(expect)
    )


def criteria_in(data: Json) -> Iterator[tuple[str, Criterion]]:
    """Every criterion that a file asks for, with its place, even if other parts of the file are wrong."""
    for place, holder in _holders(data):
        metrics, thresholds = holder.get("metrics"), holder.get("thresholds")
        for i, item in enumerate(metrics if is_array(metrics) else ()):
            with suppress(GreenroomError):  # reading the file says what is wrong with it
                yield at(place, "metrics", i), criterion_from(item, at(place, "metrics", i))
        for name, value in thresholds.items() if is_object(thresholds) else ():
            if isinstance(value, int | float) and name.strip():
                yield at(place, "thresholds", name), Criterion(name, threshold=value)


def _holders(data: Json) -> Iterator[tuple[str, dict[str, Json]]]:
    """The mappings in a file that may hold criteria: the file, its cases, and `greenroom` in both."""
    listed = [("", data)]
    known = data if is_object(data) else {}
    for name in CASE_LISTS:
        cases = known.get(name)
        listed += [(at(name, i), case) for i, case in enumerate(cases if is_array(cases) else ())]
    for i, row in enumerate(data if is_array(data) else ()):
        listed.append((f"[{i}]", row))
    for place, holder in listed:
        if is_object(holder):
            yield place, holder
            if is_object(ours := holder.get("greenroom")):
                yield at(place, "greenroom"), ours
