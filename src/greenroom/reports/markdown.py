"""A report for a comment on a pull request: the verdict, what changed, how sure, and what it cost."""

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar

from greenroom.reports.markdown_text import MOST_ROWS, block, folded, inline, table
from greenroom.reports.transcript import conversation, retold
from greenroom.reports.words import (
    at_least,
    duration,
    percent,
    price,
    rate_text,
    tokens,
)
from greenroom.results.comparisons.changes import CaseChange
from greenroom.results.comparisons.comparison import Comparison, compare
from greenroom.results.comparisons.comparison_text import NOTABLE, certainty, remarks, short_name
from greenroom.results.comparisons.families import families, shown_names
from greenroom.results.gate import Decision, held_against
from greenroom.results.redaction import redacted, redacted_decision
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.stored_results import cases_in
from greenroom.results.summary import MetricSummary, Summary
from greenroom.results.text import how_many, node_spending, reasons, repeats, spending
from greenroom.results.totals import by_case
from greenroom.results.trials import has_repeats, parting, passes, status_of, varied
from greenroom.results.words import number_of, shortened

LIMIT = 65_536
"""The longest comment that GitHub accepts, in bytes, which are never fewer than characters."""

_ROOM_FOR_NOTE = 200
_MOST_MODELS = 5
_LONGEST_REASON = 1_500


class MarkdownReport:
    """Renders a report as Markdown that fits into one comment."""

    name: ClassVar[str] = "markdown"
    file: ClassVar[str] = "eval_report.md"

    def render(
        self,
        report: Report,
        *,
        baseline: Report | None = None,
        decision: Decision | None = None,
    ) -> str:
        """Short first, details folded; `baseline` adds what changed since.

        The mark in the heading is the quality gate's: without a `decision` there is none.
        """
        clean, said = redacted(report), redacted_decision(decision)
        changes = held_against(clean, None if baseline is None else redacted(baseline), said)
        head = "\n\n".join(part for part in _head(clean, changes, said) if part)
        counts = clean.summary
        fallen = (result for result in clean.results if result.fell_short)
        return _filled(head, map(_case, fallen), counts.total - counts.passed - counts.skipped)


