"""What every run would meet, or no run could, is refused: a pass of it would mean nothing."""

from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Score, Scripted, Stop, Unmeasured, call, metric, rehearse
from greenroom.errors import BadInput, BadMetric, BadQuery
from greenroom.metrics import matches, state_is, state_matches, tool_trajectory_avg_score
from greenroom.results import CaseResult


def result(case: Case, *script: Any, **options: Any) -> CaseResult:
    agent = Agent("clerk", model=Scripted(*script or ("Done.",)), **options)
    return rehearse(agent, [case]).results[0]


@pytest.mark.parametrize(
    "pattern",
    [
        *(".*", "(yes)?", "21|", "$", r"\d*", "(?i)a*", "(?!no)"),
        *("^", r"\A", ".+", "(?s).", r"\S", r"\w|\W", "^$|."),  # an empty answer is not measured
    ],
)
def test_a_pattern_that_every_answer_matches_is_refused(pattern: str) -> None:
    with pytest.raises(BadMetric, match="every answer matches it"):
        matches(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *("^(?!.*sorry)", "^[^x]*$", "[^x]", "(?<!x)$", r"\bfoo\b", "^$", r"^\d*$", "ok|done"),
        *("^.+$", "(?s)^.{1,200}$", r"^\w", r"[^\W\d]"),
    ],
)
def test_a_pattern_that_some_answer_misses_is_kept(pattern: str) -> None:
    assert matches(pattern).pattern.pattern == pattern


@pytest.mark.parametrize("operator", ["$and", "$or", "$in", "$nin", "$all"])
def test_an_operator_with_an_empty_list_asks_for_nothing(operator: str) -> None:
    for ask in (
        lambda: Expect(state={"session": {"paid": {operator: []}}}),
        lambda: Expect(tools=[call("refund", order={operator: []})]),
        lambda: Stop(state_matches={"session": {"paid": {operator: []}}}),
        lambda: state_is("session", "paid", query={operator: []}),
    ):
        with pytest.raises(BadQuery, match="an empty list, which checks nothing"):
            ask()


def test_a_key_with_the_prefix_of_another_scope_is_never_there() -> None:
    absent = {"$exists": False}
    for ask in (
        lambda: Expect(state={"session": {"user:name": absent}}),
        lambda: Expect(state_after={"clerk": {"session": {"user:name": absent}}}),
        lambda: Stop(state_matches={"session": {"user:name": absent}}),
        lambda: state_is("session", "user:name", query=absent),
        lambda: state_matches({"session": {"user:name": absent}}),
    ):
        with pytest.raises(BadQuery, match=r"'name' in the scope 'user'; write \{\"user\""):
            ask()
    Expect(state={"session": {"note:name": absent}})  # a key like any other


@pytest.mark.parametrize("wanted", [{"$exists": False}, 1], ids=["absent", "one"])
def test_what_was_temporary_is_gone_and_not_measured(wanted: Any) -> None:
    query = {"temp": {"draft": wanted}}
    case = Case(
        "a",
        "Hello",
        expect=Expect(state=query),
        metrics=[state_matches(query, name="matches"), state_is("temp", query=query["temp"])],
    )
    found = result(case)
    assert found.status == "error"
    assert len(found.scores) == 3
    for outcome in found.scores.values():
        assert isinstance(outcome, Unmeasured)
        assert "lasts until the agent's invocation ends" in outcome.why


@pytest.mark.parametrize("bar", [90, 0, -1, float("nan"), "0.5", True])
def test_a_score_whose_bar_is_off_the_scale_is_no_measurement(bar: Any) -> None:
    @metric
    def mine(response: str) -> Score:
        return Score(0.7, threshold=bar)

    found = result(Case("a", "Hello", metrics=[mine]))
    assert found.status == "error"
    assert "its scale is 0 to 1" in found.scores["mine"].reason


def test_a_score_that_says_itself_that_it_failed_is_not_called_too_low() -> None:
    @metric
    def mine(response: str) -> Score:
        return Score(1.0, False)

    agent = Agent("clerk", model=Scripted("Done."))
    shown = str(rehearse(agent, [Case("a", "Hello", metrics=[mine])]))
    assert "mine: its Score says passed=False" in shown


def test_a_list_of_arguments_that_count_is_not_empty() -> None:
    with pytest.raises(BadInput, match="write 'ignore'"):
        tool_trajectory_avg_score(tool_args={"refund": []})
