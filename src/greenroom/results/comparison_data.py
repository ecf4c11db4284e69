"""A comparison as JSON, for other programs."""

from collections.abc import Sequence
from typing import get_args

from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor
from greenroom.results.changes import CaseChange, MetricChange, Verdict
from greenroom.results.comparison import METRICS_ALPHA, SET_ALPHA, Comparison
from greenroom.results.exact import ALPHA
from greenroom.results.intervals import Interval
from greenroom.results.power import POWER
from greenroom.results.report import Report, Summary

VERSION = 1
KIND = "comparison"


def comparison_data(comparison: Comparison) -> dict[str, Json]:
    """The comparison as JSON, without secrets."""
    data: dict[str, Json] = {
        "version": VERSION,
        "kind": KIND,
        "threshold": comparison.threshold,
        "alpha": {"set": SET_ALPHA, "metrics": METRICS_ALPHA, "case": ALPHA},
        "baseline": _report_data(comparison.baseline),
        "current": _report_data(comparison.current),
        "trend": comparison.trend,
        "verdict": comparison.verdict,
        "p": comparison.p,
        "change": _interval_data(comparison.change),
        "worse": [missed.why for missed in comparison.worse],
        "undecided": [missed.why for missed in comparison.undecided],
        "incomparable": comparison.incomparable,
        "detectable": {"change": comparison.detectable, "power": POWER},
        "pass_rate": _change_data(comparison.pass_rate),
        "cost": _change_data(comparison.cost),
        "seconds": _change_data(comparison.seconds),
        "counts": {verdict: len(comparison.of(verdict)) for verdict in get_args(Verdict)},
        "metrics": _metrics_data(list(comparison.metrics.values())),
        "moved": list(comparison.moved),
        "tags": {tag: _tag_data(found) for tag, found in comparison.per_tag.items()},
        "cases": [_case_data(case) for case in comparison.cases],
    }
    return redactor().value(data)


def _interval_data(change: Interval | None) -> dict[str, Json] | None:
    if change is None:
        return None
    return {"share": change.share, "low": change.low, "high": change.high, "level": 0.95}


def _tag_data(found: Comparison) -> dict[str, Json]:
    return {
        "cases": len(found.compared),
        "trend": found.trend,
        "p": found.p,
        "pass_rate": _change_data(found.pass_rate),
        "change": _interval_data(found.change),
    }


def _report_data(report: Report) -> dict[str, Json]:
    return {
        "id": report.id,
        "evalset_id": report.evalset_id,
        "name": report.name,
        "at": report.at,
        "counts": _counts_data(report.summary),
        "pass_rate": report.pass_rate,
        "cost": report.cost,
    }


def _case_data(case: CaseChange) -> dict[str, Json]:
    return {
        "case_id": case.case_id,
        "verdict": case.verdict,
        "why": case.why,
        "before": None if case.before is None else _counts_data(case.before),
        "now": None if case.now is None else _counts_data(case.now),
        "again": None if case.again is None else _counts_data(case.again),
        "metrics": _metrics_data(list(case.metrics.values())),
        "p": case.p,
        "adjusted": case.adjusted,
        "cost": _change_data(case.cost),
        "seconds": _change_data(case.seconds),
        "known": case.known,
    }


def _metrics_data(changes: Sequence[MetricChange]) -> dict[str, Json]:
    return {change.name: _change_data(change) for change in changes}


def _change_data(change: MetricChange | None) -> dict[str, Json] | None:
    if change is None:
        return None
    data: dict[str, Json] = {
        "before": change.before,
        "now": change.now,
        "delta": change.delta,
        "p": change.p,
        "cases": change.cases,
    }
    return data


def _counts_data(counts: Summary) -> dict[str, Json]:
    return {
        "total": counts.total,
        "passed": counts.passed,
        "failed": counts.failed,
        "errors": counts.errors,
        "terminated": counts.terminated,
        "skipped": counts.skipped,
    }