def render_comparison(changes: Comparison, decision: Decision | None = None) -> str:
    """Only a comparison as Markdown, without secrets; `decision` is the quality gate's verdict on it."""
    clean = compare(
        redacted(changes.baseline),
        redacted(changes.current),
        changes.threshold,
        tags=changes.tags,
        metrics=changes.gated,
    )
    said = redacted_decision(decision)
    parts = [_against(clean, said), _reasons(said), _changes(clean)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _filled(head: str, cases: Iterable[str], count: int) -> str:
    """As many cases as fit below the head, and how many do not."""
    text, room = head, LIMIT - _ROOM_FOR_NOTE - len(head.encode())
    for number, case in enumerate(cases):
        room -= len(case.encode()) + 2
        if room < 0:
            left = count - number
            noun = "case that did" if left == 1 else "cases that did"
            return f"{text}\n\n_{left} more {noun} not pass: the comment would be too long._\n"
        text += f"\n\n{case}"
    return f"{text}\n"


def _head(report: Report, changes: Comparison | None, decision: Decision | None) -> Iterator[str]:
    if changes is None:
        mark = "" if decision is None else f"{_mark(decision)} "
        yield f"### {mark}{_verdict(report)}"
        yield _reasons(decision)
    else:
        yield _against(changes, decision)
        yield _reasons(decision)
        yield _changes(changes)
        yield f"**{_verdict(report)}**"
    yield _counts(report)
    yield _spent(report, changes)
    yield _flaky(report)
    yield _metrics(report, changes)
    yield _tags(report)
    yield _nodes(report)
    if report.notes:
        yield table(["note"], [[inline(note, 400)] for note in report.notes], "notes")


def _mark(decision: Decision) -> str:
    return {0: "✅", 3: "⛔"}.get(decision.exit_code, "❌")


def _reasons(decision: Decision | None) -> str:
    """Why the quality gate failed, if it did."""
    missed = [] if decision is None else [[inline(one.why, 400)] for one in decision.missed]
    return table(["the gate failed"], missed, "reasons") if missed else ""


def _verdict(report: Report) -> str:
    """How many passed; this says nothing about the gate."""
    counts = report.summary
    name = inline(report.name or report.evalset_id)
    verdict = f"{counts.passed} of {counts.evaluated} passed"
    if not counts.evaluated:
        verdict = "nothing was evaluated"
    if counts.errors:
        verdict += f", {counts.errors} ended in an error"
    return f"{name + ': ' if name else ''}{verdict}"


def _counts(report: Report) -> str:
    cells: dict[str, str] = {
        status: str(count) for status, count in report.summary.by_status.items()
    }
    if (rate := report.pass_rate) is not None:
        cells["pass rate"] = f"**{rate_text(rate, report.interval)}**"
    return table([*cells], [[*cells.values()]], "rows")


# Against the baseline


def _against(changes: Comparison, decision: Decision | None = None) -> str:
    """The first line, which must make sense alone: whether it is worse than the baseline, and the gate's verdict."""
    mark, verdict = _compared(changes)
    if decision is None:
        return f"### {mark} {verdict}"
    # The gate may fail for a reason that a comparison does not cover.
    if decision.missed and mark not in "❌⛔":
        verdict = f"Gate missed. {verdict}"
    if decision.passed and mark != "✅":
        verdict = f"Gate passed. {verdict}"
    return f"### {_mark(decision)} {verdict}"


def _compared(changes: Comparison) -> tuple[str, str]:
    """The mark and the words for the result of the comparison alone."""
    name = _name(changes)
    if why := changes.incomparable:
        return "⛔", f"Could not be compared: {why}"
    if changes.worse:
        return "❌", f"Worse than {name}: {_worse(changes)}"
    flips = sum(case.fell for case in changes.flipped)
    counts = {"suspect": len(changes.suspects), "flip": flips}
    if open_cases := ", ".join(number_of(n, noun) for noun, n in counts.items() if n):
        return "⚠️", f"Not decided: {open_cases}"
    return "✅", f"Not significantly worse than {name}"


def _name(changes: Comparison) -> str:
    name = short_name(changes)
    return name if name == "the baseline" else inline(name)


def _worse(changes: Comparison) -> str:
    """What got worse, without names, because those follow below."""
    found: list[str] = []
    rate, cases = changes.pass_rate, len(changes.regressed)
    if rate is not None and changes.trend == "worse":
        found.append(f"pass rate {percent(rate.before, 0)} → {percent(rate.now, 0)}")
    lower = sum(one.delta < -changes.threshold for one in changes.moved.values())
    found += [f"{number_of(lower, 'metric')} lower"] if lower else []
    found += [f"{number_of(cases, 'case')} regressed"] if cases else []
    return ", ".join(found) or "a tag fell"


def _changes(changes: Comparison) -> str:
    """The pass rate and every metric then and now, then each case that changed."""
    rows = [*_rate_rows(changes), *_metric_rows(changes)]
    columns = ["", _name(changes), "this run", "change"]
    whole = table(columns, rows, "metrics") if rows else ""
    cases = [_change_row(case) for verdict in NOTABLE for case in changes.of(verdict)]
    each = table(["case", "before", "now", ""], cases, "cases") if cases else ""
    return "\n\n".join(part for part in (whole, each, _small_print(changes)) if part)


def _rate_rows(changes: Comparison) -> Iterator[list[str]]:
    rate, change = changes.pass_rate, changes.change
    if rate is None or change is None:
        return
    points = f"{_signed(100 * change.share)} points"
    between = f"({_signed(100 * change.low)} to {_signed(100 * change.high)})"
    count = number_of(len(changes.compared), "case")
    yield [
        f"pass rate ({count})",
        percent(rate.before, 0),
        percent(rate.now, 0),
        f"{points} {between}, {certainty(changes)}",
    ]


def _signed(value: float) -> str:
    """A difference with its sign; the minus is as wide as the plus."""
    return f"{round(value):+d}".replace("-", "−") if round(value) else "0"


def _metric_rows(changes: Comparison) -> Iterator[list[str]]:
    moved, shown = changes.moved, shown_names(changes.metrics)
    for name, change in changes.metrics.items():
        delta = f"{change.delta:+.2f}".replace("-", "−")
        sure = ", significant" if name in moved else ""
        yield [inline(shown[name]), f"{change.before:.2f}", f"{change.now:.2f}", f"{delta}{sure}"]


def _change_row(case: CaseChange) -> list[str]:
    name = inline(case.case_id)
    verdict: str = case.verdict
    if case.tallies is None and (why := inline(case.why, 300)):
        verdict += f": {why}"
    return [
        f"**{name}**" if case.verdict == "regressed" else name,
        _passes(case.before),
        _passes(case.now, case.again),
        verdict,
    ]


def _passes(*sides: Summary | None) -> str:
    """How many trials passed of those that were evaluated."""
    found = [side for side in sides if side is not None]
    passed, evaluated = (sum(getattr(s, n) for s in found) for n in ("passed", "evaluated"))
    return f"{passed} of {evaluated}" if evaluated else "–"


def _small_print(changes: Comparison) -> str:
    lines = [f"{line.removesuffix('.')}." for line in remarks(changes)]
    # A report's own notes are text from outside.
    lines = [inline(line, 300) if line.startswith("note on the") else line for line in lines]
    if not changes.incomparable:
        lines.append("A run without any change is called worse at most 1 time in 20.")
    return f"<sub>{' '.join(lines)}</sub>" if lines else ""


# What it used


def _spent(report: Report, changes: Comparison | None) -> str:
    # A killed process could not say how long it took.
    is_timed = report.seconds or not report.unfinished
    time = f" in {duration(report.seconds)}" if is_timed else ""
    parts = [f"{how_many(report)}{time}", *repeats(report)]
    for spent in spending(report):
        name = {"agent": "cost", "user": "users", "judge": "judges"}[spent.role]
        cost = f"{name} **{price(spent.cost)}**"
        if spent.role == "agent" and changes is not None:
            cost += f" (before: {price(changes.baseline.cost)})"
        tokens = "tokens unknown"
        if spent.usage is not None:
            tokens = f"{spent.usage.input:,} tokens in, {spent.usage.output:,} out"
        models = f"{spent.did.removeprefix('users ')} {_named(spent.models)}"
        separator = "; " if spent.role == "agent" else ", "
        parts.append(separator.join([cost, tokens, models]))
    return "; ".join(parts)


def _named(models: Mapping[str, int]) -> str:
    names = [inline(name) for name in models]
    more = [f"{len(names) - _MOST_MODELS} more"] if len(names) > _MOST_MODELS else []
    return ", ".join([*names[:_MOST_MODELS], *more])


def _flaky(report: Report) -> str:
    """The flaky cases: how often they passed, what differed, and where two trials part."""
    if not has_repeats(report):
        return ""
    rows: list[list[str]] = []
    found_in = cases_in(report)
    for facts in by_case(report):
        if status_of(facts) == "flaky":
            case_id = facts[0].case_id
            trials = found_in(case_id)
            two = parting(trials) if len(rows) < MOST_ROWS else None
            found = "; ".join([*varied(trials), *([str(two)] if two is not None else [])])
            rows.append([inline(case_id), passes(trials), inline(found, 400)])
    return table(["flaky", "passed", "what differed"], rows, "flaky cases") if rows else ""


def _metrics(report: Report, changes: Comparison | None) -> str:
    """A row for each metric; below it its variants by argument that found something, the worst first."""
    moved = changes.metrics if changes is not None else {}
    rows: list[list[str]] = []
    for found in sorted(families(report.metrics).values(), key=lambda one: _urgency(one.whole)):
        several = found.members if len(found.members) > 1 else ()
        unmet = [one for one in several if one.failed or one.unmeasured]
        for metric in (found.whole, *sorted(unmet, key=_urgency)):
            name = inline(found.name if metric is found.whole else metric.name)
            change = f"{moved[metric.name].delta:+.2f}" if metric.name in moved else "–"
            label = name if metric is found.whole else f"↳ {name}"
            row = [label, *_metric_row(metric)]
            rows.append([*row, change] if changes is not None else row)
    if not rows:
        return ""
    columns = ["metric", "mean", "passing", "not measured"]
    return table([*columns, *(["change"] if changes is not None else [])], rows, "metrics")


def _urgency(metric: MetricSummary) -> tuple[int, str]:
    return -(metric.failed + metric.unmeasured), metric.name


def _metric_row(metric: MetricSummary) -> list[str]:
    silent = {"n/a": metric.not_applicable, "unmeasured": metric.unmeasured}
    return [
        "–" if metric.mean is None else f"{metric.mean:.2f}",
        f"{metric.passed} of {metric.measured}" if metric.measured else "–",
        ", ".join(f"{count} {word}" for word, count in silent.items() if count) or "–",
    ]


def _tags(report: Report) -> str:
    found = list(report.per_tag.values())
    rows: list[list[str]] = []
    for tag in found:
        rate = "–" if tag.pass_rate is None else rate_text(tag.pass_rate, tag.interval)
        cost = [price(tag.cost)] if report.models else []
        errors = f", {number_of(tag.counts.errors, 'error')}" if tag.counts.errors else ""
        of = f"{tag.passed} of {tag.counts.evaluated}{errors}"
        rows.append([inline(tag.tag), of, rate, *cost])
    columns = ["tag", "passed", "pass rate", *(["cost"] if report.models else [])]
    return folded("By tag", table(columns, rows, "tags")) if rows else ""


def _nodes(report: Report) -> str:
    found = node_spending(report)
    rows = [
        [inline(node), f"{spent.calls:,}", *tokens(spent), at_least(spent), _named(spent.models)]
        for node, spent in found.items()
    ]
    columns = ["node", "calls", "tokens in", "tokens out", "cost", "models"]
    return folded("By node", table(columns, rows, "nodes")) if rows else ""


# One case


def _case(result: CaseResult) -> str:
    title = f" {inline(result.name)}" if result.name and result.name != result.case_id else ""
    whys = [shortened(reason, _LONGEST_REASON) for reason in reasons(result)]
    if result.blame is not None:
        whys.append(f"blame: {result.blame.whom}")
    if result.trace_id:
        whys.append(f"trace: {result.trace_link or result.trace_id}")
    lines = [*whys, "", *retold(conversation(result), first=4, last=8)]
    summary = f"<b>{result.status}</b> {inline(result.label)}{title}"
    return folded(summary, block("\n".join(lines)))
