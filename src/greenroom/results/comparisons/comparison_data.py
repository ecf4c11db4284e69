"""A comparison as JSON, for other programs. Greenroom itself never reads it."""

from typing import get_args

from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor
from greenroom.results.comparisons.changes import CaseChange, MetricChange, Verdict
from greenroom.results.comparisons.comparison import METRICS_ALPHA, SET_ALPHA, Comparison
from greenroom.results.comparisons.comparison_text import replayed_in
from greenroom.results.report import Report
from greenroom.results.statistics.exact import ALPHA
from greenroom.results.statistics.intervals import Interval
from greenroom.results.statistics.power import POWER
from greenroom.results.summary import Summary
from greenroom.results.wire import CountsData, to_data

VERSION = 1
KIND = "comparison"


def comparison_data(comparison: Comparison) -> dict[str, Json]:
    """The comparison as JSON, without secrets."""
    data: dict[str, Json] = {
        "version": VERSION,
        "kind": KIND,
        "threshold": comparison.threshold,
        "alpha": {"set": SET_ALPHA, "metrics": METRICS_ALPHA, "case": ALPHA},
        "baseline": _report(comparison.baseline),
        "current": _report(comparison.current),
        "trend": comparison.trend,
        "verdict": comparison.verdict,
        "p": comparison.p,
        "change": _interval(comparison.change),
        "worse": [missed.why for missed in comparison.worse],
        "undecided": [missed.why for missed in comparison.undecided],
        "incomparable": comparison.incomparable,
        "detectable": {"change": comparison.detectable, "power": POWER},
        "pass_rate": _change(comparison.pass_rate),
        "cost": _change(comparison.cost),
        "seconds": _change(comparison.seconds),
        "counts": {verdict: len(comparison.of(verdict)) for verdict in get_args(Verdict)},
        "metrics": {name: _change(change) for name, change in comparison.metrics.items()},
        "moved": list(comparison.moved),
        **({"remade": [*remade]} if (remade := comparison.remade) else {}),
        "tags": {tag: _tag(found) for tag, found in comparison.per_tag.items()},
        "cases": [_case(case) for case in comparison.cases],
    }
    return redactor().document(data)


def _report(report: Report) -> dict[str, Json]:
    return {
        **_named(report, "id", "evalset_id", "name", "at"),
        "counts": _counts(report.summary),
        **_named(report, "pass_rate", "cost"),
        **({"replayed": count} if (count := replayed_in(report)) else {}),
    }


def _tag(found: Comparison) -> dict[str, Json]:
    return {
        "cases": len(found.compared),
        **_named(found, "trend", "p"),
        "pass_rate": _change(found.pass_rate),
        "change": _interval(found.change),
    }


def _case(case: CaseChange) -> dict[str, Json]:
    return {
        **_named(case, "case_id", "verdict", "why"),
        "before": _counts(case.before),
        "now": _counts(case.now),
        "again": _counts(case.again),
        "metrics": {name: _change(change) for name, change in case.metrics.items()},
        **_named(case, "p", "adjusted"),
        "cost": _change(case.cost),
        "seconds": _change(case.seconds),
        "known": case.known,
        **({"unlike": case.unlike} if case.unlike else {}),
    }


def _change(change: MetricChange | None) -> dict[str, Json] | None:
    return change and _named(change, "before", "now", "delta", "p", "cases")


def _interval(change: Interval | None) -> dict[str, Json] | None:
    return change and {**_named(change, "share", "low", "high"), "level": 0.95}


def _counts(counts: Summary | None) -> dict[str, Json] | None:
    return counts and to_data(CountsData.of(counts))


def _named(source: object, *names: str) -> dict[str, Json]:
    """These attributes of an object."""
    return {name: getattr(source, name) for name in names}
