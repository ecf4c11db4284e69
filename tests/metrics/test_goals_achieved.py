"""Goals are reached when a judge can show where; what the user claims proves nothing."""

import json
from typing import Any

import pytest

from greenroom import Case, Ledger, NotApplicable, Score, Scripted, SimulatedUser, Unmeasured, score
from greenroom.metrics.goals import goals_achieved
from greenroom.models import ModelRequest
from metrics.runs import agent, run, tool, user

GOALS = ["the refund", "an apology"]


def case(**person: Any) -> Case:
    return Case("c", "Money back.", user=SimulatedUser("Ada.", model="openai:none", **person))


def refunded(played: Case) -> Ledger:
    return run(
        user("Money back."),
        tool("refund", {"status": "done", "order": 7}, order=7),
        agent("Order 7 is refunded."),
        user("Thanks, and you said sorry."),
        agent("Anything else?"),
        case=played,
    )


def says(reached: bool, quote: str = "", **more: Any) -> str:
    return json.dumps({"reasoning": "because", "reached": reached, "quote": quote, **more})


def by_goal(**answers: str) -> Scripted:
    """A judge that answers by the goal it is asked about."""

    def answer(request: ModelRequest) -> str:
        asked = request.instructions.partition("The goal: ")[2]
        return next(a for word, a in answers.items() if word in asked.split("\n")[0])

    return Scripted(then=answer)


async def measured(played: Case, model: Scripted, **options: Any) -> Any:
    metric = goals_achieved(model=model, **options)
    return (await score(refunded(played), [metric], played))[metric.name]


async def test_each_goal_is_judged_and_shown_by_a_quote() -> None:
    judge = by_goal(refund=says(True, "Order 7 is refunded."), apology=says(False))
    found = await measured(case(goals=GOALS), judge)
    assert isinstance(found, Score)
    assert (found.value, found.passed, found.measured) == (0.5, False, 1)
    assert found.reason == "1 of 2 goals were reached; not 'an apology'"
    assert list(found.evidence) == ["Order 7 is refunded."]


async def test_all_goals_must_be_reached_unless_told_otherwise() -> None:
    judge = by_goal(refund=says(True, "Order 7 is refunded."), apology=says(False))
    assert (await measured(case(goals=GOALS), judge, threshold=0.5)).passed
    whole = await measured(case(goal="get the refund"), Scripted(then=says(True, "is refunded")))
    assert (whole.value, whole.passed, whole.reason) == (1.0, True, "the goal was reached")


@pytest.mark.parametrize(
    "quote", ["Order 7 is refunded.", '"status": "done"', '{"status": "done", "order": 7}']
)
async def test_the_agents_words_and_the_tools_answers_can_be_quoted(quote: str) -> None:
    found = await measured(case(goals=["the refund"]), Scripted(then=says(True, quote)))
    assert isinstance(found, Score)
    assert found.passed


@pytest.mark.parametrize("quote", ["", "I refunded it.", "you said sorry", "Money back.", "fund"])
async def test_a_quote_that_no_agent_and_no_tool_said_is_no_answer(quote: str) -> None:
    found = await measured(case(goals=["an apology"]), Scripted(then=says(True, quote)))
    assert isinstance(found, Unmeasured)
    assert "`quote` must be exact words" in found.why


async def test_a_judge_that_misquotes_is_asked_again() -> None:
    judge = Scripted(says(True, "invented"), says(True, "Order 7 is refunded."))
    assert (await measured(case(goals=["the refund"]), judge)).passed


@pytest.mark.parametrize(
    "answer",
    [
        "yes",
        says(True, "Order 7 is refunded.", more=1),
        '{"reached": true, "quote": "Order 7 is refunded."}',
        '{"reasoning": "x", "reached": "true", "quote": "Order 7 is refunded."}',
        '{"reasoning": "x", "reached": true, "quote": null}',
    ],
)
async def test_nonsense_leaves_the_goals_unmeasured(answer: str) -> None:
    found = await measured(case(goals=["the refund"]), Scripted(then=answer))
    assert isinstance(found, Unmeasured)


async def test_several_goals_may_be_asked_about_at_once() -> None:
    sheet = {
        "answers": [
            {"id": "goal_1", "reasoning": "a", "reached": True, "quote": "Order 7 is refunded."},
            {"id": "goal_2", "reasoning": "b", "reached": False, "quote": ""},
        ]
    }
    found = await measured(case(goals=GOALS), Scripted(json.dumps(sheet)), batch=5)
    assert (found.value, found.details["attempts"]) == (0.5, 1)


@pytest.mark.parametrize(
    "played", [Case("c", "Hi"), Case("c", "Hi", user=SimulatedUser("Ada.", model="openai:none"))]
)
async def test_a_user_without_goals_makes_it_not_applicable(played: Case) -> None:
    assert isinstance(await measured(played, Scripted()), NotApplicable)


async def test_goals_are_read_from_the_recorded_case_of_a_live_user() -> None:
    live = Case("c", "Hi", user=SimulatedUser(goals=["the refund"], model=Scripted("Hi")))
    metric = goals_achieved(model=Scripted(then=says(True, "Order 7 is refunded.")))
    ledger = Ledger.loads(refunded(live).dumps())
    assert (await score(ledger, [metric]))["goals_achieved"].passed  # pyright: ignore[reportAttributeAccessIssue]
