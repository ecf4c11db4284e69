"""What one result says of itself."""

import pytest

from greenroom.results import CaseResult
from greenroom.results.report import Report, Summary
from greenroom.results.text import number_of


def played(*prices: float | None) -> CaseResult:
    cost, user, judge = prices
    return CaseResult(
        case_id="a", status="passed", ended="completed", cost=cost, user_cost=user, judge_cost=judge
    )


def test_what_a_result_cost_is_what_agent_user_and_judges_cost():
    assert played(0.5, 0.25, 0.0).spent == 0.75
    assert Report([played(0.5, 0.25, 0.0), played(1.0, 0.0, 0.125)]).spent == 1.875


@pytest.mark.parametrize("prices", [(None, 0.0, 0.0), (1.0, None, 0.0), (1.0, 0.0, None)])
def test_one_unknown_price_makes_the_whole_unknown(prices):
    assert played(*prices).spent is None
    assert Report([played(0.0, 0.0, 0.0), played(*prices)]).spent is None


def test_a_case_that_was_never_played_cost_nothing():
    result = CaseResult(case_id="a", status="skipped")
    assert result.spent == 0
    assert Report([result]).spent == 0


def test_only_further_trials_are_named_as_such():
    labels = [CaseResult(case_id="a", status="passed", trial=trial).label for trial in (1, 2)]
    assert labels == ["a", "a (trial 2)"]


def test_counts_of_statuses_are_a_summary():
    counts = {"passed": 1, "failed": 2, "error": 3, "terminated": 4, "skipped": 5}
    assert Summary.of(15, counts) == Summary(15, 1, 2, 3, 4, 5)
    assert Summary.of(7, {"error": 2}) == Summary(7, errors=2)


def test_only_one_is_singular():
    assert [number_of(count, "case") for count in range(3)] == ["0 cases", "1 case", "2 cases"]
