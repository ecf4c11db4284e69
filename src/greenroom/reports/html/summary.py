"""The report for readers whose browser runs no scripts: all figures, and the cases that did not pass."""

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

from greenroom.reports.page.markup import Markup, Part, tag
from greenroom.reports.page.shapes import (
    CaseMoved,
    Compared,
    GateLine,
    Head,
    Verdicts,
)
from greenroom.reports.words import at_least, duration, price
from greenroom.results.result import CaseResult
from greenroom.results.statistics.intervals import percent
from greenroom.results.text import reasons
from greenroom.results.words import dollars, number_of, shortened

_MOST_FAILURES = 500
_MARKS = {
    "passed": "✓",
    "failed": "✗",
    "error": "!",
    "terminated": "■",
    "skipped": "–",
    "flaky": "≈",
}
_NOTE = (
    "Scripts are switched off, so this page shows its summary and the cases that did not pass. With scripts "
    "it can also filter, search and open every case with its conversation; all of them are inside this file "
    "and nothing is loaded."
)


def without_script(results: Iterable[CaseResult], head: Head) -> Markup:
    """The summary in plain HTML."""
    return tag(
        "noscript",
        tag("h1", head.title),
        _begun(head.begun),
        _gate(head.gate),
        tag("p", ", ".join(_facts(head)), class_="lead"),
        tag("p", [(_pill(status), f" {count} ") for status, count in head.counts.items()]),
        [tag("p", tag("b", "Note: "), note, class_="remark") for note in head.notes],
        tag("p", _NOTE, class_="remark"),
        None if head.compared is None else _compared(head.compared),
        _models(head),
        _metrics(head),
        _tags(head),
        _nodes(head),
        _fallen(results),
    )


# The whole run


def _begun(at: float | None) -> Markup | None:
    """When the run began, if it is known."""
    if at is None:
        return None
    try:
        when = datetime.fromtimestamp(at, UTC)
    except (OverflowError, OSError, ValueError):
        return None
    shown = tag("time", f"{when:%Y-%m-%d %H:%M} UTC", datetime=when.isoformat(timespec="seconds"))
    return tag("p", shown)


def _gate(gate: GateLine | None) -> list[Markup]:
    """Whether the quality gate passed, and why not; nothing without a gate."""
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
    else:
        found.append("nothing evaluated")
    if head.steady is not None:
        found.append(f"pass^{head.steady.k} {percent(head.steady.share)}")
    if head.seconds:
        found.append(duration(head.seconds))
    if head.spent:
        found.append("cost unknown" if head.cost is None else f"{dollars(head.cost)} in total")
    return found


# What changed since the baseline


def _compared(found: Compared) -> Markup:
    """What changed, how sure that is, and the cases of each verdict."""
    return _panel(
        "Compared with the baseline",
        tag("p", " · ".join(_then_and_now(found)), class_="lead"),
        tag("p", found.says, class_="lead"),
        [tag("p", why, class_="lead worse") for why in found.worse],
        [tag("p", line, class_="dim") for line in found.remarks],
        [_verdict(one) for one in found.verdicts],
        tag("p", f"{found.unchanged} unchanged", class_="dim") if found.unchanged else None,
    )


def _then_and_now(found: Compared) -> Iterable[str]:
    """Cost and time of both runs, as far as they are known."""
    yield f"against {found.against}"
    if found.cost is not None:
        yield f"total cost {' → '.join(map(dollars, found.cost))}"
    if found.seconds is not None:
        yield f"time {' → '.join(map(duration, found.seconds))}"


def _verdict(found: Verdicts) -> list[Markup | None]:
    title = tag("h3", f"{found.verdict.capitalize()}: {found.count}")
    rows = [_moved_case(case) for case in found.cases]
    return [title, tag("table", tag("tbody", rows)), _left_out(found.count - len(rows), "cases")]


def _moved_case(case: CaseMoved) -> Markup:
    sides = [_trials(side) for side in (case.before, case.now) if side]
    again = [f", again {_trials(case.again)}"] if case.again else []
    whys: list[str] = []
    for change in case.metrics:
        delta = f"{change.now - change.before:+.2f}".replace("-", "−")
        whys.append(f"{change.name} {change.before:.2f} → {change.now:.2f} ({delta})")
    whys += [case.why] if case.why else []
    return _row(case.id, [" → ".join(sides), again], "; ".join(whys))


