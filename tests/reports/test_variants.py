"""Several agents on the same cases, as one table."""

from io import StringIO

from greenroom.reports.terminal import Terminal
from greenroom.reports.variants import variants_table
from greenroom.results import CaseResult, Report


def rows(**reports: list[CaseResult]) -> list[list[str]]:
    terminal = Terminal(StringIO())
    terminal.print(variants_table({name: Report(results) for name, results in reports.items()}))
    lines = terminal.file.getvalue().splitlines()  # pyright: ignore[reportAttributeAccessIssue]
    return [cells for line in lines if (cells := line.split()) and "─" not in line]


def result(case_id: str, status, trial: int = 1, **fields) -> CaseResult:
    return CaseResult(case_id=case_id, status=status, trial=trial, **fields)


def test_each_agent_has_a_column_and_each_case_a_row():
    shown = rows(
        old=[result("one", "passed"), result("two", "failed")],
        new=[result("one", "error"), result("three", "passed")],
    )
    assert shown == [
        ["case", "old", "new"],
        ["one", "passed", "error"],
        ["two", "failed", "–"],
        ["three", "–", "passed"],
        ["passing", "50", "%", "±", "41", "100.0", "%"],
        ["cost", "$0.00", "$0.00"],
    ]


def test_trials_are_a_share_and_an_unknown_price_is_unknown():
    trials = [result("one", "passed"), result("one", "failed", 2, ended="completed", cost=None)]
    shown = rows(old=trials, new=[result("one", "terminated")])
    assert ["one", "1", "of", "2", "passed", "terminated"] in shown
    assert ["cost", "unknown", "$0.00"] in shown
