"""No verdict without a measurement: each way a run can break is its own outcome."""

import asyncio
import contextlib
import socket
import time
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Lines,
    NotApplicable,
    Report,
    Score,
    Scripted,
    Stop,
    Turn,
    Unmeasured,
    UserAgents,
    call,
    evaluate,
    loop,
    metric,
    rehearse,
    step,
    tool,
)
from greenroom.metrics import called, contains, cost_within, exact, judge, matches
from greenroom.models import ModelReply
from greenroom.results import CaseResult


@tool
def refund(order: int) -> dict[str, bool]:
    """Pay an order back."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool(yields=True)
def approve(order: int) -> bool:
    """Ask the user for permission."""
    raise AssertionError("a yielding tool has no body to run")


def agent(*script: Any, **options: Any) -> Agent:
    return Agent("clerk", model=Scripted(*script), tools=[refund, approve], **options)


def result(played: Any, case: Case, **options: Any) -> CaseResult:
    return rehearse(played, [case], **options).results[0]


def broken(found: CaseResult, phase: str) -> str:
    """The message of a result that must be an error of this phase, and nothing better."""
    assert found.status == "error"
    assert not found.passed
    assert found.error is not None
    assert found.error.phase == phase
    return found.error.message


def said(**options: Any) -> Case:
    return Case("one", says="hello", **options)


@metric
def breaks(response: str) -> float:
    raise ZeroDivisionError("no ground to stand on")


@metric
def is_nan(response: str) -> float:
    return float("nan")


@metric
def is_huge(response: str) -> float:
    return 7.0


@metric
def is_text(response: str) -> Any:
    return "quite good"


@pytest.mark.parametrize("given", [breaks, is_nan, is_huge, is_text], ids=lambda m: m.name)
def test_a_metric_that_gives_no_sound_number_is_an_error_and_never_a_number(given: Any) -> None:
    found = result(agent("hi"), said(metrics=[contains("hi"), given]))
    broken(found, "metric")
    assert isinstance(found.scores[given.name], Unmeasured)
    assert given.name not in found.measured


def test_an_error_of_one_metric_is_left_out_of_the_averages() -> None:
    report = rehearse(agent("hi"), [said(metrics=[breaks, contains("hi")])])
    assert report.metrics["breaks"].mean is None
    assert report.metrics["breaks"].unmeasured == 1
    assert report.summary.pass_rate is None


@pytest.mark.parametrize(
    "nonsense",
    ["yes", "", "7/10", '{"verdict": "yes"}', '{"score": NaN, "reasoning": ""}', "[true]"],
)
def test_a_judge_that_answers_nonsense_has_measured_nothing(nonsense: str) -> None:
    polite = judge("polite", "Was it polite?", model=Scripted(then=nonsense or " "))
    found = result(agent("hi"), said(metrics=[polite]))
    broken(found, "metric")
    assert isinstance(found.scores["polite"], Unmeasured)


def test_a_judge_that_cannot_be_reached_is_an_error_and_no_low_score() -> None:
    polite = judge("polite", "Was it polite?", model=Scripted(then=ConnectionError("refused")))
    found = result(agent("hi"), said(metrics=[polite]))
    assert "ConnectionError" in broken(found, "metric")


def test_a_case_with_no_metric_and_no_expectation_is_an_error() -> None:
    assert "nothing was evaluated" in broken(result(agent("hi"), said()), "metric")


def test_a_case_in_which_no_metric_applies_is_an_error() -> None:
    found = result(agent("hi"), said(metrics=[exact()]))
    assert isinstance(found.scores["exact()"], NotApplicable)
    assert "nothing was evaluated" in broken(found, "metric")


def test_an_evaluation_without_cases_has_not_passed() -> None:
    assert not rehearse(agent("hi"), []).passed


def test_a_limit_reached_with_all_metrics_green_is_terminated_and_not_passed() -> None:
    found = result(
        agent("hi", "hi"),
        said(user=Lines("more", "more"), stop=Stop(max_turns=2), metrics=[contains("hi")]),
    )
    assert (found.status, found.ended) == ("terminated", "max_turns")
    assert not found.passed
    score = found.scores["contains('hi')"]
    assert isinstance(score, Score)
    assert score.passed


def test_terminated_stays_in_the_gates_denominator() -> None:
    cases = [
        said(metrics=[contains("hi")]),
        Case("two", says="x", user=Lines("y"), stop=Stop(max_turns=1), metrics=[contains("hi")]),
    ]
    summary = rehearse(agent("hi", "hi"), cases).summary
    assert (summary.passed, summary.terminated, summary.pass_rate) == (1, 1, 0.5)


def test_a_goal_reached_is_judged_by_the_metrics() -> None:
    @step
    def escalate(state: Any) -> str:
        state.session["escalation"] = "now"
        return "help is coming"

    goal = Stop(state_matches={"session": {"escalation": {"$exists": True}}})
    found = result(loop(escalate, awaits_input=True), said(stop=goal, metrics=[contains("help")]))
    assert (found.status, found.ended) == ("passed", "state_matches")


def test_an_agent_that_crashes_is_an_error_of_the_agent() -> None:
    @step
    def crash() -> str:
        raise KeyError("missing")

    assert "KeyError" in broken(
        result(crash >> agent("hi"), said(metrics=[contains("hi")])), "agent"
    )


def test_a_model_that_fails_is_an_error_of_the_agent() -> None:
    found = result(agent(ConnectionError("refused")), said(metrics=[contains("hi")]))
    assert "refused" in broken(found, "agent")


def test_a_script_that_runs_out_is_an_error_of_the_agent() -> None:
    found = result(agent("hi"), said(user=Lines("again"), metrics=[contains("hi")]))
    assert "1 answers" in broken(found, "agent")


@pytest.mark.parametrize("reply", [ModelReply(""), ModelReply("  \n")])
def test_an_empty_response_is_an_error_of_the_agent(reply: ModelReply) -> None:
    found = result(agent(reply), said(metrics=[called("refund", never=True)]))
    assert "nothing" in broken(found, "agent")


def test_a_user_that_crashes_is_an_error_of_the_user_and_names_it() -> None:
    @step
    def user() -> str:
        raise ValueError("lost my voice")

    case = said(user=UserAgents(loop=user), metrics=[contains("hi")])
    assert "lost my voice" in broken(result(agent("hi"), case), "user_agent")


def test_a_missing_user_agent_is_an_error_that_says_what_to_add() -> None:
    case = said(metrics=[contains("hi")])
    message = broken(result(agent(call("approve", order=7), "hi"), case), "user_agent")
    assert "UserAgents(tools={'approve'" in message
    assert "'order': 7" in message


def test_an_unmocked_tool_ends_the_case_as_an_error_that_says_what_to_type() -> None:
    case = said(metrics=[contains("hi")])
    message = broken(result(agent(call("refund", order=7), "hi"), case), "system")
    assert "'refund': ...,  # refund(order)" in message
    assert "{'order': 7}" in message


def test_an_unknown_price_is_unmeasured_and_never_free() -> None:
    case = said(metrics=[cost_within(1.0)])
    found = result(agent(ModelReply("hi", model="dear-model")), case)
    assert isinstance(found.scores["cost_within(1.0)"], Unmeasured)
    broken(found, "metric")


def test_turns_that_were_never_reached_fail_by_name() -> None:
    ends = loop(agent("bye"), until=lambda: True, awaits_input=True)
    turns = [Turn("a", Expect(contains="bye")), Turn("b", Expect(contains="x"))]
    found = result(ends, Case("two", turns=turns))
    score = found.scores["expected_contains"]
    assert found.status == "failed"
    assert isinstance(score, Score)
    assert "never reached" in score.reason


def test_a_metric_that_acts_instead_of_looking_is_refused() -> None:
    @metric
    def pays(response: str) -> bool:
        return bool(refund(order=7))

    broken(result(agent("hi"), said(metrics=[pays])), "metric")


def test_a_metric_that_connects_is_refused_as_a_metric() -> None:
    @metric
    def phones(response: str) -> bool:
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", 9), timeout=0.1).close()
        return True

    assert "metrics only look" in broken(result(agent("hi"), said(metrics=[phones])), "metric")


def test_a_scripted_model_may_fail_once() -> None:
    flaky = agent(ConnectionError("refused"), "hi", retries=1)
    assert result(flaky, said(metrics=[contains("hi")])).passed


def test_a_user_who_returns_nothing_is_done() -> None:
    case = said(user=UserAgents(loop=lambda: None), metrics=[contains("hi")])
    found = result(agent("hi"), case)
    assert (found.status, found.ended) == ("passed", "completed")


def test_a_played_user_remembers_what_its_script_made_it_say() -> None:
    heard: list[Any] = []

    def answer(request: Any) -> str:
        heard.append([(m.role, m.text) for m in request.messages])
        return "bye"

    user = Agent("user", model=Scripted(then=answer))
    case = said(user=UserAgents(loop=user), stop=Stop(max_turns=2), metrics=[contains("hi")])
    result(agent("hi", "hi"), case)
    assert heard == [[("assistant", "hello"), ("user", "hi")]]


def test_a_metric_that_blocks_is_broken_off() -> None:
    @metric
    def sleeps(response: str) -> bool:
        time.sleep(30)
        return True

    broken(result(agent("hi"), said(metrics=[sleeps]), seconds_per_metric=0.1), "metric")


def outcomes(report: Report) -> list[Any]:
    """Everything about a report but its times."""
    return [(r.case_id, r.status, r.error, r.turns, dict(r.scores)) for r in report.results]


def mixed_cases() -> list[Case]:
    """One case for each outcome."""
    return [
        Case("passes", says="a", mocks={"refund": 1}, metrics=[called("refund")]),
        Case("fails", says="b", mocks={"refund": 1}, metrics=[contains("never said")]),
        Case("lacks a mock", says="c", metrics=[called("refund")]),
        Case("has no metric", says="d", mocks={"refund": 1}),
        Case("breaks a metric", says="e", mocks={"refund": 1}, metrics=[breaks]),
        Case(
            "is cut",
            says="f",
            mocks={"refund": 1},
            user=Lines("g"),
            stop=Stop(max_turns=1),
            metrics=[matches("done")],
        ),
        Case("runs dry", says="h", mocks={"refund": 1}, user=Lines("i"), metrics=[matches("x")]),
        Case("is unsure", says="j", mocks={"refund": 1}, metrics=[exact()]),
    ]


EXPECTED = ["passed", "failed", "error", "error", "error", "terminated", "error", "error"]


def test_eight_cases_at_once_end_like_one_by_one() -> None:
    clerk = agent(call("refund", order=7), "done")
    alone = rehearse(clerk, mixed_cases(), concurrency=1)
    assert [r.status for r in alone.results] == EXPECTED
    assert outcomes(rehearse(clerk, mixed_cases(), concurrency=8)) == outcomes(alone)


def test_sixteen_trials_of_one_agent_object_end_alike() -> None:
    clerk = agent(call("refund", order=7), "done")
    cases = [
        Case(f"trial-{i}", says="a", mocks={"refund": i}, metrics=[called("refund", {"order": 7})])
        for i in range(16)
    ]
    report = rehearse(clerk, cases, concurrency=16)
    assert report.passed
    calls = [[c.result for c in _calls(r)] for r in report.results]
    assert calls == [[i] for i in range(16)]


def _calls(found: CaseResult) -> Any:
    from greenroom.ledger import tool_calls

    assert found.ledger is not None
    return tool_calls(found.ledger)


async def test_several_evaluations_in_one_process_end_like_one() -> None:
    clerk = agent(call("refund", order=7), "done")
    alone = await evaluate(clerk, mixed_cases(), concurrency=1)
    several = await asyncio.gather(*(evaluate(clerk, mixed_cases()) for _ in range(5)))
    assert all(outcomes(report) == outcomes(alone) for report in several)
