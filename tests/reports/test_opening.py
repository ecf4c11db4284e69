"""A report of a run in the store: how often each ledger of it is opened."""

from collections import Counter
from dataclasses import replace
from io import StringIO

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Ledger, Report, Scripted, call, evaluate, tool
from greenroom.reports.console import ConsoleReport
from greenroom.reports.reporters import write_reports
from greenroom.reports.terminal import Terminal
from greenroom.results.comparisons.comparison import compare
from greenroom.results.redaction import redacted
from greenroom.results.reporters import render_report
from greenroom.results.result import LedgerSource
from greenroom.store import Store

FORMATS = ("console", "json", "junit", "html", "markdown", "adk")
HUGE = 10**9
"""A ledger of so many bytes is not kept in memory next to others."""


@tool
def refund(order: int) -> str:
    """Give the money back."""
    raise AssertionError(order)


def clerk(*says: str) -> Agent:
    return Agent("clerk", model=Scripted(call("refund", order=7), *says), tools=[refund])


def cases(count: int = 12, wanted: str = "done") -> EvalSet:
    """Every third of them fails."""
    return EvalSet(
        "refunds",
        [
            Case(
                f"c{n}",
                f"Refund order {n}",
                mocks={"refund": "ok"},
                expect=Expect(contains=wanted if n % 3 else "never", tools=["refund"]),
            )
            for n in range(count)
        ],
    )


class Counted:
    """A shelf that counts how often somebody opens the ledger on it."""

    def __init__(
        self, shelf: LedgerSource, place: str, counts: Counter[str], size: int | None
    ) -> None:
        self.shelf, self.place, self.counts = shelf, place, counts
        self.size = shelf.size if size is None else size

    def load(self) -> Ledger:
        self.counts[self.place] += 1
        return self.shelf.load()


def counted(report: Report, size: int | None = None) -> tuple[Report, Counter[str]]:
    """The report with a count for each of its ledgers."""
    counts = Counter[str]()
    results = []
    for result in report.results:
        assert result.kept is not None
        assert not isinstance(result.kept, Ledger)
        results.append(replace(result, kept=Counted(result.kept, result.label, counts, size)))
    return replace(report, results=results), counts


@pytest.fixture
async def store(tmp_path) -> Store:
    """A store with one run."""
    store = Store(tmp_path / "runs")
    await evaluate(clerk("done"), cases(), store=store)
    return store


def stored(store: Store) -> Report:
    return store.report(store.runs()[0].id)


async def test_a_ledger_of_the_store_is_counted_each_time_somebody_asks_for_it(store):
    report, counts = counted(stored(store))
    for _ in range(3):
        assert report["c1"].ledger == stored(store)["c1"].ledger
    assert report["c1"].case
    assert counts == {"c1": 4}


@pytest.mark.parametrize("size", [None, HUGE])
@pytest.mark.parametrize("name", FORMATS)
async def test_a_report_opens_no_ledger_twice(store, name, size):
    report, counts = counted(stored(store), size)
    render_report(name, report)
    assert set(counts.values()) == {1}


async def test_everything_shown_in_detail_opens_no_ledger_twice(store):
    report, counts = counted(stored(store), HUGE)
    ConsoleReport(Terminal(StringIO()), "all").show(report)
    assert counts == dict.fromkeys((f"c{n}" for n in range(12)), 1)


async def test_all_formats_and_the_terminal_together_open_no_ledger_twice(store, tmp_path):
    report, counts = counted(stored(store))
    clean = redacted(report)
    ConsoleReport(Terminal(StringIO())).show(clean)
    write_reports(clean, FORMATS, tmp_path)
    assert counts == dict.fromkeys((f"c{n}" for n in range(12)), 1)


async def test_an_evaluation_that_wrote_a_store_opens_no_ledger_twice_either(tmp_path):
    done = await evaluate(clerk("done"), cases(), store=Store(tmp_path / "runs"))
    report, counts = counted(done)
    assert render_report("json", report)
    assert set(counts.values()) == {1}


async def test_runs_of_the_same_cases_are_compared_without_a_ledger(store):
    await evaluate(clerk("sorry"), cases(), store=store)
    then, now = (store.report(run.id) for run in reversed(store.runs()))
    (then, before), (now, after) = counted(then), counted(now)
    comparison = compare(then, now)
    assert len(comparison.regressed) == 8
    assert all(change.known for change in comparison.cases)
    assert (before, after) == ({}, {})


async def test_cases_that_changed_are_looked_at_once_on_each_side(store):
    await evaluate(clerk("done"), cases(wanted="on"), store=store)
    then, now = (store.report(run.id) for run in reversed(store.runs()))
    (then, before), (now, after) = counted(then), counted(now)
    comparison = compare(then, now)
    changed = {change.case_id for change in comparison.changed}
    assert changed == {f"c{n}" for n in range(12) if n % 3}
    assert before == after == dict.fromkeys(changed, 1)


async def test_code_that_cannot_be_read_leaves_it_unknown_whether_cases_ask_for_the_same(tmp_path):
    names: dict[str, object] = {}
    exec("def answer(order):\n    return 'ok'", names)
    store = Store(tmp_path / "runs")
    case = replace(cases(2).cases[1], mocks={"refund": names["answer"]})
    for _ in range(2):
        await evaluate(clerk("done"), EvalSet("refunds", [case]), store=store)
    then, now = (store.report(run.id) for run in store.runs())
    [change] = compare(then, now).cases
    assert (change.verdict, change.known) == ("unchanged", False)


async def test_the_trials_of_a_run_are_read_some_at_a_time(store, monkeypatch):
    read: list[int] = []
    packed = Store.packed_ledgers
    monkeypatch.setattr(
        Store,
        "packed_ledgers",
        lambda *given: read.append(len(found := packed(*given))) or found,
    )
    assert all(result.ledger is not None for result in stored(store))
    assert read == [12]
