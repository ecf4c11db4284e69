"""The table of a report: a row for each case, a column for each metric if there is room.

Where cases ran several times, a row says how many of the trials passed and what differed between them.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from rich.box import SIMPLE_HEAD
from rich.cells import cell_len, chop_cells
from rich.table import Table
from rich.text import Text

from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.ledger.safe_text import harmless, on_one_line
from greenroom.reports.terminal import Terminal, plain, styled
from greenroom.reports.words import duration, rate_text
from greenroom.results.comparisons.families import Family, families, family
from greenroom.results.endings import EVALUATED
from greenroom.results.report import Report
from greenroom.results.result import CaseResult
from greenroom.results.statistics.intervals import Interval, of_trials
from greenroom.results.summary import MetricSummary
from greenroom.results.trials import Trials, passes, status_of, varied
from greenroom.results.words import outcome_text, shortened

STYLES = {
    "passed": "green",
    "failed": "bold red",
    "error": "bold red",
    "terminated": "yellow",
    "skipped": "dim",
    "flaky": "bold yellow",
}

_HEADERS = (18, 10)
"""How wide a metric's name may be, tried in this order."""
_WIDEST = 200
_MANY = 500
"""Longer tables are laid out without rich, which takes a millisecond per row."""
_NARROWEST_COLUMN = 8
_LONGEST_LIST = 40
_MOST_MEMBERS = 10
_LONGEST_VARIED = 80

_BETWEEN = "  "
_NARROWEST = 8
_RULE = "─-"

Metrics = Mapping[str, Family]
Cell = tuple[str, str]
"""A string and its style."""
Brush = Callable[[str], tuple[str, str]]


def show_table(report: Report, terminal: Terminal) -> None:
    """Print case, status, metrics, turns and time of every result."""
    metrics = families(report.metrics)
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
    """The table with a column for each of `metrics`, or with one that counts them if there are too many."""
    table = _empty_table()
    for name in ("case", "status"):
        table.add_column(name, overflow="fold", vertical="bottom")
    for header in [Text("metrics")] if metrics is None else metrics.values():
        table.add_column(header, no_wrap=True, vertical="bottom")
    for name in ("turns", "time"):
        table.add_column(name, justify="right", no_wrap=True, vertical="bottom")
    for result in report.results:
        table.add_row(*_row(result, terminal, metrics))
    return table


def _empty_table() -> Table:
    return Table(
        box=SIMPLE_HEAD,
        show_edge=False,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        header_style="bold",
    )


def quick_table(report: Report, metrics: Metrics, terminal: Terminal) -> Iterator[str]:
    """The table as lines, laid out without rich; the first column shrinks if there is no room."""
    room = min(terminal.width, _WIDEST)
    for header in _HEADERS if len(metrics) * _NARROWEST_COLUMN < room else ():
        columns = {name: _header(name, header) for name in metrics}
        rows = _rows(report, terminal, columns)
        if rows.width <= room:
            return rows.lines(terminal)
    return _rows(report, terminal, None).lines(terminal)


def _rows(report: Report, terminal: Terminal, metrics: Mapping[str, Text] | None) -> "Rows":
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
        yield _counted(result.scores, terminal)
    else:
        found: dict[str, dict[str, Outcome]] = {name: {} for name in metrics}
        for name, outcome in result.scores.items():
            if (short := family(name)) in found:
                found[short][name] = outcome
        for outcomes in found.values():
            cell = _cell(outcomes, terminal)
            yield cell.append(" replaced") if result.replaced.keys() & outcomes else cell
    yield Text(str(result.turns) if result.ended else "–")
    yield Text(duration(result.seconds) if result.ended else "–")


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


def _cell(outcomes: Mapping[str, Outcome], terminal: Terminal) -> Text:
    """The outcome of the metrics of one name; several with different arguments are counted."""
    if not outcomes:
        return Text()
    if len(outcomes) == 1:
        return shown_outcome(next(iter(outcomes.values())), terminal)
    return _counted(outcomes, terminal)


