"""Scenarios of other tools become cases whose user improvises."""

from typing import Any

import pytest

from greenroom import SimulatedUser, Stop
from greenroom.cases.scenarios import scenario_case, scenario_cases
from greenroom.errors import BadFile

REFUND = {
    "scenario_id": "refund",
    "description": "Somebody wants money back.",
    "starting_prompt": "Money back!",
    "conversation_plan": "Give the order's number only when asked.",
    "goals": ["a refund", "an apology"],
    "max_turns": 4,
}


def test_a_scenario_is_a_case_with_a_simulated_user() -> None:
    case = scenario_case(REFUND, model="openai:gpt-4o-mini")
    assert (case.id, case.says, case.stop) == ("refund", "Money back!", Stop(max_turns=4))
    assert case.description == "Somebody wants money back."
    assert case.user == SimulatedUser(
        plan="Give the order's number only when asked.",
        goals=["a refund", "an apology"],
        model="openai:gpt-4o-mini",
    )


def test_a_scenario_that_names_no_limit_and_no_id_gets_usual_ones() -> None:
    data = [{"starting_prompt": "a", "conversation_plan": "b"}, {"startingPrompt": "c"}]
    for given in (data, {"scenarios": data}):
        cases = scenario_cases(given)
        assert [(c.id, c.says, c.stop.max_turns) for c in cases] == [
            ("scenario-1", "a", 10),
            ("scenario-2", "c", 10),
        ]


def test_a_scenario_may_say_who_the_user_is_and_what_counts_as_success() -> None:
    given = {
        "persona": "In a hurry.",
        "success_criteria": "A refund within 5 turns.",
        "stop_signal": "BYE",
        "model": "google:gemini-2.5-flash",
    }
    user = scenario_case(given, model="openai:gpt-4o").user
    assert user == SimulatedUser(
        "In a hurry.",
        goal="A refund within 5 turns.",
        stop_signal="BYE",
        model="google:gemini-2.5-flash",
    )


def test_a_persona_of_behaviours_becomes_one_text() -> None:
    persona = {
        "id": "novice",
        "description": "New to all this.",
        "behaviors": [{"name": "asks", "behaviorInstructions": ["Ask twice."]}, "odd"],
    }
    assert scenario_case({"userPersona": persona}).user.persona == "New to all this.\n- Ask twice."


@pytest.mark.parametrize(
    "data, complaint",
    [
        (["a"], "is 'a', but a scenario is a mapping"),
        ([{"promt": "a"}], "unknown field 'promt'"),
        ([{"plan": "a", "conversation_plan": "b"}], "gives 'plan' twice"),
        ([{"max_turns": 0}], "would end a trial before it begins"),
        ([{"max_turns": "4"}], "should be a whole number"),
        ([{"goals": "a refund"}], "goals: 'a refund' should be a list"),
        ([{"persona": 5}], "write it as a string"),
        ([{"scenario_id": "  "}], "give it one that is text"),
        ([{"scenario_id": 7}], "7 should be a string"),
        ({"eval_cases": []}, "holds no list of scenarios"),
        ("scenarios", "holds no list of scenarios"),
        (None, "holds no list of scenarios"),
    ],
)
def test_what_is_no_scenario_is_refused_with_its_place(data: Any, complaint: str) -> None:
    with pytest.raises(BadFile, match=complaint) as refused:
        scenario_cases(data, "s.json")
    assert str(refused.value).startswith("s.json")
