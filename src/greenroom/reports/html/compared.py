"""The part of the page about what changed since the baseline, and how sure that is."""

from collections.abc import Iterator, Sequence
from urllib.parse import quote

from greenroom.reports.html.markup import Markup, tag
from greenroom.reports.html.overview import level, pill
from greenroom.reports.words import dollars, duration, percent
from greenroom.results.comparison import CaseChange, Comparison, MetricChange, Verdict
from greenroom.results.comparison_text import NOTABLE, called, certainty, rates, remarks
from greenroom.results.report import Summary

_MOST = 200
_NOTABLE = 0.005
_TITLES: dict[Verdict, str] = {
    "regressed": "Regressed",
    "suspect": "Suspects",
    "flipped": "Flipped, one trial each",
    "flaky": "Flaky",
    "unclear": "Unclear",
    "changed": "Changed cases, not comparable",
    "improved": "Improved",
    "added": "New",
    "removed": "Removed",
}


def compared(found: Comparison) -> Markup:
    """What got worse or better, was added or removed, each with its differences."""
    unchanged, moved = len(found.of("unchanged")), rates(found)
    whole = f"pass rate {moved}: {certainty(found)}" if moved else certainty(found)
    return tag(
        "section",
        tag("h2", "Compared with the baseline", id="compared"),
        tag("p", list(_totals(found)), class_="lead"),
        tag("p", f"{whole[:1].upper()}{whole[1:]}.", class_="lead dim"),
        [tag("p", missed.why, class_="lead worse") for missed in found.worse],
        [tag("p", line, class_="dim") for line in remarks(found)],
        [_list(verdict, cases) for verdict in NOTABLE if (cases := found.of(verdict))],
        tag("p", f"{unchanged} unchanged", class_="dim") if unchanged else None,
        class_="panel compared",
        aria_labelledby="compared",
    )


def _totals(found: Comparison) -> Iterator[Markup | str]:
    """Pass rate, cost and time then and now, as far as both are known."""
    baseline, current = found.baseline, found.current
    yield tag("span", f"against {called(found)}", class_="dim")
    if (rate := found.pass_rate) is not None:
        yield " · pass rate "
        yield tag("b", percent(rate.before), class_=level(rate.before))
        yield " → "
        yield tag("b", percent(rate.now), class_=level(rate.now))
    if current.models and current.cost is not None and baseline.cost is not None:
        yield f" · cost {dollars(baseline.cost)} → {dollars(current.cost)}"
    if current.seconds and baseline.seconds:
        yield f" · time {duration(baseline.seconds)} → {duration(current.seconds)}"


def _list(verdict: Verdict, cases: Sequence[CaseChange]) -> Markup:
    rows = [_row(case) for case in cases[:_MOST]]
    left_out = len(cases) - len(rows)
    more = tag("p", f"{left_out} more are not shown here.", class_="dim") if left_out else None
    summary = tag("summary", tag("h3", f"{_TITLES[verdict]} ", tag("b", str(len(cases)))))
    body = tag("table", tag("tbody", rows))
    first = verdict in ("regressed", "suspect", "flipped")
    return tag("details", summary, body, more, open=first, class_=f"changed {verdict}")


def _row(case: CaseChange) -> Markup:
    link = f"#case={quote(case.case_id, safe='', errors='replace')}"
    both = case.before is not None and case.now is not None
    again = ["again ", *_side(case.again)] if case.again is not None else None
    moved = [change for change in case.metrics.values() if abs(change.delta) >= _NOTABLE]
    return tag(
        "tr",
        tag("th", tag("a", case.case_id, href=link) if case.now else case.case_id, scope="row"),
        tag("td", _side(case.before), " → " if both else None, _side(case.now), again),
        tag("td", [_moved(change) for change in moved], tag("span", case.why, class_="dim")),
    )


def _side(counts: Summary | None) -> list[Markup]:
    """Each status, with how many trials had it where there were several."""
    if counts is None:
        return []
    several = counts.total > 1
    return [
        tag("span", f"{count} × " if several else None, pill(status), " ")
        for status, count in counts.by_status.items()
        if count
    ]


def _moved(change: MetricChange) -> Markup:
    sign = "−" if change.delta < 0 else "+"
    words = f"{change.name} {change.before:.2f} → {change.now:.2f} ({sign}{abs(change.delta):.2f})"
    return tag("span", words, class_=f"moved {'worse' if change.delta < 0 else 'better'}")
