"""The table of a report: a row for each case, a column for each metric as long as there is room."""

import re
from collections.abc import Iterable, Iterator, Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.ledger.shown import harmless
from greenroom.reports.rows import Rows
from greenroom.reports.terminal import Terminal, plain, styled
from greenroom.reports.words import duration, rate_text
from greenroom.results.intervals import Interval
from greenroom.results.report import MetricSummary, Report
from greenroom.results.result import CaseResult
from greenroom.results.text import outcome_text

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold red",
    "terminated": "yellow",
    "skipped": "dim",
}

_HEADERS = (18, 10)
"""How wide a metric's name may be, tried in this order."""
_WIDEST = 200
_MANY = 500
"""A table of more rows is laid out by ourselves: the usual way takes a millisecond for each."""
_NARROWEST_COLUMN = 8
_LONGEST_LIST = 40

Metrics = Mapping[str, MetricSummary]


def show_table(report: Report, metrics: Metrics, terminal: Terminal) -> None:
    """Print case, status, metrics, turns and time of every result."""
    if len(report.results) <= _MANY:
        terminal.print(summary_table(report, metrics, terminal))
    else:
        terminal.put(quick_table(report, metrics, terminal))


def summary_table(report: Report, metrics: Metrics, terminal: Terminal) -> Table:
    """Case, status, metrics, turns and time of every result."""
    room = min(terminal.width, _WIDEST)
    for header in _HEADERS if len(metrics) * _NARROWEST_COLUMN < room else ():
        columns = {name: _header(name, header) for name in metrics}
        table = _table(report, terminal, columns)
        if terminal.needed(table) <= room:
            return table
    return _table(report, terminal, None)


def _table(report: Report, terminal: Terminal, metrics: Mapping[str, Text] | None) -> Table:
    """With a column for each of `metrics`, or with one that counts them when there are too many."""
    table = Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )
    for name in ("case", "status"):
        table.add_column(name, overflow="fold", vertical="bottom")
    for header in [Text("metrics")] if metrics is None else metrics.values():
        table.add_column(header, no_wrap=True, vertical="bottom")
    for name in ("turns", "time"):
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for result in report.results:
        table.add_row(*_row(result, terminal, metrics))
    return table


def quick_table(report: Report, metrics: Metrics, terminal: Terminal) -> Iterator[str]:
    """The same as lines, laid out by ourselves; the first column gives way where there is no room."""
    room = min(terminal.width, _WIDEST)
    for header in _HEADERS if len(metrics) * _NARROWEST_COLUMN < room else ():
        columns = {name: _header(name, header) for name in metrics}
        rows = _rows(report, terminal, columns)
        if rows.width <= room:
            return rows.lines(terminal)
    return _rows(report, terminal, None).lines(terminal)


def _rows(report: Report, terminal: Terminal, metrics: Mapping[str, Text] | None) -> Rows:
    headers = [Text("metrics")] if metrics is None else metrics.values()
    titles = ["case", "status", *(header.plain for header in headers), "turns", "time"]
    rows = Rows([title.split("\n") for title in titles], right=2)
    for result in report.results:
        rows.add([(cell.plain, str(cell.style)) for cell in _row(result, terminal, metrics)])
    return rows


def _row(result: CaseResult, terminal: Terminal, metrics: Iterable[str] | None) -> Iterator[Text]:
    yield styled(result.label, "")
    yield Text(result.status, STYLES[result.status])
    if metrics is None:
        yield _counted(result, terminal)
    else:
        yield from (_cell(result.scores.get(name), terminal) for name in metrics)
    yield Text(str(result.turns) if result.ended else "–")
    yield Text(duration(result.seconds) if result.ended else "–")


def _cell(outcome: Outcome | None, terminal: Terminal) -> Text:
    return Text() if outcome is None else shown_outcome(outcome, terminal)


def shown_outcome(outcome: Outcome, terminal: Terminal) -> Text:
    """An outcome in a word, with its mark."""
    match outcome:
        case Score():
            style = STYLES["passed" if outcome.passed else "failed"]
            return Text(f"{outcome_text(outcome)} {_mark(outcome.passed, terminal)}", style)
        case Unmeasured():
            return Text(outcome_text(outcome), "yellow")
        case _:
            return Text(outcome_text(outcome), "dim")


def _counted(result: CaseResult, terminal: Terminal) -> Text:
    measured = result.measured.values()
    good = sum(score.passed for score in measured)
    unmeasured = sum(isinstance(outcome, Unmeasured) for outcome in result.scores.values())
    if unmeasured and not measured:
        return Text(f"{unmeasured} unmeasured", "yellow")
    words = Text(f"{good} of {len(measured)} {_mark(True, terminal)}")
    return words.append(f", {unmeasured} unmeasured", "yellow") if unmeasured else words


def _mark(good: bool, terminal: Terminal) -> str:
    if terminal.is_ascii:
        return "ok" if good else "no"
    return "✓" if good else "✗"


def _header(name: str, widest: int) -> Text:
    """A metric's name, broken where its words end rather than where the column does."""
    lines = [""]
    for piece in re.findall(r"[^\s_.,(-]*[\s_.,(-]?", harmless(name)):
        for start in range(0, len(piece), widest):
            chunk = piece[start : start + widest]
            if len(lines[-1]) + len(chunk) > widest:
                lines.append("")
            lines[-1] += chunk
    return Text("\n".join(lines))


def metric_summaries(metrics: Metrics) -> Iterator[Text]:
    """A line for each metric over all cases; of very many, for those that found something."""
    told = metrics
    if len(metrics) > _LONGEST_LIST:
        told = {name: found for name, found in metrics.items() if found.failed or found.unmeasured}
    width = max((len(harmless(name)) for name in told), default=0)
    for name, found in told.items():
        yield plain(Text(harmless(name).ljust(width), "bold"), "  ", _summary(found))
    if len(told) < len(metrics):
        yield Text(f"{len(metrics) - len(told)} other metrics found nothing amiss", "dim")


def _summary(summary: MetricSummary) -> Text:
    measured = summary.passed + summary.failed
    words: list[str | Text] = []
    if summary.mean is not None:
        share = rated(summary.passed / measured)
        words += [f"mean {summary.mean:.2f}, ", share, f" passing ({summary.passed} of {measured})"]
    words += [f", {n} {word}" for word, n in _silent(summary).items() if n]
    return plain(*words) if measured else Text(plain(*words).plain.removeprefix(", "))


def _silent(summary: MetricSummary) -> dict[str, int]:
    return {"not applicable": summary.not_applicable, "unmeasured": summary.unmeasured}


def rated(share: float, interval: Interval | None = None) -> Text:
    """A share in percent, in the colour it deserves, with how sure it is where that is known."""
    style = "green" if share >= 0.95 else "yellow" if share >= 0.8 else "red"
    return Text(rate_text(share, interval), style)
