"""The simulated user is judged too; one that breaks character says nothing about the agent."""

import json
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Ledger,
    Lines,
    NotApplicable,
    Score,
    Scripted,
    SimulatedUser,
    Unmeasured,
    evaluate,
    score,
    simulate,
)
from greenroom.metrics import contains
from greenroom.metrics.simulator import simulator_quality, user_turns
from greenroom.models import ModelRequest

CLERK = Agent("clerk", model=Scripted("Which order?", "Order 7 is refunded.", then="Bye."))
FINE = {"reasoning": "as described", "label": "in_character"}


def label(name: str) -> dict[str, str]:
    return {"reasoning": "because", "label": name}


def case(*answers: str, user: Any = None, **options: Any) -> Case:
    ada = SimulatedUser("Ada, in a hurry.", goal="Money back.", model=Scripted(*answers))
    return Case("c", "Money back.", user=user or ada, **options)


async def measured(played: Case, *verdicts: Any, **options: Any) -> Any:
    metric = simulator_quality(model=Scripted(*verdicts), **options)
    return (await score(await simulate(played, CLERK), [metric], played))[metric.name]


async def test_a_user_that_stays_in_character_passes() -> None:
    found = await measured(case("Order 7.", "</finished>"), FINE, FINE)
    assert isinstance(found, Score)
    assert (found.value, found.passed, found.measured) == (1.0, True, 2)


async def test_a_user_that_broke_character_leaves_the_run_unmeasured() -> None:
    found = await measured(case("Order 8.", "</finished>"), label("invented_fact"), FINE)
    assert isinstance(found, Unmeasured)
    assert found.phase == "user_agent"
    assert (
        "broke character in its reply 1 (invented_fact): because. It said 'Order 8.'" in found.why
    )


async def test_a_threshold_allows_for_a_few_slips() -> None:
    found = await measured(
        case("Order 8.", "</finished>"), label("invented_fact"), FINE, threshold=0.5
    )
    assert (found.value, found.passed) == (0.5, True)


async def test_a_user_that_repeats_the_agent_needs_no_judge() -> None:
    found = await measured(case(" Which  order?", "</finished>"))
    assert isinstance(found, Unmeasured)
    assert (found.phase, "spoke_as_assistant" in found.why) == ("user_agent", True)


async def test_a_judge_that_talks_nonsense_is_not_the_users_fault() -> None:
    found = await measured(case("Order 7.", "</finished>"), *["nonsense"] * 6)
    assert isinstance(found, Unmeasured)
    assert found.phase == "metric"


async def test_the_judge_sees_one_reply_with_what_came_before_and_who_the_person_is() -> None:
    asked: list[ModelRequest] = []

    def answer(request: ModelRequest) -> dict[str, str]:
        asked.append(request)
        return FINE

    played = case("Order 7.", "</finished>", expect=Expect(reference="Ask for the receipt."))
    await measured(played, answer, answer)
    first, last = asked
    assert "Persona: Ada, in a hurry." in first.instructions
    assert "Ask for the receipt." in first.last
    assert "Order 7 is refunded." not in first.last
    assert "Order 7 is refunded." in last.last
    assert "finished" in last.last


@pytest.mark.parametrize("user", [Lines("Order 7."), Agent("ada", model=Scripted("Hi", then="Ho"))])
async def test_users_that_are_no_simulated_person_are_not_judged(user: Any) -> None:
    assert isinstance(await measured(case(user=user)), NotApplicable)


async def test_scripted_words_are_not_judged_but_told() -> None:
    person = SimulatedUser("Ada.", model=Scripted("Seven.", "</finished>"))
    ledger = await simulate(case(user=Lines("Order 7.", then=person)), CLERK)
    assert [turn.reply for turn in user_turns(ledger)] == ["Seven.", "</finished>"]
    assert user_turns(ledger)[0].before == [
        {"heard": None, "said": "Money back."},
        {"heard": "Which order?", "said": "Order 7."},
        {"heard": "Order 7 is refunded."},
    ]


async def test_an_answer_given_again_counts_once() -> None:
    person = SimulatedUser(
        goals=["x"], model=Scripted("<done 1>?</done>", "Order 7.", "</finished>")
    )
    ledger = Ledger.loads((await simulate(case(user=person), CLERK)).dumps())
    assert [turn.reply for turn in user_turns(ledger)] == ["Order 7.", "</finished>"]


async def test_a_run_whose_user_broke_character_is_an_error_of_the_user_not_of_the_agent() -> None:
    played = case("Order 8.", "</finished>", metrics=[contains("never said")])
    quality = simulator_quality(model=Scripted(json.dumps(label("invented_fact")), then=FINE))
    result = (await evaluate(CLERK, [played], metrics=[quality])).results[0]
    assert result.status == "error"
    assert result.error is not None
    assert result.error.phase == "user_agent"
    assert result.blame is not None
    assert result.blame.whom == "user"
