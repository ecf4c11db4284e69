"""What each node of the agent spent, in every kind of report."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest

from browser.trees import index
from greenroom import Agent, Case, Report, Scripted, rehearse
from greenroom.ledger import Spending, Usage
from greenroom.metrics import contains
from greenroom.models import ModelReply
from greenroom.reports.console import ConsoleReport, Detail
from greenroom.reports.html import render_html
from greenroom.reports.markdown import MarkdownReport
from greenroom.reports.terminal import Terminal
from greenroom.results import CaseResult
from greenroom.store import Store
from reports.payloads import PAYLOADS


def speaks(text: str, usage: Usage | None, cost: float | None) -> Scripted:
    return Scripted(then=lambda _: ModelReply(text, (), usage, cost, "test", "m-1"))


def played(store: Any = False, keep_ledgers: bool = True) -> Report:
    agent = Agent("clerk", model=speaks("Hm.", Usage(1200, 30), 0.5)) >> Agent(
        "closer", model=speaks("Done.", None, None)
    )
    cases = [Case(name, says="Hi", metrics=[contains("Done")]) for name in ("a", "b")]
    return rehearse(agent, cases, store=store, keep_ledgers=keep_ledgers)


CLERK = Spending(Usage(2400, 60), 1.0, {"m-1": 2}, 1.0)
CLOSER = Spending(None, None, {"m-1": 2})


def console(report: Report, detail: Detail = "usual") -> str:
    file = StringIO()
    terminal = Terminal(file)
    terminal.width = 100
    ConsoleReport(terminal, detail).show(report)
    return file.getvalue()


def of_nodes(**nodes: Spending) -> Report:
    return Report([CaseResult(case_id="a", status="passed", ended="completed", nodes=nodes)])


def test_a_report_knows_what_each_node_spent() -> None:
    report = played()
    assert report.nodes == {"seq.0/clerk": CLERK, "seq.1/closer": CLOSER}
    assert report.results[0].nodes == {
        "seq.0/clerk": Spending(Usage(1200, 30), 0.5, {"m-1": 1}, 0.5),
        "seq.1/closer": Spending(None, None, {"m-1": 1}),
    }


@pytest.mark.parametrize("keep_ledgers", [True, False])
def test_it_outlives_files_stores_and_ledgers(tmp_path: Path, keep_ledgers: bool) -> None:
    report = played(store=tmp_path / "store", keep_ledgers=keep_ledgers)
    assert Report.load(report.save(tmp_path / "report.json")).nodes == report.nodes
    assert Store(tmp_path / "store").report(report.id).nodes == report.nodes
    data = json.loads((tmp_path / "report.json").read_text())
    assert data["summary"]["nodes"]["seq.1/closer"] == {
        "usage": None,
        "cost": None,
        "models": {"m-1": 2},
        "known_cost": 0.0,
    }


def test_markdown_and_html_have_a_table_of_nodes() -> None:
    text = MarkdownReport().render(played())
    assert "<summary>By node</summary>" in text
    assert "| <code>seq.0/clerk</code> | 2 | 2,400 | 60 | $1.00 | <code>m-1</code> |" in text
    assert "| <code>seq.1/closer</code> | 2 | unknown | unknown | unknown |" in text
    first, second = index(render_html(played()))["head"]["nodes"]
    assert first == {
        "node": "seq.0/clerk", "calls": 2, "models": ["m-1"], "tokens": [2400, 60], "cost": 1.0, "known_cost": 1.0,
    }  # fmt: skip
    assert "cost" not in second


def test_the_terminal_tells_of_several_nodes() -> None:
    text = console(played())
    assert "seq.0/clerk   2 calls, 2,400 tokens in, 60 out, $1.00" in text
    assert "seq.1/closer  2 calls, unknown tokens in, unknown out, unknown" in text
    assert "seq.0/clerk" not in console(played(), "little")
    assert "2,400 tokens" not in console(of_nodes(clerk=CLERK))


def test_a_part_that_is_known_is_the_least() -> None:
    partly = Spending(None, None, {"m-1": 2}, 0.25)
    assert "unknown, at least $0.2500" in MarkdownReport().render(of_nodes(a=partly, b=CLERK))


def test_free_runs_and_unknown_nodes_have_no_table() -> None:
    free = of_nodes(a=Spending(Usage(), 0.0, {"scripted": 3}))
    old = Report([CaseResult(case_id="a", status="passed", ended="completed", cost=1.0)])
    for report in (free, old, Report([])):
        assert "By node" not in MarkdownReport().render(report)
        assert "nodes" not in index(render_html(report))["head"]


@pytest.mark.parametrize("payload", PAYLOADS[::10])
def test_a_hostile_name_of_a_node_stays_text(payload: str) -> None:
    report = of_nodes(**{payload: CLERK, "other": CLOSER})
    usual = of_nodes(clerk=CLERK, other=CLOSER)
    page = render_html(report)
    assert page.count("<script") == render_html(usual).count("<script")
    assert "\x1b]" not in console(report)


def test_of_very_many_nodes_the_dearest_are_shown() -> None:
    nodes = {f"n{i}": Spending(Usage(i, i), float(i), {"m": 1}, float(i)) for i in range(1, 151)}
    assert index(render_html(of_nodes(**nodes)))["head"]["left_out"] == {"nodes": 50}
    text = console(of_nodes(**nodes))
    assert "130 more nodes are not shown" in text
    assert "n150 " in text
