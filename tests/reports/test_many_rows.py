"""The table of many cases: it is laid out in another way than that of few, and looks the same."""

from io import StringIO

import pytest

from greenroom import NotApplicable, Report, Score, Unmeasured
from greenroom.reports.console import ConsoleReport
from greenroom.reports.table import quick_table, summary_table
from greenroom.reports.terminal import Terminal
from greenroom.results import CaseResult
from greenroom.results.comparisons.families import families

SCORES = (
    {
        "exact": Score(1.0, passed=True),
        "a_metric_with_a_rather_long_name": Score(0.25, passed=False),
    },
    {"exact": NotApplicable("nothing expected")},
    {"exact": Unmeasured("it broke"), "a_metric_with_a_rather_long_name": Score(1.0, passed=True)},
    {},
)


def results(*ids: str) -> Report:
    return Report(
        [
            CaseResult(
                case_id=case_id,
                status="passed" if n % 2 else "failed",
                scores=SCORES[n % 4],
                ended="completed" if n % 3 else None,
                turns=n,
                seconds=n * 7.5,
            )
            for n, case_id in enumerate(ids)
        ]
    )


def lines(page: StringIO) -> list[str]:
    return [line.rstrip() for line in page.getvalue().splitlines()]


@pytest.mark.parametrize("width", [200, 80, 66])
@pytest.mark.parametrize(
    "ids",
    [
        ["a", "bb", "a-longer-name", "d"],
        ["退款", "возврат", "café", "👍 fine"],
        ["one", "[bold]no-markup[/bold]", "x" * 30, ""],
    ],
)
def test_it_looks_as_that_of_few_cases(ids, width):
    report, usual, quick = results(*ids), StringIO(), StringIO()
    terminal = Terminal(usual, width=width)
    terminal.print(summary_table(report, families(report.metrics), terminal))
    terminal = Terminal(quick, width=width)
    terminal.put(quick_table(report, families(report.metrics), terminal))
    assert lines(quick) == lines(usual)


def test_every_case_of_many_has_its_row_without_what_steers_a_terminal():
    page = StringIO()
    ids = [f"case-{n:04}" for n in range(1199)] + ["evil\x1b[2J"]
    ConsoleReport(Terminal(page, width=100), "usual").show(results(*ids))
    shown = page.getvalue()
    assert "\x1b" not in shown
    assert r"evil\x1b[2J" in shown
    rows = [line for line in lines(page)[2:] if line.startswith("case-")]
    assert [line.split()[0] for line in rows] == ids[:-1]


def test_many_rows_are_painted_where_there_are_colours(monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.delenv("NO_COLOR", raising=False)
    page = StringIO()
    terminal = Terminal(page, width=100)
    assert terminal.brush("green")[0].startswith("\x1b[")
    terminal.put(quick_table(results("a", "b"), {}, terminal))
    red, green = terminal.brush("bold red"), terminal.brush("green")
    assert f"{red[0]}failed{red[1]}" in page.getvalue()
    assert f"{green[0]}passed{green[1]}" in page.getvalue()
