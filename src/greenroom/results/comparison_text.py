"""A comparison for readers: as plain text, and as JSON for other programs."""

from collections.abc import Iterator, Sequence
from typing import get_args

from greenroom.ledger.plain import Json
from greenroom.ledger.redaction import redactor, without_secrets
from greenroom.results.changes import CaseChange, MetricChange, Verdict
from greenroom.results.comparison import Comparison
from greenroom.results.exact import ALPHA
from greenroom.results.power import POWER
from greenroom.results.report import Report, Summary
from greenroom.results.text import number_of

VERSION = 1
KIND = "comparison"

TOLD: tuple[Verdict, ...] = ("regressed", "unclear", "changed", "improved", "added", "removed")
"""The verdicts that are worth a line, in the order of their weight."""


def comparison_text(comparison: Comparison) -> str:
    """What changed, a line a case, and how sure that is; without secrets."""
    return without_secrets("\n".join(_lines(comparison)))


def _lines(comparison: Comparison) -> Iterator[str]:
    told = comparison.of(*TOLD)
    width = max((len(case.case_id) for case in told), default=0)
    for verdict in TOLD:
        for case in comparison.of(verdict):
            yield f"{verdict:<9}  {case.case_id:<{width}}  {' '.join(case.why.split())}".rstrip()
    for change in comparison.metrics.values():
        if abs(change.delta) > 1e-9:
            yield f"mean of {change.name}: {shown_change(change)}"
    yield from _spent(comparison)
    yield counted(comparison)
    yield certainty(comparison)
    if unknown := sum(not case.known for case in comparison.compared):
        yield f"whether {number_of(unknown, 'case')} ask for the same as before is unknown"
    for side, report in (("baseline", comparison.baseline), ("report", comparison.current)):
        if report.unfinished:
            yield f"note on the {side}: {report.unfinished}"


def _spent(comparison: Comparison) -> Iterator[str]:
    """What a trial cost and how long it took, where that changed by more than luck explains."""
    cost, seconds = comparison.cost, comparison.seconds
    if cost is not None and _told_apart(cost):
        yield f"cost of a trial: ${cost.before:.4f} before, ${cost.now:.4f} now"
    if seconds is not None and _told_apart(seconds):
        yield f"seconds a trial: {seconds.before:.2f} before, {seconds.now:.2f} now"


def _told_apart(change: MetricChange) -> bool:
    return change.p is not None and change.p <= ALPHA


def counted(comparison: Comparison) -> str:
    """How many cases went which way."""
    counts = {verdict: len(comparison.of(verdict)) for verdict in get_args(Verdict)}
    told = [f"{count} {verdict}" for verdict, count in counts.items() if count]
    return f"{number_of(len(comparison.cases), 'case')} against the baseline: {', '.join(told) or 'none'}"


def certainty(comparison: Comparison) -> str:
    """Where the pass rates of the compared cases went, and how likely that is by luck alone."""
    p, compared = comparison.p, len(comparison.compared)
    if p is None:
        return "no case was evaluated on both sides, so nothing can be said of the whole"
    if comparison.trend == "same":
        return f"the pass rates of {number_of(compared, 'case')} that compare are the same"
    verdict = {
        "better": "better than luck explains",
        "worse": "worse than luck explains",
        "unclear": "unclear: luck alone may explain it",
    }[comparison.trend]
    test = "permutation" if comparison.repeated else "exact sign"
    told = f"over {number_of(compared, 'case')} that compare: {verdict} ({test} test, p = {p:.2g})"
    return f"{told}{_noticeable(comparison)}"


def _noticeable(comparison: Comparison) -> str:
    """The smallest change that would have been seen, where it was not."""
    least = comparison.detectable
    if least is None or comparison.trend != "unclear":
        return ""
    return f"; so many cases would show a change of {100 * least:.0f} points four times in five"


def shown_change(change: MetricChange) -> str:
    """A mean then and now, with its difference."""
    return f"{change.before:.2f} before, {change.now:.2f} now ({change.delta:+.2f})"


def comparison_data(comparison: Comparison) -> dict[str, Json]:
    """The comparison as JSON, without secrets."""
    data: dict[str, Json] = {
        "version": VERSION,
        "kind": KIND,
        "threshold": comparison.threshold,
        "alpha": ALPHA,
        "baseline": _report_data(comparison.baseline),
        "current": _report_data(comparison.current),
        "trend": comparison.trend,
        "verdict": comparison.verdict,
        "p": comparison.p,
        "detectable": {"change": comparison.detectable, "power": POWER},
        "pass_rate": _change_data(comparison.pass_rate),
        "cost": _change_data(comparison.cost),
        "seconds": _change_data(comparison.seconds),
        "counts": {verdict: len(comparison.of(verdict)) for verdict in get_args(Verdict)},
        "metrics": _metrics_data(list(comparison.metrics.values())),
        "cases": [_case_data(case) for case in comparison.cases],
    }
    return redactor().value(data)


def _report_data(report: Report) -> dict[str, Json]:
    return {
        "id": report.id,
        "evalset_id": report.evalset_id,
        "name": report.name,
        "at": report.at,
        "counts": _counts_data(report.summary),
        "pass_rate": report.summary.pass_rate,
        "cost": report.cost,
    }


def _case_data(case: CaseChange) -> dict[str, Json]:
    return {
        "case_id": case.case_id,
        "verdict": case.verdict,
        "why": case.why,
        "before": None if case.before is None else _counts_data(case.before),
        "now": None if case.now is None else _counts_data(case.now),
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
