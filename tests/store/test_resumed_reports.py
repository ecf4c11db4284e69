"""The report of a run that went on: what was cut leaves no trace in it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    EvalSet,
    evaluate,
    rehearse,
)
from greenroom.cases import write_evalset
from greenroom.metrics.judges import judge
from greenroom.models import ModelRequest
from greenroom.store import Store
from greenroom.store.runs import Key
from store.asked import Asked
from store.errands import OK, PER_TRIAL, answer, case, cases, clerk, cut_run, ids, resumed, statuses
from store.timeless import timeless


@pytest.mark.parametrize("at", [1, 3, PER_TRIAL + 1, 2 * PER_TRIAL + 3, 6 * PER_TRIAL])
async def test_the_report_of_a_resumed_run_is_that_of_an_unbroken_one(
    tmp_path: Path, at: int
) -> None:
    await cut_run(tmp_path, cases(), at=at, trials=2)
    report, _ = await resumed(tmp_path, cases(), trials=2)
    whole, _ = await resumed(tmp_path / "whole", cases(), trials=2, resume=False)
    assert timeless(report) == timeless(whole)
    assert timeless(Store(tmp_path).report(report.id)) == timeless(report)


async def test_failures_and_errors_are_told_as_they_were(tmp_path: Path) -> None:
    def fragile(request: ModelRequest) -> Any:
        if "crash" in request.last:
            raise RuntimeError("boom")
        return "No" if "fail" in request.last else "Answer"

    evalset = EvalSet(
        "mixed", [Case("bad", "crash"), Case("poor", "fail"), Case("good", "x"), Case("last", "y")]
    )
    options: dict[str, Any] = {"metrics": [OK], "concurrency": 1}
    model = Asked(fragile, cut=4)
    await evaluate(Agent("a", model=model), evalset, store=tmp_path, cancel=model.cancel, **options)
    again = Asked(fragile)
    report = await evaluate(
        Agent("a", model=again), evalset, store=tmp_path, resume=True, **options
    )
    whole = await evaluate(Agent("a", model=Asked(fragile)), evalset, store=False, **options)
    assert statuses(report) == ["error", "failed", "passed", "passed"]
    assert again.count == 1
    assert timeless(report) == timeless(whole)


async def test_cases_that_cannot_be_played_are_told_as_they_were(tmp_path: Path) -> None:
    odd = Case("odd", "Hi", user=object())
    evalset = EvalSet("odd ones", [odd, case("a")])
    await cut_run(tmp_path, evalset, at=2)
    report, _ = await resumed(tmp_path, evalset)
    whole, _ = await resumed(tmp_path / "whole", evalset, resume=False)
    assert statuses(report) == ["error", "passed"]
    assert timeless(report) == timeless(whole)


async def test_a_cut_run_says_in_the_store_how_far_it_got(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases(), at=PER_TRIAL + 2)
    [run] = Store(tmp_path).runs()
    assert (run.status, run.done, run.total) == ("interrupted", 1, 3)
    report = Store(tmp_path).report(run.id)
    assert ids(report) == ["a"]
    assert "1 of 3 trials are done" in " ".join(report.notes)


async def test_the_ledgers_of_a_resumed_run_are_whole(tmp_path: Path) -> None:
    await cut_run(tmp_path, cases("a", "b"), at=PER_TRIAL + 3)
    report, _ = await resumed(tmp_path, cases("a", "b"))
    for result in report:
        assert result.ledger is not None
        assert result.ledger == Store(tmp_path).ledger(report.id, Key(result.case_id, 1))
        assert result.case is not None


async def test_ids_with_half_a_character_go_on_too(tmp_path: Path) -> None:
    evalset = EvalSet("odd \ud83d", [case("a\udc80"), case("a\\udc80"), case("b", "half \ud83d")])
    await cut_run(tmp_path, evalset, at=2 * PER_TRIAL + 2)
    report, model = await resumed(tmp_path, evalset)
    assert [result.case_id for result in report] == ["a\udc80", "a\\udc80", "b"]
    assert statuses(report) == ["passed"] * 3
    assert model.count == 1
    for result in report:
        assert result.ledger is not None


async def test_a_run_goes_on_when_its_set_is_a_file(tmp_path: Path) -> None:
    write_evalset(cases(), tmp_path / "errands.json")
    path: Any = tmp_path / "errands.json"
    await cut_run(tmp_path / "s", path, at=PER_TRIAL + 2)
    _, model = await resumed(tmp_path / "s", path)
    assert model.count == 2 * PER_TRIAL - 1


def test_a_door_that_blocks_resumes_too(tmp_path: Path) -> None:
    model = Asked(answer, cut=PER_TRIAL + 1)
    options: dict[str, Any] = {"store": tmp_path, "metrics": [OK], "concurrency": 1}
    rehearse(clerk(model), cases(), cancel=model.cancel, **options)
    again = Asked(answer)
    report = rehearse(clerk(again), cases(), resume=True, **options)
    assert report.passed
    assert again.count == 2 * PER_TRIAL


async def test_a_cut_trial_whose_ledger_had_ended_is_only_measured(tmp_path: Path) -> None:
    verdict = '{"reasoning": "so", "verdict": true}'
    bench, model = Asked(lambda _: verdict, cut=1), Asked(answer)
    kind = judge("kind", "Is it kind?", model=bench)
    await evaluate(clerk(model), cases("a"), store=tmp_path, metrics=[kind], cancel=bench.cancel)
    again, player = Asked(lambda _: verdict), Asked(answer)
    kind = judge("kind", "Is it kind?", model=again)
    report = await evaluate(clerk(player), cases("a"), store=tmp_path, metrics=[kind], resume=True)
    assert (statuses(report), player.count, again.count) == (["passed"], 0, 1)


async def test_a_case_with_its_own_agent_goes_on_with_it(tmp_path: Path) -> None:
    model = Asked(answer, cut=3)
    own = replace(case("a"), agent=clerk(model))
    await evaluate(None, own, store=tmp_path, metrics=[OK], cancel=model.cancel)
    again = Asked(answer)
    report = await evaluate(
        None, replace(case("a"), agent=clerk(again)), store=tmp_path, metrics=[OK], resume=True
    )
    assert (statuses(report), again.count) == (["passed"], PER_TRIAL - 2)
