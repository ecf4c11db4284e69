"""`event_count` measures how often something happened."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case
from greenroom.errors import BadMetric
from greenroom.ledger import AgentSaid, Ledger, Noted, ToolCalled
from greenroom.metrics import event_count, turns_within
from metrics.runs import (
    agent,
    answered,
    answered_tool,
    run,
    tool,
    user,
)

REFUNDS = run(
    user("Hi"), tool("refund", order=7, urgent=True), tool("refund", order=8), tool("mail")
)


async def outcome(metric: Any, ledger: Ledger, case: Case | None = None) -> Any:
    return (await score(ledger, [metric], case or Case("c")))[metric.name]


@pytest.mark.parametrize(
    "metric, count",
    [
        (event_count("tool_call", exactly=3), 3),
        (event_count("tool_called", at_least=1), 3),
        (event_count(ToolCalled, at_most=5), 3),
        (event_count("tool_call", lambda e: e.tool == "refund", exactly=2), 2),
        (event_count("tool_result", check=lambda n: n % 2 == 1), 3),
        (event_count("yield", exactly=0), 0),
    ],
)
async def test_event_count_measures_the_count_and_scores_0_or_1(metric, count):
    found = await outcome(metric, REFUNDS)
    assert (found.value, found.passed, found.measured) == (1.0, True, count)


@pytest.mark.parametrize(
    "metric, reason",
    [
        (event_count("tool_call", at_most=2), "3 × tool_call; expected at most 2"),
        (event_count("tool_call", exactly=1), "3 × tool_call; expected exactly 1"),
        (event_count(AgentSaid, at_least=1), "0 × AgentSaid; expected at least 1"),
    ],
)
async def test_event_count_fails_and_says_why(metric, reason):
    found = await outcome(metric, REFUNDS)
    assert (found.value, found.passed, found.reason) == (0.0, False, reason)


async def test_messages_are_what_either_side_said_and_not_answers_to_tools():
    ledger = run(
        user("Hi"), agent("Which?"), answered("This"), answered_tool("ask", 7), agent("Done")
    )
    assert (await outcome(event_count("message", exactly=4), ledger)).passed
    assert (await outcome(event_count("user_message", exactly=2), ledger)).passed
    assert (await outcome(event_count("answered", exactly=2), ledger)).passed


async def test_events_of_the_users_side_are_not_counted():
    ledger = run(user("Hi"), [Noted(name="thought", voice="user")])
    assert (await outcome(event_count("noted", exactly=0), ledger)).passed


@pytest.mark.parametrize(
    "make",
    [
        lambda: event_count("tool_calls", at_least=1),
        lambda: event_count(int, at_least=1),  # pyright: ignore[reportArgumentType]
        lambda: event_count("tool_call"),
        lambda: event_count("tool_call", at_least=1, exactly=1),
        lambda: event_count("tool_call", check=bool, exactly=1),
        lambda: event_count("tool_call", at_least=0),
        lambda: event_count("tool_call", at_most=1.5),  # pyright: ignore[reportArgumentType]
    ],
)
def test_event_count_refuses_what_could_not_be_measured(make):
    with pytest.raises(BadMetric):
        make()


def test_an_unknown_kind_is_refused_with_the_nearest_first():
    with pytest.raises(BadMetric, match="use one of: tool_call,"):
        event_count("tool_cal", at_least=1)


TWO_TURNS = run(user("Hi"), agent("Hello"), answered("Bye"), agent("Bye"))


@pytest.mark.parametrize(
    "bounds, passed, reason",
    [
        ({"at_most": 2}, True, "2 turns"),
        ({"at_most": 1}, False, "2 turns; expected at most 1"),
        ({"at_least": 3}, False, "2 turns; expected at least 3"),
        ({"at_least": 2, "at_most": 2}, True, "2 turns"),
    ],
)
async def test_turns_are_counted(bounds, passed, reason):
    metric = turns_within(**bounds)
    (found,) = (await score(TWO_TURNS, [metric], Case("c"))).values()
    assert (found.passed, found.reason, found.measured) == (passed, reason, 2)  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("bounds", [{}, {"at_least": 0}, {"at_most": -1}, {"at_most": "2"}])
def test_turns_need_a_bound_that_can_be_missed(bounds):
    with pytest.raises(BadMetric):
        turns_within(**bounds)
