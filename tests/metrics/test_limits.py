"""`cost_within`, `tokens_within` and `completed_within` measure money, tokens and time."""

import math
from typing import Any

import pytest
from msgspec.structs import replace

from greenroom import Agent, Scripted, loop, perform, score
from greenroom.cases import Case, NotApplicable, Unmeasured
from greenroom.errors import AgentFailed, BadMetric
from greenroom.ledger import Ledger
from greenroom.metrics import (
    called,
    completed_within,
    contains,
    cost_within,
    forbidden_calls,
    tokens_within,
    turns_within,
)
from greenroom.results.endings import NOT_OVER
from metrics.runs import (
    agent,
    replied,
    run,
    user,
)


async def outcome(metric: Any, ledger: Ledger, case: Case | None = None) -> Any:
    return (await score(ledger, [metric], case or Case("c")))[metric.name]


async def test_cost_within_measures_the_cost():
    spent = run(user("Hi"), replied(0.02), replied(0.03))
    found = await outcome(cost_within(0.05), spent)
    assert (found.passed, found.measured) == (True, pytest.approx(0.05))
    found = await outcome(cost_within(0.04), spent)
    assert (found.value, found.passed) == (0.0, False)
    assert found.reason == "cost 0.05 USD, over the budget of 0.04"
    found = await outcome(cost_within(0.00002), run(user("Hi"), replied(0.00003)))
    assert found.reason == "cost 0.00003 USD, over the budget of 0.00002"


async def test_an_unknown_price_is_unmeasured_and_never_0():
    found = await outcome(cost_within(100), run(user("Hi"), replied(0.02), replied(None)))
    assert found == Unmeasured("the cost is unknown: no price for m-1")


async def test_the_users_models_do_not_count():
    theirs = [replace(event, voice="user") for event in replied(None)]
    assert (await outcome(cost_within(0.02), run(user("Hi"), theirs, replied(0.02)))).passed


@pytest.mark.parametrize(
    "limits, passed, reason",
    [
        ({"total": 30}, True, "30 of 30 total tokens"),
        ({"total": 29}, False, "30 of 29 total tokens; too many total"),
        ({"input": 20, "output": 10}, True, "20 of 20 input, 10 of 10 output tokens"),
        ({"input": 19, "output": 9}, False, "too many input and output"),
        ({"output": 0}, False, "10 of 0 output tokens"),
    ],
)
async def test_tokens_within_measures_the_tokens(limits, passed, reason):
    found = await outcome(tokens_within(**limits), run(user("Hi"), replied(), replied()))
    assert (found.value, found.passed) == (float(passed), passed)
    assert reason in found.reason
    assert found.measured == {"input": 20, "output": 10, "total": 30}


async def test_a_reply_that_does_not_say_what_it_used_leaves_the_tokens_unmeasured():
    found = await outcome(tokens_within(9), run(user("Hi"), replied(usage=None), replied()))
    assert found == Unmeasured("the usage is unknown: no token counts from m-1")


@pytest.mark.parametrize("limits", [{}, {"total": -1}, {"input": 1.5}, {"output": True}])
def test_limits_of_tokens_are_whole_numbers(limits):
    with pytest.raises(BadMetric):
        tokens_within(**limits)


@pytest.mark.parametrize("left", range(1, 4))
@pytest.mark.parametrize(
    "metric",
    [completed_within(100), turns_within(9), forbidden_calls("x_*"), called("x", never=True)],
)
async def test_a_record_without_an_end_proves_nothing(metric: Any, left: int):
    whole = run(user("Hi"), agent("Hello."))
    assert (await outcome(metric, whole)).passed
    assert await outcome(metric, Ledger(list(whole)[:left])) == NOT_OVER


def greets(messages: list[Any]) -> str:
    if messages[-1]["content"] == "fail":
        raise ValueError("broken")
    return "Hello."


LIVE = {"a flow": Agent("clerk", model=Scripted("Hello.", "Hello.")), "a function": greets}


@pytest.mark.parametrize("live", LIVE.values(), ids=LIVE)
async def test_a_live_conversation_is_measured_as_far_as_it_went(live: Any):
    ledger = await perform(live, "Hi")
    assert (await outcome(contains("Hello"), ledger)).passed
    in_between = Ledger(list(ledger)[:-1])
    assert await outcome(contains("Hello"), in_between) == NOT_OVER
    ledger = await perform(live, "Hi again", ledger=ledger)
    assert (await outcome(contains("Hello"), ledger)).passed
    assert type(await outcome(completed_within(100), ledger)) is Unmeasured


async def test_a_live_loop_is_measured_whenever_it_awaits_its_user():
    clerk = Agent("clerk", model=Scripted("Hello.", "Fine.", "Done."))
    chat = loop(clerk, until=lambda output: output == "Done.", awaits_input=True)
    ledger = None
    for said in ("Hi", "how", "bye"):
        ledger = await perform(chat, said, ledger=ledger)
        assert (await outcome(turns_within(5), ledger)).passed
        while_it_worked = Ledger(list(ledger)[:-1])
        assert await outcome(turns_within(5), while_it_worked) == NOT_OVER


async def test_a_live_conversation_that_failed_proves_nothing():
    ledger = await perform(greets, "Hi")
    with pytest.raises(AgentFailed, match="broken"):
        await perform(greets, "fail", ledger=ledger)
    assert await outcome(forbidden_calls("x_*"), ledger) == NOT_OVER


async def test_completed_within_measures_the_time():
    quick = run(user("Hi"), agent("Hello"), seconds=2.0)
    found = await outcome(completed_within(2.5), quick)
    assert (found.passed, found.measured) == (True, 2.0)
    found = await outcome(completed_within(1.5), quick)
    assert (found.passed, found.reason) == (False, "took 2 s; the limit is 1.5 s")


@pytest.mark.parametrize("reason", ["max_seconds", "max_turns"])
async def test_a_run_that_was_cut_did_not_complete(reason):
    found = await outcome(completed_within(100), run(user("Hi"), reason=reason))
    assert (found.passed, reason in found.reason) == (False, True)


@pytest.mark.parametrize("number", [-1, math.nan, math.inf, "1", True, None])
def test_budgets_are_numbers(number):
    with pytest.raises(BadMetric):
        cost_within(number)
    with pytest.raises(BadMetric):
        completed_within(number)


@pytest.mark.parametrize("metric", [cost_within(1), tokens_within(100)])
async def test_answers_from_a_cache_do_not_say_what_the_agent_uses(metric: Any) -> None:
    kept = [replace(event, source="cached") for event in replied()]
    found = await outcome(metric, run(user("Hi"), kept, replied(0.02)))
    assert found == NotApplicable(
        "answers in this trial come from a cache, which cost nothing and used no tokens"
    )


async def test_the_cost_and_tokens_of_a_replay_are_those_of_the_recording() -> None:
    again = run(user("Hi"), [replace(event, source="replayed") for event in replied(0.02)])
    assert "0.02 USD when it was recorded, within" in (await outcome(cost_within(1), again)).reason
    found = await outcome(tokens_within(100), again)
    assert found.reason == "15 of 100 total tokens when it was recorded"