def _trials(counts: dict[str, int]) -> str:
    several = sum(counts.values()) > 1
    return ", ".join(f"{count} × {name}" if several else name for name, count in counts.items())


# What it took, metrics, tags, nodes


def _models(head: Head) -> Markup | None:
    """What each role spent, and on which models."""
    names = {"agent": "agent", "user": "users", "judge": "judges"}
    rows = [
        _row(names[one.role], *_tokens(one.tokens), price(one.cost), ", ".join(one.models))
        for one in head.spent
    ]
    return _table("Models", ("role", "tokens in", "tokens out", "cost", "models"), rows)


def _metrics(head: Head) -> Markup | None:
    rows: list[Markup] = []
    for line in head.metrics:
        silent = {"n/a": line.not_applicable, "unmeasured": line.unmeasured}
        apart = ", ".join(f"{count} {word}" for word, count in silent.items() if count)
        if not line.measured:
            rows.append(_row(line.name, "nothing measured", apart, "", "", ""))
            continue
        share, of = percent(line.passed / line.measured), f"{line.passed}/{line.measured}"
        values = ("" if n is None else f"{n:.2f}" for n in (line.mean, line.low, line.high))
        rows.append(_row(line.name, share, f"{of} · {apart}" if apart else of, *values))
    more = _left_out(head.left_out.get("metrics", 0), "metrics")
    return _table("Metrics", ("metric", "passing", "", "mean", "from", "to"), rows, more)


def _tags(head: Head) -> Markup | None:
    priced = any(one.role == "agent" for one in head.spent)
    rows: list[Markup] = []
    for line in head.tags:
        share, of = "nothing evaluated", f"of {line.total}"
        if line.rate is not None:
            share, of = line.rate.text, f"{line.passed}/{line.evaluated}"
        rows.append(_row(line.name, share, of, *([price(line.cost)] if priced else [])))
    more = _left_out(head.left_out.get("tags", 0), "tags")
    return _table("Tags", ("tag", "passing", "", *(["agent's cost"] if priced else [])), rows, more)


def _nodes(head: Head) -> Markup | None:
    rows = [
        _row(
            line.node,
            f"{line.calls:,}",
            *_tokens(line.tokens),
            at_least(line),
            ", ".join(line.models),
        )
        for line in head.nodes
    ]
    more = _left_out(head.left_out.get("nodes", 0), "nodes")
    heads = ("node", "calls", "tokens in", "tokens out", "cost", "models")
    return _table("Nodes of the agent", heads, rows, more)


def _tokens(tokens: tuple[int, int] | None) -> tuple[str, str]:
    return ("unknown", "unknown") if tokens is None else (f"{tokens[0]:,}", f"{tokens[1]:,}")


# The cases


def _fallen(results: Iterable[CaseResult]) -> Markup:
    fallen = [result for result in results if result.fell_short]
    short = fallen[:_MOST_FAILURES]
    rows = [
        _row(result.label, _pill(result.status), shortened("; ".join(reasons(result)), 600))
        for result in short
    ]
    title = "Cases that did not pass"
    more = _left_out(len(fallen) - len(short), "trials that did not pass")
    shown = _table(title, ("case", "status", "why"), rows, more, class_="fallen")
    return shown or _panel(title, tag("p", "Nothing failed."))


def _pill(status: str) -> Markup:
    return tag("span", f"{_MARKS[status]} {status}", class_=f"pill {status}")


# Panels and tables


def _panel(title: str, *inside: Part) -> Markup:
    return tag("section", tag("h2", title), inside, class_="panel")


def _table(
    title: str,
    heads: Sequence[str],
    rows: Sequence[Markup],
    more: Markup | None = None,
    class_: str | None = None,
) -> Markup | None:
    """A panel with a table; nothing where there are no rows."""
    if not rows:
        return None
    cells = [tag("th", name, scope="col") if name else tag("td") for name in heads]
    top = tag("thead", tag("tr", cells))
    return _panel(title, tag("table", top, tag("tbody", rows), class_=class_), more)


def _row(name: str, *cells: Part) -> Markup:
    return tag("tr", tag("th", name, scope="row"), [tag("td", cell) for cell in cells])


def _left_out(count: int, noun: str) -> Markup | None:
    return tag("p", f"{count} more {noun} are not shown here.", class_="dim") if count > 0 else None
