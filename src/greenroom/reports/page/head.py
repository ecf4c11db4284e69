"""A report as the head of its page: counts, rates, what it took, and what is worth a look first."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from greenroom.cases.scores import Score
from greenroom.reports.page.compared import compared_head
from greenroom.reports.page.rows import status_counts
from greenroom.reports.page.shapes import (
    GateLine,
    Head,
    MetricLine,
    NodeLine,
    Rate,
    Reason,
    Row,
    Spent,
    Steady,
    TagLine,
)
from greenroom.reports.words import rate_text, shortened
from greenroom.results.breakdown import TagSummary
from greenroom.results.comparison import Comparison
from greenroom.results.families import families, family
from greenroom.results.gate import Decision
from greenroom.results.intervals import Interval
from greenroom.results.report import MetricSummary, Report
from greenroom.results.result import CaseResult
from greenroom.results.text import node_spending, reasons, spending

_MOST_LINES, _MOST_NODES, _MOST_REASONS = 60, 100, 12
_LONGEST_REASON = 200
_BINS = 10


def head_of(
    report: Report,
    rows: Sequence[Row],
    *,
    title: str = "",
    changes: Comparison | None = None,
    decision: Decision | None = None,
) -> Head:
    """The head of a page about this report; `rows` are its cases as the list has them."""
    summary, rate = report.summary, report.pass_rate
    return Head(
        title=title or report.name or report.evalset_id or "Evaluation report",
        run=report.id,
        evalset=report.evalset_id,
        begun=report.at,
        seconds=report.seconds,
        cases=len(rows),
        trials=summary.total,
        counts=status_counts(rows),
        passed=summary.passed,
        evaluated=summary.evaluated,
        rate=None if rate is None else rate_data(rate, report.interval),
        steady=_steady(report),
        cost=report.spent,
        spent=spent_data(report),
        metrics=metric_lines(report),
        tags=[tag_line(found) for found in [*report.per_tag.values()][:_MOST_LINES]],
        nodes=_nodes(report),
        why=why_lines(report.results),
        notes=list(report.notes),
        gate=gate_line(decision),
        compared=None if changes is None else compared_head(changes),
        left_out=_left_out(report),
        choices=choices(rows),
    )


def rate_data(share: float, interval: Interval | None) -> Rate:
    """A pass rate with its interval, where that is known."""
    text = rate_text(share, interval)
    if interval is None:
        return Rate(share=share, text=text)
    return Rate(share=share, text=text, low=interval.low, high=interval.high)


def _steady(report: Report) -> Steady | None:
    """How likely all trials of a case pass; None where there is only one."""
    tried = [case.counts.evaluated for case in report.per_case.values() if case.counts.evaluated]
    k = min(tried, default=0)
    share = report.all_of(k) if k > 1 else None
    return None if share is None else Steady(k=k, share=share)


def spent_data(whose: Report | CaseResult) -> list[Spent]:
    """What each role spent; one that asked no model is left out."""
    return [
        Spent(
            role=one.role,
            models={shortened(name, 120): times for name, times in one.models.items()},
            cost=one.cost,
            tokens=None if one.usage is None else (one.usage.input, one.usage.output),
        )
        for one in spending(whose)
    ]


def gate_line(decision: Decision | None) -> GateLine | None:
    """What the gate said; None where there was none."""
    if decision is None:
        return None
    missed = [one.why for one in decision.missed]
    return GateLine(passed=decision.passed, exit_code=decision.exit_code, missed=missed)


# Metrics, tags, nodes


def metric_lines(report: Report) -> list[MetricLine]:
    """A line for each metric without its arguments, the worst first; those that measured nothing last."""
    values: dict[str, list[float]] = {}
    for result in report.results:
        for name, score in result.measured.items():
            values.setdefault(family(name), []).append(score.value)
    found = families(report.metrics).values()
    ranked = sorted(found, key=lambda one: _rank(one.whole))[:_MOST_LINES]
    lines: list[MetricLine] = []
    for one in ranked:
        line = _metric(one.whole, one.name)
        line.bins = _spread(values.get(one.name, []))
        if len(one.members) > 1 or one.members[0].name != one.name:
            members = sorted(one.members, key=_rank)[:_MOST_LINES]
            line.members = [_metric(member, member.name) for member in members]
        lines.append(line)
    return lines


def _rank(found: MetricSummary) -> tuple[float, str]:
    return (found.passed / found.measured if found.measured else 2.0), found.name


def _metric(found: MetricSummary, name: str) -> MetricLine:
    return MetricLine(
        name=name,
        passed=found.passed,
        measured=found.measured,
        not_applicable=found.not_applicable,
        unmeasured=found.unmeasured,
        mean=found.mean,
        low=found.min,
        high=found.max,
    )


def _spread(values: Iterable[float]) -> list[int]:
    bins = [0] * _BINS
    for value in values:
        bins[max(min(int(value * _BINS), _BINS - 1), 0)] += 1
    return bins


def tag_line(found: TagSummary) -> TagLine:
    """A tag with how many of its trials passed, and what they cost."""
    rate, counts = found.pass_rate, found.counts
    return TagLine(
        name=found.tag,
        total=counts.total,
        passed=counts.passed,
        evaluated=counts.evaluated,
        rate=None if rate is None else rate_data(rate, found.interval),
        cost=found.cost,
    )


def _nodes(report: Report) -> list[NodeLine]:
    return [
        NodeLine(
            node=shortened(node, 200),
            calls=spent.calls,
            models=list(spent.models)[:20],
            tokens=None if spent.usage is None else (spent.usage.input, spent.usage.output),
            cost=spent.cost,
            known_cost=spent.known_cost,
        )
        for node, spent in [*node_spending(report).items()][:_MOST_NODES]
    ]


def _left_out(report: Report) -> dict[str, int]:
    lines = {"metrics": len(families(report.metrics)), "tags": len(report.per_tag)}
    found = {name: count - _MOST_LINES for name, count in lines.items()}
    found["nodes"] = len(node_spending(report)) - _MOST_NODES
    return {name: count for name, count in found.items() if count > 0}


# Why, and what can be chosen


def why_lines(results: Iterable[CaseResult]) -> list[Reason]:
    """Equal reasons together, where several trials share one; the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for result in results:
        if result.fell_short:
            counts[_first_reason(result), result.status] += 1
    frequent = counts.most_common(_MOST_REASONS)
    return [Reason(text=t, status=s, count=n) for (t, s), n in frequent if t and n > 1]


def _first_reason(result: CaseResult) -> str:
    """Why it fell short, without what only this trial has to say."""
    if result.error is not None:
        return next((line for line in reasons(result)), "")[:_LONGEST_REASON]
    for name, outcome in result.scores.items():
        if isinstance(outcome, Score) and not outcome.passed:
            reason = outcome.reason or "below its threshold"
            return shortened(f"{family(name)}: {reason.splitlines()[0]}", _LONGEST_REASON)
    return next((line for line in reasons(result)), "")[:_LONGEST_REASON]


def choices(rows: Iterable[Row]) -> dict[str, dict[str, int]]:
    """What a list of these rows can be narrowed to besides a status, and how many cases each lists."""
    counts: Mapping[str, Counter[str]] = {
        "tag": Counter(),
        "metric": Counter(),
        "change": Counter(),
    }
    for row in rows:
        counts["tag"].update(row.tags)
        counts["metric"].update(row.missed)
        if row.change:
            counts["change"][row.change] += 1
    return {kind: dict(found.most_common()) for kind, found in counts.items() if found}
