"""What did not pass becomes an eval set to go on with."""

from dataclasses import replace
from pathlib import Path

import pytest

from greenroom import Agent, Case, EvalSet, Expect, Report, Scripted, rehearse
from greenroom.cases import case_data
from greenroom.errors import BadFile, NotFound
from greenroom.results import CaseResult, failed_cases

AGENT = Agent("host", model=Scripted("Hello."))
GOOD = Case("good", says="Hi", expect=Expect(contains="Hello"))
BAD = Case("bad", says="Hi", expect=Expect(contains="Goodbye"))
SHOP = EvalSet("shop", [GOOD, BAD], name="The shop")


def test_failures_become_a_set_that_says_where_it_comes_from() -> None:
    report = rehearse(AGENT, SHOP)
    failed = failed_cases(report, SHOP)
    assert (failed.id, failed.name) == ("shop_failures", "Failed Cases from The shop")
    assert failed.cases == (BAD,)
    assert failed.metadata == {
        "original_eval_set_id": "shop",
        "created_from_report": report.id,
    }


def test_a_report_from_disk_holds_the_cases_that_failed(tmp_path: Path) -> None:
    report = Report.load(rehearse(AGENT, SHOP).save(tmp_path / "r.json"))
    failed = failed_cases(report)
    assert (failed.id, failed.metadata["created_from_report"]) == ("shop_failures", report.id)
    assert [case_data(case) for case in failed] == [case_data(BAD)]
    failed.save(tmp_path / "failures.json")
    assert not rehearse(AGENT, EvalSet.load(tmp_path / "failures.json")).passed


def test_a_case_with_code_is_taken_from_its_set_or_not_at_all(tmp_path: Path) -> None:
    def loud(response: str) -> bool:
        return response.isupper()

    shop = EvalSet("shop", [Case("loud", says="Hi", metrics=[loud])])
    report = Report.load(rehearse(AGENT, shop).save(tmp_path / "r.json"))
    assert failed_cases(report, shop).cases == shop.cases
    with pytest.raises(BadFile, match="case 'loud' of the report"):
        failed_cases(report)


def test_every_trial_and_status_but_skipped_counts_and_a_case_is_taken_once() -> None:
    statuses = ["passed", "failed", "error", "terminated", "skipped"]
    cases = [Case(status, says="Hi") for status in statuses]
    results = [CaseResult(case_id=s, status=s) for s in statuses]  # pyright: ignore[reportArgumentType]
    again = [replace(results[0], status="failed", trial=2), replace(results[1], trial=2)]
    failed = failed_cases(Report([*results, *again]), EvalSet("s", cases))
    assert failed.ids == ["failed", "error", "terminated", "passed"]


def test_nothing_failed_is_an_empty_set() -> None:
    assert len(failed_cases(rehearse(AGENT, GOOD))) == 0


def test_another_set_than_the_evaluated_one_is_refused() -> None:
    report = rehearse(AGENT, SHOP)
    with pytest.raises(NotFound, match="failure of case 'bad', but eval set 'other'"):
        failed_cases(report, EvalSet("other", [GOOD]))
    with pytest.raises(NotFound, match="does not hold case 'c' itself"):
        failed_cases(Report([CaseResult(case_id="c", status="failed")]))