def _counted(outcomes: Mapping[str, Outcome], terminal: Terminal) -> Text:
    measured = [outcome for outcome in outcomes.values() if isinstance(outcome, Score)]
    good = sum(score.passed for score in measured)
    unmeasured = sum(isinstance(outcome, Unmeasured) for outcome in outcomes.values())
    if unmeasured and not measured:
        return Text(f"{unmeasured} unmeasured", "yellow")
    words = Text(f"{good} of {len(measured)} {_mark(True, terminal)}")
    return words.append(f", {unmeasured} unmeasured", "yellow") if unmeasured else words


def _mark(good: bool, terminal: Terminal) -> str:
    if terminal.is_ascii:
        return "ok" if good else "no"
    return "✓" if good else "✗"


def _header(name: str, widest: int) -> Text:
    """A metric's name, wrapped between its words instead of at the column's edge."""
    lines = [""]
    for piece in re.findall(r"[^\s_.,(-]*[\s_.,(-]?", harmless(name)):
        for start in range(0, len(piece), widest):
            chunk = piece[start : start + widest]
            if len(lines[-1]) + len(chunk) > widest:
                lines.append("")
            lines[-1] += chunk
    return Text("\n".join(lines))


def metric_summaries(metrics: Metrics, *, whole: bool = False) -> Iterator[tuple[Text, Text]]:
    """A line for each metric over all cases, and for its variants by argument that found something.

    If there are very many metrics, only those that found something are listed. `whole` lists all variants.
    """
    shown = metrics
    if len(metrics) > _LONGEST_LIST:
        shown = {name: found for name, found in metrics.items() if _found_something(found.whole)}
    for name, found in shown.items():
        yield Text(harmless(name), "bold"), _summary(found.whole)
        members = found.members if len(found.members) > 1 else ()
        listed = [member for member in members if whole or _found_something(member)]
        for member in listed if whole else listed[:_MOST_MEMBERS]:
            yield Text(f"  {harmless(member.name)}"), _summary(member)
        if not whole and len(listed) > _MOST_MEMBERS:
            yield Text(f"  {len(listed) - _MOST_MEMBERS} more found something", "dim"), Text()
    if len(shown) < len(metrics):
        yield Text(f"{len(metrics) - len(shown)} other metrics found no problem", "dim"), Text()


def _found_something(summary: MetricSummary) -> bool:
    return bool(summary.failed or summary.unmeasured)


def _summary(summary: MetricSummary) -> Text:
    measured = summary.passed + summary.failed
    words: list[str | Text] = []
    if summary.mean is not None:
        share = rated(summary.passed / measured)
        words += [f"mean {summary.mean:.2f}, ", share, f" passing ({summary.passed} of {measured})"]
    silent = {"not applicable": summary.not_applicable, "unmeasured": summary.unmeasured}
    words += [f", {n} {word}" for word, n in silent.items() if n]
    return plain(*words) if measured else Text(plain(*words).plain.removeprefix(", "))


def rated(share: float, interval: Interval | None = None) -> Text:
    """A share in percent, coloured by how good it is, with its interval where that is known."""
    style = "green" if share >= 0.95 else "yellow" if share >= 0.8 else "red"
    return Text(rate_text(share, interval), style)


# Several trials of a case


def trials_table(report: Report, terminal: Terminal) -> None:
    """Print a row for each case: how many of its trials passed, how sure that is, and what differed."""
    rows = [_trials_row(trials) for trials in report.by_case().values()]
    titles = _TRIALS
    if not any(row[-1] for row in rows):
        titles, rows = titles[:-1], [row[:-1] for row in rows]
    if len(rows) > _MANY:
        lines = Rows([[title] for title in titles], right=0)
        for row in rows:
            lines.add([(cell.plain, str(cell.style)) for cell in row])
        terminal.put(lines.lines(terminal))
        return
    table = _empty_table()
    for title in titles:
        is_number = title in ("turns", "time")
        keeps = title not in ("case", _TRIALS[-1])
        justify = "right" if is_number else "left"
        table.add_column(title, overflow="fold", no_wrap=keeps, justify=justify, vertical="top")
    for row in rows:
        table.add_row(*row)
    terminal.print(table)


