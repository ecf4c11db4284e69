"""Other metrics on old ledgers: what flips, what stays, and that nobody acts."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from greenroom import Agent, Case, EvalSet, Report, Scripted, call, evaluate, metric, tool
from greenroom.cases import Expect, Unmeasured
from greenroom.errors import BadInput
from greenroom.metrics import contains, judge, tool_trajectory_avg_score
from greenroom.results import compare
from greenroom.results.words import outcome_text
from greenroom.store import Store
from greenroom.suite.recorded.rescores import rescore
from greenroom.world.answers import AnswerCache


@tool
def refund(order: int) -> dict:
    """Pay an order back."""
    raise RuntimeError("never reached")


def clerk() -> Agent:
    return Agent("clerk", model=Scripted("Your money is on its way."), tools=[refund])


def cases(expected: str = "money") -> EvalSet:
    good = Case("good", says="Hi", expect=Expect(contains=expected))
    coded = Case("coded", says="Hi", metrics=[contains("way")])
    return EvalSet("errands", [good, coded])


async def played(place: Path | bool, trials: int = 1) -> Report:
    return await evaluate(clerk(), cases(), trials=trials, store=place)


def statuses(report: Report) -> list[str]:
    return [result.status for result in report]


async def test_a_new_metric_flips_the_verdicts_it_changes(tmp_path):
    before = await played(tmp_path, trials=2)
    found = await rescore(before.id, store=tmp_path, metrics=[contains("refund")])
    assert statuses(found.report) == ["failed"] * 4
    assert [(f.case_id, f.trial, f.before, f.now) for f in found.flips] == [
        ("good", 1, "passed", "failed"),
        ("good", 2, "passed", "failed"),
        ("coded", 1, "passed", "failed"),
        ("coded", 2, "passed", "failed"),
    ]
    assert "good (trial 2): passed → failed  contains('refund') – → 0.00" in str(found)


async def test_what_the_run_came_to_stays_in_the_store(tmp_path):
    before = await played(tmp_path)
    found = await rescore(before.id, store=tmp_path, metrics=[contains("refund")])
    store = Store(tmp_path)
    assert statuses(store.report(before.id)) == ["passed"] * 2
    assert len(store.runs()) == 1
    assert found.report.id != before.id


async def test_a_rescored_report_compares_with_its_original(tmp_path):
    mocked = Case(
        "mocked", says="Hi", mocks={"refund": lambda order: {}}, metrics=[contains("way")]
    )
    held = await evaluate(clerk(), [*cases(), mocked], store=tmp_path)
    stored = Store(tmp_path).report(held.id)
    for before in (held, stored):
        after = (await rescore(before, metrics=[contains("refund")])).report
        before.save(tmp_path / "before.json")
        after.save(tmp_path / "after.json")
        files = Report.load(tmp_path / "before.json"), Report.load(tmp_path / "after.json")
        for pair in ((before, after), (stored, after), files):
            verdicts = {change.case_id: change.verdict for change in compare(*pair).cases}
            assert verdicts == dict.fromkeys(("good", "coded", "mocked"), "flipped")


async def test_metrics_that_are_code_stay_as_recorded_unless_the_cases_are_given(tmp_path):
    before = await played(tmp_path)
    found = await rescore(before.id, store=tmp_path, metrics=[contains("money")])
    assert set(found.report["coded"].scores) == {"contains('way')", "contains('money')"}
    assert [note for note in found.report.notes if "contains('way')" in note]
    given = await rescore(before.id, store=tmp_path, cases=cases())
    assert set(given.report["coded"].scores) == {"contains('way')"}
    assert not [note for note in given.report.notes if "as recorded" in note]


async def test_a_report_in_memory_brings_its_own_cases():
    before = await played(False)
    found = await rescore(before, metrics=[contains("money")])
    assert set(found.report["coded"].scores) == {"contains('way')", "contains('money')"}
    assert not [note for note in found.report.notes if "as recorded" in note]


async def test_changed_expectations_judge_the_old_words(tmp_path):
    before = await played(tmp_path)
    found = await rescore(before.id, store=tmp_path, cases=cases("never"))
    assert [(f.case_id, f.now) for f in found.flips] == [("good", "failed")]


async def test_a_metric_that_is_gone_is_named(tmp_path):
    before = await evaluate(clerk(), cases(), metrics=[contains("Your")], store=tmp_path)
    found = await rescore(before.id, store=tmp_path, metrics=[contains("money")])
    assert "contains('Your')" not in found.report["good"].scores
    assert "measured then and not now: contains('Your')" in found.report.notes


async def test_what_was_noted_on_a_run_stays_on_it():
    before = await played(False)
    noted = [replace(result, notes=("the tool answered late",) * 2) for result in before]
    found = await rescore(replace(before, results=noted), metrics=[contains("money")])
    assert [result.notes for result in found.report] == [("the tool answered late",)] * 2


async def test_cases_that_are_not_given_are_left_as_they_were(tmp_path):
    before = await played(tmp_path)
    only = Case("good", says="Hi", expect=Expect(contains="never"))
    found = await rescore(before.id, store=tmp_path, cases=[only])
    assert statuses(found.report) == ["failed", "passed"]
    assert [note for note in found.report.notes if "'coded' is not among those given" in note]


async def test_cases_of_which_none_was_played_are_not_taken_for_measured():
    report = await played(False)
    with pytest.raises(BadInput, match="none of the cases that were given is in this run"):
        await rescore(report, cases=[Case("another", says="Hi")])


async def test_a_case_that_was_never_played_stays_what_it_is(tmp_path):
    unplayable = Case("unplayable", says="Hi", expect=Expect(contains="x"))
    before = await evaluate(
        clerk(), [Case("bad", says="Hi", metrics=[contains("never")]), unplayable],
        fail_fast=True, concurrency=1, store=tmp_path,
    )  # fmt: skip
    found = await rescore(before, metrics=[contains("money")])
    assert statuses(before) == statuses(found.report) == ["failed", "skipped"]


async def test_judges_are_asked_and_paid_in_the_new_report_only(tmp_path):
    before = await played(tmp_path)
    model = Scripted(
        '{"reasoning": "So.", "verdict": false}', '{"reasoning": "So.", "verdict": true}'
    )
    tone = judge("tone", "Was it polite?", model=model)
    cache = AnswerCache(tmp_path / "judges")
    found = await rescore(before.id, store=tmp_path, metrics=[tone], cache=cache, concurrency=1)
    assert statuses(found.report) == ["failed", "failed"]  # the same question has one answer
    assert found.report.judge_models == {"scripted": 2}
    for old in (before, Store(tmp_path).report(before.id)):
        assert (statuses(old), old.judge_models) == (["passed", "passed"], {})
    again = await rescore(before.id, store=tmp_path, metrics=[tone], cache=cache)
    assert statuses(again.report) == ["failed", "failed"]


async def test_a_metric_that_breaks_is_no_number(tmp_path):
    @metric
    def broken(case, ledger):
        raise ValueError("no idea")

    before = await played(tmp_path)
    found = await rescore(before.id, store=tmp_path, metrics=[broken])
    assert statuses(found.report) == ["error", "error"]
    assert isinstance(found.report["good"].scores["broken"], Unmeasured)


async def test_metrics_may_look_and_not_act(tmp_path):
    @metric
    def acting(case, ledger):
        import socket

        socket.create_connection(("127.0.0.1", 9))

    before = await played(tmp_path)
    found = await rescore(before.id, store=tmp_path, metrics=[acting])
    assert statuses(found.report) == ["error", "error"]
    assert "metrics only look" in (found.report["good"].error or pytest.fail("none")).message


async def test_without_ledgers_nothing_can_be_measured(tmp_path):
    before = await played(False)
    before.save(tmp_path / "report.json")
    with pytest.raises(BadInput, match="ledger of case 'good' was not kept"):
        await rescore(Report.load(tmp_path / "report.json"), metrics=[contains("money")])


async def test_without_criteria_what_the_run_measured_is_measured_again(tmp_path):
    before = await played(tmp_path)
    found = await rescore(before.id, store=tmp_path)
    assert [set(one.scores) for one in found.report] == [set(one.scores) for one in before]
    assert (statuses(found.report), found.flips) == (["passed", "passed"], ())
    assert any("code of a case: contains('way')" in note for note in found.report.notes)


def _found(report: Report) -> dict[str, str]:
    return {name: outcome_text(one) for name, one in report["both"].scores.items()}


async def test_without_criteria_what_was_given_to_the_run_stays_as_recorded(tmp_path):
    calls = [call("refund", order=1), call("refund", order=2)]
    clerk = Agent("clerk", model=Scripted(calls, "Paid."), tools=[refund])
    expected = Expect(tools=[calls[1], calls[0]], contains="Paid")
    case = Case("both", says="Hi", mocks={"refund": "ok"}, expect=expected)
    # In any order; the expectation alone asks for this order.
    given = [tool_trajectory_avg_score("ANY_ORDER"), contains("money")]
    before = await evaluate(clerk, [case], metrics=given, store=tmp_path)
    found = await rescore(before.id, store=tmp_path)
    assert _found(found.report) == _found(before)
    assert found.flips == ()
    [note] = [note for note in found.report.notes if "given to the run" in note]
    assert "contains('money'), tool_trajectory" in note


async def test_a_run_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match="there is no run 'nix'"):
        await rescore("nix", store=tmp_path, metrics=[contains("money")])


async def test_a_run_and_what_measured_it_again_count_once_in_a_baseline(tmp_path: Path) -> None:
    agent = Agent("a", model=Scripted(then="Hello."))
    said = contains("Hello", name="said")
    run = await evaluate(agent, [Case("a", "Hi")], metrics=[said], store=False)
    other = await evaluate(agent, [Case("a", "Hi")], metrics=[said], store=False)
    again = (await rescore(run, metrics=[said])).report
    twice = (await rescore(again, metrics=[said])).report
    assert [one.rescored_from for one in (run, again, twice)] == ["", run.id, run.id]
    for given in ([run, again], [again, run], [run, again, twice], [twice, again]):
        assert (len(Report.pooled(given)), Report.pooled(given).id) == (1, max(given, key=_at).id)
    assert len(Report.pooled([run, again, other])) == 2
    again.save(tmp_path / "new.json")
    data = json.loads((tmp_path / "new.json").read_text())
    assert data.pop("rescored_from") == run.id
    (tmp_path / "earlier version.json").write_text(json.dumps(data))
    for name in ("new.json", "earlier version.json"):
        read = Report.load(tmp_path / name)
        assert (read.rescored_from, len(Report.pooled([run, read]))) == (run.id, 1)


def _at(report: Report) -> float:
    return report.at or 0.0
