"""Heads and rows of runs are read once, kept while their run is the same, and say what the report says."""

import asyncio
from pathlib import Path

import pytest

from greenroom import Case, EvalSet, Expect, evaluate
from greenroom.apps.web.run_index import RunIndex
from greenroom.apps.web.runs_page import Rates, list_runs
from greenroom.apps.web.site import Settings, Site
from greenroom.reports.page.shapes import Query
from greenroom.store import Store


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """Two runs of one set with two trials a case; some cases fail every second time."""
    found = Store(tmp_path_factory.mktemp("runs"))
    for moved in (0, 1):
        run_once(found, moved, trials=2)
    return found


def run_once(store: Store, moved: int, trials: int) -> None:
    asked = [0]

    def agent(text: str) -> str:
        asked[0] += 1
        number = int(text)
        return "no" if (number + moved) % 4 == 0 or (number == 5 and asked[0] % 2) else "money"

    cases = [
        Case(f"c{n}", str(n), tags=["even"] if n % 2 == 0 else [], expect=Expect(contains="money"))
        for n in range(12)
    ]
    asyncio.run(evaluate(agent, EvalSet("refunds", cases), trials=trials, store=store))


def test_the_list_of_runs_has_the_interval_that_the_run_has(store: Store) -> None:
    listed = list_runs(store, rates=Rates(store)).runs
    for line in listed:
        interval = store.report(line.id).interval
        assert line.rate is not None
        assert interval is not None
        assert (line.rate.low, line.rate.high) == pytest.approx((interval.low, interval.high))
        assert line.rate.text == str(interval)


def test_one_reading_makes_the_same_figures_as_the_report(store: Store) -> None:
    run = store.runs()[0].id
    counted, counts = RunIndex(store, run).counted()
    report = store.report(run)
    assert counted.summary == report.summary
    assert counted.metrics == report.metrics
    assert counted.nodes == report.nodes
    assert counted.interval == report.interval
    assert counts.cases == 12


def test_a_head_is_kept_while_other_runs_change(store: Store, tmp_path: Path) -> None:
    site = Site.of(store, Settings(labels=str(tmp_path)))
    b, a = [run.id for run in store.runs()][:2]
    head = site.pages.head(site.index(b))
    compared = site.pages.compared_head(a, site.compared(a, b))
    run_once(store, 0, trials=1)
    assert site.pages.head(site.index(b)).metrics is head.metrics
    assert site.pages.compared_head(a, site.compared(a, b)) is compared
    for change, count in compared.choices["change"].items():
        assert site.compared(a, b).rows(Query(change=[change])).total == count
    assert not any(row.change for row in site.index(b).rows(Query()).rows)


def test_rows_that_were_forgotten_meanwhile_are_marked_again(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("greenroom.apps.web.site._MOST_RUNS", 2)
    site = Site.of(store, Settings(labels=str(tmp_path)))
    b, a = [run.id for run in store.runs()][:2]
    head = site.pages.compared_head(a, site.compared(a, b))
    for run in (a, b):
        site.index(run)  # the comparison's rows are dropped, its head is not
    again = site.compared(a, b)
    site.pages.compared_head(a, again)
    for change, count in head.choices["change"].items():
        assert again.rows(Query(change=[change])).total == count
