"""The top of the page, with or without scripts: counts, charts, notes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from greenroom.reports.html.charts import counts_bar, histogram, share_bar
from greenroom.reports.html.markup import Markup, joined, tag
from greenroom.reports.words import (
    at_least,
    dollars,
    duration,
    percent,
    rate_text,
    shortened,
    tokens,
)
from greenroom.results.breakdown import TagSummary
from greenroom.results.gate import Decision
from greenroom.results.intervals import Interval
from greenroom.results.report import MetricSummary, Report
from greenroom.results.text import how_many, node_spending, reasons, repeats, spending

_MOST_METRICS, _MOST_TAGS, _MOST_NODES, _MOST_FAILURES = 60, 60, 100, 500
_MARKS = {"passed": "✓", "failed": "✗", "error": "!", "terminated": "■", "skipped": "–"}


def level(share: float) -> str:
    """The class by which a share is coloured."""
    return "good" if share >= 0.95 else "fair" if share >= 0.8 else "poor"


def pill(status: str) -> Markup:
    """A status as a word and a mark, so that it can be read without the colour."""
    return tag("span", f"{_MARKS[status]} {status}", class_=f"pill {status}")


def overview(report: Report, decision: Decision | None = None) -> Markup:
    """What the gate said, the counts, and what it all took."""
    counts = report.summary.by_status
    words = ", ".join(f"{count} {name}" for name, count in counts.items() if count) or "no cases"
    key = [tag("li", pill(name), " ", tag("b", str(n))) for name, n in counts.items() if n]
    tiles = [_rate_tile(report), *_spent_tiles(report)]
    return tag(
        "section",
        tag("h2", "Summary", class_="unseen", id="summary"),
        _gate(decision),
        tag("div", tiles, class_="tiles"),
        tag("div", counts_bar(counts, words), class_="whole"),
        tag("ul", key, class_="key"),
        [tag("p", tag("b", "Note: "), note, class_="remark") for note in report.notes],
        class_="overview",
        aria_labelledby="summary",
    )


def _gate(decision: Decision | None) -> Markup | None:
    """Whether the gate opened, and why not; nothing where there was none."""
    if decision is None:
        return None
    kind, mark = ("passed", "✓") if decision.passed else ("failed", "✗")
    word = "passed" if decision.passed else f"missed (exit code {decision.exit_code})"
    title = tag("p", tag("span", f"{mark} Gate {word}", class_=f"pill {kind}"), class_="lead gate")
    return joined(title, [tag("p", one.why, class_="lead worse") for one in decision.missed])


def _tile(label: str, value: str | Markup, more: str = "", class_: str = "") -> Markup:
    small = tag("span", more, class_="more") if more else None
    return tag(
        "div",
        tag("span", label, class_="label"),
        tag("b", value, class_=class_ or None),
        small,
        class_="tile",
    )


def _rate_tile(report: Report) -> Markup:
    summary, rate = report.summary, report.pass_rate
    if rate is None:
        return _tile("pass rate", "nothing evaluated")
    of = f"{summary.passed} of {summary.evaluated} evaluated"
    return _tile("pass rate", rate_text(rate, report.interval), of, f"big {level(rate)}")


def _spent_tiles(report: Report) -> list[Markup]:
    tiles = [_tile("run", how_many(report), ", ".join(repeats(report)))]
    if report.seconds:
        tiles.append(_tile("time", duration(report.seconds)))
    for spent in spending(report):
        name = {"agent": "agent", "user": "users", "judge": "judges"}[spent.role]
        cost = "cost unknown" if spent.cost is None else dollars(spent.cost)
        usage = spent.usage
        tokens = "" if usage is None else f"{usage.input:,} in, {usage.output:,} out · "
        tiles.append(_tile(name, cost, tokens + shortened(", ".join(spent.models), 120)))
    return tiles


def began_at(report: Report) -> Markup | None:
    """When the run began, if it is known."""
    if report.at is None:
        return None
    try:
        when = datetime.fromtimestamp(report.at, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    return tag("time", f"{when:%Y-%m-%d %H:%M} UTC", datetime=when.isoformat(timespec="seconds"))


# Metrics and tags


def metric_charts(report: Report, numbers: Mapping[str, int]) -> Markup | None:
    """A line for each metric: how many passed, its mean, and how its values are spread."""
    metrics = list(report.metrics.values())
    if not metrics:
        return None
    values: dict[str, list[float]] = {}
    for result in report.results:
        for name, score in result.measured.items():
            values.setdefault(name, []).append(score.value)
    # The worst first; those that measured nothing last.
    ranked = sorted(metrics, key=lambda m: (m.passed / m.measured if m.measured else 2.0, m.name))
    shown = ranked[:_MOST_METRICS]
    rows = [_metric(found, values.get(found.name, []), numbers[found.name]) for found in shown]
    head = ("metric", "passing", "", "mean", "spread")
    left_out = _left_out(len(metrics) - len(shown), "metrics")
    return _panel("metrics", "Metrics", _table(head, rows, "metric-rows"), left_out)


def _metric(found: MetricSummary, values: Sequence[float], number: int) -> Markup:
    name = _named(found.name, "metric", number)
    silent = {"n/a": found.not_applicable, "unmeasured": found.unmeasured}
    apart = ", ".join(f"{count} {word}" for word, count in silent.items() if count)
    if not found.measured or found.mean is None:
        return tag("tr", name, tag("td", apart or "nothing measured", colspan=4, class_="dim"))
    share = found.passed / found.measured
    spread = f"scores of {found.name} from {found.min:.2f} to {found.max:.2f}"
    of = f"{found.passed}/{found.measured}" + (f" · {apart}" if apart else "")
    return tag(
        "tr",
        name,
        tag("td", share_bar(share, level(share), f"{percent(share)} passing"), class_="chart"),
        tag("td", _rated(share), " ", tag("span", of, class_="dim")),
        tag("td", f"{found.mean:.2f}", class_="number"),
        tag("td", histogram(values, spread), class_="chart"),
    )


def _rated(share: float, interval: Interval | None = None) -> Markup:
    return tag("b", rate_text(share, interval), class_=level(share))


def tag_charts(report: Report, numbers: Mapping[str, int]) -> Markup | None:
    """A line for each tag: how many of its cases passed, and what they cost."""
    tags = list(report.per_tag.values())
    if not tags:
        return None
    priced = bool(report.models)
    rows = [_tag(found, numbers[found.tag], priced) for found in tags[:_MOST_TAGS]]
    head = ("tag", "passing", "", *(("cost",) if priced else ()))
    left_out = _left_out(len(tags) - len(rows), "tags")
    return _panel("tags", "Tags", _table(head, rows, "tag-rows"), left_out)


def _tag(found: TagSummary, number: int, priced: bool) -> Markup:
    label = _named(found.tag, "tag", number)
    spent = "unknown" if found.cost is None else dollars(found.cost)
    cost = tag("td", spent, class_="number") if priced else None
    rate, counts = found.pass_rate, found.counts
    if rate is None:
        silent = f"nothing evaluated of {found.total}"
        return tag("tr", label, tag("td", silent, colspan=2, class_="dim"), cost)
    of = tag("span", f"{counts.passed}/{counts.evaluated}", class_="dim")
    return tag(
        "tr",
        label,
        tag("td", share_bar(rate, level(rate), f"{percent(rate)} passing"), class_="chart"),
        tag("td", _rated(rate, found.interval), " ", of),
        cost,
    )


def node_table(report: Report) -> Markup | None:
    """A line for each node of the agent that asked models: how often, with how many tokens, for how much."""
    nodes = node_spending(report)
    rows = [
        tag(
            "tr",
            tag("th", shortened(node, 200), scope="row"),
            [
                tag("td", cell, class_="number")
                for cell in (f"{spent.calls:,}", *tokens(spent), at_least(spent))
            ],
            tag("td", shortened(", ".join(spent.models), 120), class_="dim"),
        )
        for node, spent in [*nodes.items()][:_MOST_NODES]
    ]
    if not rows:
        return None
    head = ("node", "calls", "tokens in", "tokens out", "cost", "models")
    left_out = _left_out(len(nodes) - len(rows), "nodes")
    return _panel("nodes", "Nodes", _table(head, rows, "node-rows"), left_out)


def _named(name: str, kind: str, number: int) -> Markup:
    """A name that the script turns into a filter, by its number."""
    return tag("th", tag("span", name, class_="name", data_kind=kind, data_n=number), scope="row")


def _left_out(count: int, noun: str) -> Markup | None:
    return tag("p", f"{count} more {noun} are not shown here.", class_="dim") if count > 0 else None


def _panel(id: str, title: str, *inside: Markup | None) -> Markup:
    heading = tag("h2", title, id=id)
    return tag("section", heading, inside, class_="panel", aria_labelledby=id)


def _table(head: Sequence[str], rows: Sequence[Markup], class_: str) -> Markup:
    cells = [tag("th", name, scope="col") if name else tag("td") for name in head]
    body = tag("tbody", rows)
    table = tag("table", tag("thead", tag("tr", cells)), body, class_=class_)
    # A table wider than its panel scrolls, which must work with the keyboard as well.
    return tag("div", table, class_="scroll", tabindex="0", role="group", aria_label=f"{head[0]}s")


def without_script(report: Report) -> Markup:
    """For readers whose browser runs no script: the cases that did not pass, and why."""
    short = report.failures[:_MOST_FAILURES]
    rows = [
        tag(
            "tr",
            tag("th", result.label, scope="row"),
            tag("td", pill(result.status)),
            tag("td", shortened("; ".join(reasons(result)), 600)),
        )
        for result in short
    ]
    note = tag(
        "p",
        "Scripts are switched off, so this page shows its summary and the cases that did not pass. "
        "With scripts it can also filter, search and open every case with its conversation; all of them "
        "are inside this file and nothing is loaded.",
        class_="remark",
    )
    left_out = _left_out(len(report.failures) - len(short), "cases that did not pass")
    head = ("case", "status", "why")
    listed = _table(head, rows, "fallen") if rows else tag("p", "Nothing failed.")
    return tag("noscript", note, _panel("fallen", "Cases that did not pass", listed, left_out))
