"""The report for readers whose browser runs no scripts: its counts, and the cases that did not pass."""

from greenroom.reports.page.markup import Markup, tag
from greenroom.reports.page.shapes import GateLine, Head
from greenroom.reports.words import dollars, duration, shortened
from greenroom.results.report import Report
from greenroom.results.text import number_of, reasons

_MOST_FAILURES = 500
_MARKS = {
    "passed": "✓",
    "failed": "✗",
    "error": "!",
    "terminated": "■",
    "skipped": "–",
    "flaky": "≈",
}


def without_script(report: Report, head: Head) -> Markup:
    """The summary in plain HTML."""
    short = report.failures[:_MOST_FAILURES]
    rows = [
        tag(
            "tr",
            tag("th", result.label, scope="row"),
            tag("td", _pill(result.status)),
            tag("td", shortened("; ".join(reasons(result)), 600)),
        )
        for result in short
    ]
    left_out = len(report.failures) - len(short)
    table = (
        tag("table", tag("tbody", rows), class_="fallen") if rows else tag("p", "Nothing failed.")
    )
    return tag(
        "noscript",
        tag("h1", head.title),
        _gate(head.gate),
        tag("p", ", ".join(_facts(head)), class_="lead"),
        None if head.compared is None else tag("p", head.compared.says, class_="lead"),
        tag("p", [(_pill(status), f" {count} ") for status, count in head.counts.items()]),
        [tag("p", tag("b", "Note: "), note, class_="remark") for note in head.notes],
        tag("p", _NOTE, class_="remark"),
        tag("section", tag("h2", "Cases that did not pass"), table, class_="panel"),
        tag("p", f"{left_out} more did not pass.") if left_out else None,
    )


_NOTE = (
    "Scripts are switched off, so this page shows its summary and the cases that did not pass. With scripts "
    "it can also filter, search and open every case with its conversation; all of them are inside this file "
    "and nothing is loaded."
)


def _gate(gate: GateLine | None) -> list[Markup]:
    """Whether the gate opened, and why not; nothing where there was none."""
    if gate is None:
        return []
    word = "passed" if gate.passed else f"missed (exit code {gate.exit_code})"
    title = tag("p", f"Gate {word}", class_="lead gate")
    return [title, *(tag("p", why, class_="lead worse") for why in gate.missed)]


def _facts(head: Head) -> list[str]:
    cases, trials = number_of(head.cases, "case"), number_of(head.trials, "trial")
    found = [cases if head.cases == head.trials else f"{trials} of {cases}"]
    if head.rate is not None:
        found.insert(0, f"pass rate {head.rate.text}")
        found.append(f"{head.passed} of {head.evaluated} evaluated passed")
    if head.seconds:
        found.append(duration(head.seconds))
    if head.spent:
        found.append("cost unknown" if head.cost is None else f"{dollars(head.cost)} in all")
    return found


def _pill(status: str) -> Markup:
    return tag("span", f"{_MARKS[status]} {status}", class_=f"pill {status}")