_TRIALS = ("case", "status", "passed", "rate", "turns", "time", "what differed")


def _trials_row(trials: Trials) -> list[Text]:
    status, ran = status_of(trials), [result for result in trials if result.ended]
    evaluated = [result for result in trials if result.status in EVALUATED]
    interval = of_trials(sum(result.passed for result in trials), len(evaluated))
    turns = sorted({result.turns for result in ran})
    mean = sum(result.seconds for result in ran) / len(ran) if ran else None
    return [
        styled(on_one_line(trials[0].case_id), ""),
        Text(status, STYLES[status]),
        Text(passes(trials)),
        Text("–") if interval is None else rated(interval.share, interval),
        Text("–".join(map(str, dict.fromkeys(turns[:1] + turns[-1:]))) or "–"),
        Text("–" if mean is None else duration(mean)),
        styled(shortened(", ".join(varied(trials)), _LONGEST_VARIED), ""),
    ]


# Many rows


class Rows:
    """Rows of a long table, each cell measured once; the last `right` columns are flush right."""

    def __init__(self, titles: Sequence[Sequence[str]], right: int = 0) -> None:
        self._titles = titles
        self._rows: list[Sequence[Cell]] = []
        self._widths = [max(map(cell_len, lines)) for lines in titles]
        self._right = len(titles) - right

    def add(self, row: Sequence[Cell]) -> None:
        """Add a row."""
        self._rows.append(row)
        for place, (text, _) in enumerate(row):
            if (width := _length(text)) > self._widths[place]:
                self._widths[place] = width

    @property
    def width(self) -> int:
        """How wide the table is if there is room."""
        return sum(self._widths) + len(_BETWEEN) * (len(self._widths) - 1)

    def lines(self, terminal: Terminal) -> Iterator[str]:
        """The table, coloured for a terminal; the first column wraps if it is too narrow."""
        widths, brush = list(self._widths), lru_cache(terminal.brush)
        if (over := self.width - terminal.width) > 0:
            widths[0] = min(widths[0], max(widths[0] - over, _NARROWEST))
        height = max(map(len, self._titles))
        for number in range(height):
            texts = [(["" for _ in range(height - len(t))] + [*t])[number] for t in self._titles]
            yield self._line([(text, "bold") for text in texts], widths, brush)
        yield _RULE[terminal.is_ascii] * (sum(widths) + len(_BETWEEN) * (len(widths) - 1))
        for (text, style), *rest in self._rows:
            *above, last = self._folded(text, widths[0])
            yield from above
            yield self._line([(last, style), *rest], widths, brush)

    def _folded(self, text: str, width: int) -> list[str]:
        if _length(text) <= width:
            return [text]
        return [piece for line in text.split("\n") for piece in chop_cells(line, width) or [""]]

    def _line(self, cells: Sequence[Cell], widths: Sequence[int], brush: Brush) -> str:
        shown: list[str] = []
        for place, (text, style) in enumerate(cells):
            padding = " " * (widths[place] - _length(text))
            before, behind = brush(style) if style and text else ("", "")
            painted = f"{before}{text}{behind}"
            shown.append(f"{padding}{painted}" if place >= self._right else f"{painted}{padding}")
        return _BETWEEN.join(shown).rstrip(" ")


def _length(text: str) -> int:
    """How many cells the longest line takes."""
    if text.isascii() and "\n" not in text:
        return len(text)
    return max(map(cell_len, text.split("\n")))
