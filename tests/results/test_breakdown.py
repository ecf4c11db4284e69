"""A report broken down by tag and by case."""

import pytest

from greenroom import Report
from greenroom.errors import BadInput
from greenroom.results import CaseResult, Status


def result(case_id: str, status: Status, *tags: str, cost: float | None = 0.0, trial: int = 1):
    return CaseResult(
        case_id=case_id, status=status, tags=tags, cost=cost, ended="completed", trial=trial
    )


def test_a_result_counts_for_each_of_its_tags():
    report = Report(
        [
            result("a", "passed", "smoke", "slow", cost=0.25),
            result("b", "failed", "smoke", cost=0.5),
            result("c", "error", "smoke", cost=0.0),
            result("d", "passed"),
        ]
    )
    assert list(report.per_tag) == ["slow", "smoke"]
    smoke = report.per_tag["smoke"]
    assert (smoke.total, smoke.passed, smoke.pass_rate, smoke.cost) == (3, 1, 0.5, 0.75)
    assert report.per_tag["slow"].pass_rate == 1
    assert report.cost == 0.75


def test_an_unknown_price_makes_the_sum_unknown_where_it_is_part_of_it():
    report = Report([result("a", "passed", "x", cost=None), result("b", "passed", "y", cost=0.1)])
    assert report.per_tag["x"].cost is None
    assert report.per_tag["y"].cost == 0.1
    assert report.per_case["a"].cost is None
    assert report.cost is None


def test_a_tag_without_an_evaluated_case_has_no_pass_rate():
    report = Report([result("a", "error", "x"), result("b", "skipped", "x")])
    assert report.per_tag["x"].pass_rate is None


def test_trials_of_a_case_are_summed_up():
    statuses: list[Status] = ["passed", "failed", "passed", "error", "passed"]
    report = Report([result("a", s, cost=0.1, trial=n + 1) for n, s in enumerate(statuses)])
    found = report.per_case["a"]
    assert (found.counts.total, found.counts.evaluated, found.pass_rate) == (5, 4, 0.75)
    assert found.flaky
    assert found.cost == pytest.approx(0.5)


def test_the_chance_that_k_trials_all_pass():
    results: list[Status] = ["passed", "passed", "passed", "failed"]
    found = Report([result("a", s, trial=n + 1) for n, s in enumerate(results)]).per_case["a"]
    assert found.all_of(1) == 0.75
    assert found.all_of(2) == 0.5
    assert found.all_of(4) == 0
    assert found.all_of(5) is None


def test_the_chance_that_one_of_k_trials_passes():
    results: list[Status] = ["passed", "failed", "failed", "failed"]
    found = Report([result("a", s, trial=n + 1) for n, s in enumerate(results)]).per_case["a"]
    assert found.any_of(1) == 0.25
    assert found.any_of(2) == 0.5
    assert found.any_of(4) == 1
    assert found.any_of(5) is None
    assert found.any_of(0) is None


def test_flakiness_is_the_chance_that_two_trials_differ():
    def trials(*statuses: Status) -> float | None:
        results = [result("a", s, trial=n + 1) for n, s in enumerate(statuses)]
        return Report(results).per_case["a"].flakiness

    assert trials("passed", "failed") == 1
    assert trials("passed", "passed", "failed", "failed") == pytest.approx(2 / 3)
    assert trials("passed", "passed", "error") == 0
    assert trials("passed", "error") is None


def test_over_all_cases_each_counts_once_and_one_without_enough_trials_leaves_it_open():
    good = [result("a", "passed", trial=n + 1) for n in range(4)]
    mixed = [result("b", "passed", trial=1), result("b", "failed", trial=2)]
    report = Report([*good, *mixed, result("c", "error")])
    assert report.all_of(1) == pytest.approx(0.75)
    assert report.all_of(2) == pytest.approx(0.5)
    assert report.any_of(2) == 1
    assert report.all_of(3) is None
    assert Report([result("c", "error")]).all_of(1) is None


def test_one_trial_is_never_flaky():
    report = Report([result("a", "failed")])
    assert not report.per_case["a"].flaky


@pytest.mark.parametrize("k", [1.0, True, "1", None])
def test_what_is_no_number_of_trials_is_refused(k):
    report = Report([result("a", "passed"), result("a", "failed", trial=2)])
    for measure in (report.any_of, report.all_of):
        with pytest.raises(BadInput, match="is not a number of trials; give a whole number"):
            measure(k)
