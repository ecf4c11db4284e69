"""Several agents on the same cases, side by side."""

from collections.abc import Mapping

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from greenroom.ledger.redaction import without_secrets
from greenroom.reports.table import STYLES, rated
from greenroom.reports.terminal import styled
from greenroom.reports.words import price
from greenroom.results.report import Report
from greenroom.results.result import CaseResult


def variants_table(reports: Mapping[str, Report]) -> Table:
    """A row for each case, a column for each agent, and their pass rates and costs below; without secrets."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, header_style="bold")
    table.add_column("case", overflow="fold")
    for agent in reports:
        table.add_column(styled(without_secrets(agent), "bold"), overflow="fold")
    by_case = [report.by_case() for report in reports.values()]
    for case_id in dict.fromkeys(name for found in by_case for name in found):
        ended = [_ended(found.get(case_id, [])) for found in by_case]
        table.add_row(styled(without_secrets(case_id), ""), *ended)
    table.add_section()
    rates = [(report.pass_rate, report.interval) for report in reports.values()]
    table.add_row("passing", *("–" if rate is None else rated(rate, how) for rate, how in rates))
    table.add_row("cost", *(price(report.cost) for report in reports.values()))
    return table


def _ended(results: list[CaseResult]) -> Text:
    """How the trials of a case ended: one by its status, several as a share."""
    if len(results) <= 1:
        return Text(results[0].status, STYLES[results[0].status]) if results else Text("–")
    good = sum(result.passed for result in results)
    style = STYLES["passed" if good == len(results) else "failed"]
    return Text(f"{good} of {len(results)} passed", style)
