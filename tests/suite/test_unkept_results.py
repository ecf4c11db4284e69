"""The results of a large run that is recorded stay in its store, and its report reads like any other."""

import gc
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, evaluate
from greenroom.errors import NotFound, StoreFailed
from greenroom.results import Gate
from greenroom.results.data import verdict_data
from greenroom.results.reporters import render_report
from greenroom.results.result import CaseResult
from greenroom.results.stored_results import ReadResults, cases_in
from greenroom.store import Store
from greenroom.suite import run

AGENT = Agent("clerk", model=Scripted("Your money is on its way."))
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten trials are many here."""
    monkeypatch.setattr(run, "_MOST_KEPT", 10)


def cases(count: int = 6, *, bad: Sequence[int] = (2,)) -> EvalSet:
    return EvalSet(
        "refunds",
        [
            Case(f"c{n}", "Hi", tags=["t"], expect=Expect(contains="no" if n in bad else "money"))
            for n in range(count)
        ],
    )


def in_order(done: Sequence[CaseResult]) -> list[CaseResult]:
    return sorted(done, key=lambda result: (result.case_id, result.trial))


async def test_its_results_are_read_from_the_store_and_are_those_that_the_run_had(
    tmp_path: Path,
) -> None:
    done: list[CaseResult] = []
    report = await evaluate(AGENT, cases(), store=tmp_path, trials=2, on_case_complete=done.append)
    assert isinstance(report.results, ReadResults)
    assert [*map(verdict_data, report)] == [*map(verdict_data, in_order(done))]
    assert [result.ledger for result in report] == [result.ledger for result in in_order(done)]
    assert [result.case for result in report] == [result.case for result in in_order(done)]
    assert (report.results[3], report["c2"]) == (list(report)[3], list(report)[4])
    assert report.results.of_case("c5") == list(report)[-2:]
    assert report.results.of_case("c9") == []
    kept = Report(
        in_order(done), **{n: getattr(report, n) for n in ("name", "seconds", "id", "at")}
    )
    assert report.summary == kept.summary
    for name in ("junit", "markdown", "console"):
        assert render_report(name, report) == render_report(name, kept), name


async def test_none_of_them_is_held(tmp_path: Path) -> None:
    def alive() -> int:
        return sum(type(one) is CaseResult for one in gc.get_objects())

    before = alive()
    report = await evaluate(AGENT, cases(60), store=tmp_path)
    assert report.summary.total == 60
    gc.collect()
    assert alive() - before < 5


async def test_a_run_without_a_store_holds_its_results() -> None:
    report = await evaluate(AGENT, cases(), store=False, trials=2)
    assert isinstance(report.results, list)


async def test_trials_that_were_left_out_stand_in_their_places(tmp_path: Path) -> None:
    report = await evaluate(AGENT, cases(), store=tmp_path, trials=2, concurrency=1, fail_fast=True)
    assert [result.status for result in report] == [*["passed"] * 4, "failed", *["skipped"] * 7]
    assert [result.trial for result in report] == [1, 2] * 6
    assert report.results[5].notes == ("not run: case 'c2' did not pass",)
    assert (report.summary.failed, report.summary.skipped) == (1, 7)
    assert [result.status for result in cases_in(report)("c2")] == ["failed", "skipped"]
    [*_, missed] = Gate(fail_on=("skipped",)).decide(report).missed
    assert "7 cases skipped: c2" in missed.why
    text = render_report("console", report)
    assert "not run: case 'c2' did not pass" in text


async def test_a_run_that_is_resumed_reports_what_both_processes_finished(tmp_path: Path) -> None:
    options: dict[str, Any] = {"store": tmp_path, "trials": 2, "concurrency": 1}
    first = await evaluate(AGENT, cases(), fail_fast=True, **options)
    report = await evaluate(AGENT, cases(), resume=first.id, **options)
    assert isinstance(report.results, ReadResults)
    assert (report.summary.total, report.summary.failed, report.summary.skipped) == (12, 2, 0)
    assert list(report)[:5] == list(Store(tmp_path).report(first.id))[:5]


async def test_a_case_keeps_its_id_though_the_store_has_none_with_a_secret(tmp_path: Path) -> None:
    asked = EvalSet("refunds", [Case(f"c {KEY}", "Hi", expect=Expect(contains="money"))])
    report = await evaluate(AGENT, asked, store=tmp_path, trials=12)
    assert {result.case_id for result in report} == {f"c {KEY}"}
    assert len(cases_in(report)(f"c {KEY}")) == 12
    assert set(report.per_case) == {f"c {KEY}"}
    assert KEY not in {run.case_id for run in Store(tmp_path).report(report.id)}


async def test_what_every_trial_has_in_common_is_noted_once(tmp_path: Path) -> None:
    recorded = tmp_path / "recorded"
    await evaluate(AGENT, cases(), store=False, trials=2, record=recorded)
    report = await evaluate(AGENT, cases(), store=tmp_path, trials=2, replay=recorded)
    assert isinstance(report.results, ReadResults)
    assert len([note for note in report.notes if note.startswith("replayed:")]) == 1


async def test_a_run_that_is_gone_is_not_reported_in_part(tmp_path: Path) -> None:
    report = await evaluate(AGENT, cases(), store=tmp_path, trials=2)
    Store(tmp_path).delete(report.id)
    with pytest.raises(NotFound, match="has changed while it was read"):
        list(report.results)


class Full(Store):
    """A store on a disk that is full after the first trials."""

    __slots__ = ("is_full",)

    def add(self, run: Any, rows: Any, connection: Any) -> None:
        """Keep what comes first."""
        if self.is_full:
            raise StoreFailed("the disk is full.")
        self.is_full = True
        super().add(run, rows, connection)


async def test_a_store_that_fails_leaves_a_report_of_what_it_has(tmp_path: Path) -> None:
    store = Full(tmp_path)
    store.is_full = False
    with pytest.raises(StoreFailed, match="the disk is full") as stopped:
        await evaluate(AGENT, cases(200, bad=()), store=store, concurrency=1)
    report: Report = stopped.value.report
    assert isinstance(report.results, ReadResults)
    first = len(Store(tmp_path).report(report.id))
    assert 0 < first < 200
    statuses = [result.status for result in report]
    assert statuses == [*["passed"] * first, *["skipped"] * (200 - first)]
    assert report.results[first].notes == ("not finished: the disk is full.",)
