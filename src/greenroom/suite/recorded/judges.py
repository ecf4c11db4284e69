"""Which metrics measured a recorded run, its own and those of its cases, by digests that change with them."""

from dataclasses import replace

from greenroom.cases.criteria import criterion_from
from greenroom.cases.parts import metric_name
from greenroom.cases.reader import case_from
from greenroom.errors import BadInput, BadMetric
from greenroom.ledger.plain import Json, is_object
from greenroom.metrics import as_metric
from greenroom.metrics.scores import metrics_for
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.store.runs import Plan
from greenroom.suite.storage.identity import data_digest, metric_digest


def run_judges(report: Report, plan: Plan) -> set[tuple[str, str]]:
    """The names and digests of all metrics that measured a run: those in its plan, and its cases' own."""
    found = {*plan.metrics.items()}
    for trials in report.by_case().values():
        # All trials of a case have its metrics; one that never ran may not say which.
        known = next((one for one in trials if one.kept is not None), trials[0])
        found.update(trial_judges(known, plan).items())
    return found


def trial_judges(result: CaseResult, plan: Plan) -> dict[str, str]:
    """The digests of the metrics that measured a trial, by name; on equal names its case's own count."""
    try:
        data = result.case or {}
    except BadInput:  # its ledger is lost, or cannot be read
        data = {}
    if not data:
        return {**plan.metrics}
    case = case_from(data, "the recorded case", live=True)
    expectations = metrics_for(replace(case, metrics=()))
    own = data.get("metrics")
    return {
        **plan.metrics,
        **{name: metric_digest(metric) for name, metric in expectations.items()},
        **dict(map(_own, own if isinstance(own, list | tuple) else ())),
    }


def _own(recorded: Json) -> tuple[str, str]:
    """The name and the digest of a case's metric, as it was recorded."""
    if is_object(recorded) and "criterion" not in recorded:
        return str(recorded.get("name")), data_digest(recorded)  # code, or an object of Greenroom
    criterion = criterion_from(recorded, "the recorded metric")
    try:
        metric = as_metric(criterion)
    except BadMetric:  # not installed here, or its judge is not known here
        return metric_name(criterion), data_digest(recorded)
    return metric.name, metric_digest(metric)
