"""Each turn's response is held against its own reference."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Expect, Turn, Unmeasured
from greenroom.metrics import judge
from greenroom.metrics.judges import final_response_match_v2, jury
from greenroom.models import Scripted
from metrics.judges.asked import Asked, evidence_in, measured, no, yes
from metrics.runs import agent, run, user

TALK = Case(
    "talk",
    turns=[
        Turn("Where is it?", Expect(reference="Which order?")),
        Turn("Thanks, and?"),
        Turn("Order 7.", Expect(reference="It is in Lyon.")),
    ],
)
WHOLE = [
    user("Where is it?"), agent("Which one?"),
    user("Thanks, and?"), agent("Well?"),
    user("Order 7."), agent("In Lyon."),
]  # fmt: skip


def match(*answers: Any, **options: Any):
    model = Asked(*answers)
    return model, final_response_match_v2(model=model, samples=1, **options)


async def test_every_turn_with_a_reference_is_judged_by_its_own():
    model, metric = match(yes("is_correct"), no("is_correct", "It says Nice."))
    found = await measured(metric, run(*WHOLE, case=TALK))
    assert (found.value, found.passed, found.reason) == (0.5, False, "turn 3: It says Nice.")
    assert [evidence_in(request) for request in model.requests] == [
        {"user_messages": ["Where is it?"], "response": "Which one?", "reference": "Which order?"},
        {
            "user_messages": ["Where is it?", "Thanks, and?", "Order 7."],
            "response": "In Lyon.",
            "reference": "It is in Lyon.",
        },
    ]
    assert [turn["turn"] for turn in found.details["turns"]] == [1, 3]
    assert found.details["attempts"] == 2


async def test_several_turns_are_compared_in_one_question_if_asked_for():
    answers = [
        {"id": "turn_1", "reasoning": "Same.", "is_correct": True},
        {"id": "turn_3", "reasoning": "It says Nice.", "is_correct": False},
    ]
    model, metric = match({"answers": answers}, batch=10)
    found = await measured(metric, run(*WHOLE, case=TALK))
    assert (found.value, found.passed, found.reason) == (0.5, False, "turn 3: It says Nice.")
    assert model.calls == 1
    shown = evidence_in(model.requests[0])
    assert {turn: texts["response"] for turn, texts in shown.items()} == {
        "turn_1": "Which one?",
        "turn_3": "In Lyon.",
    }


async def test_an_answer_that_leaves_a_turn_out_is_asked_for_again():
    one, other = ({"id": f"turn_{n}", "reasoning": "So.", "is_correct": n == 3} for n in (1, 3))
    model, metric = match({"answers": [other]}, {"answers": [other, one]}, batch=10)
    found = await measured(metric, run(*WHOLE, case=TALK))
    assert (found.value, found.reason, model.calls) == (0.5, "turn 1: So.", 2)


async def test_a_turn_never_reached_is_not_asked_about_and_not_met():
    model, metric = match(yes("is_correct"))
    found = await measured(metric, run(*WHOLE[:2], case=TALK))
    assert (found.value, found.passed, model.calls) == (0.5, False, 1)
    assert found.reason == "turn 3: never reached"
    assert found.details["turns"][1] == {"turn": 3, "reached": False}


async def test_a_run_that_came_to_no_such_turn_is_unmeasured():
    case = Case("late", turns=[Turn("Hi"), Turn("And?", Expect(reference="Yes."))])
    _, metric = match()
    assert isinstance(
        await measured(metric, run(user("Hi"), agent("Hello"), case=case)), Unmeasured
    )


@pytest.mark.parametrize("said", ["", " ", "\n"])
async def test_an_empty_response_in_a_turn_is_unmeasured(said):
    events = [*WHOLE[:1], agent(said), *WHOLE[2:]]
    _, metric = match(yes("is_correct"), yes("is_correct"))
    found = await measured(metric, run(*events, case=TALK))
    assert found == Unmeasured("the agent's response is empty in turn 1")


async def test_votes_on_many_turns_stop_once_the_mean_is_certain_if_asked_for():
    for early_stop, calls in ((False, 10), (True, 4)):
        model = Asked(then=no("is_correct"))
        metric = final_response_match_v2(model=model, early_stop=early_stop)
        found = await measured(metric, run(*WHOLE, case=TALK))
        assert (found.value, model.calls) == (0.0, calls)


async def test_who_asks_for_the_meaning_does_not_want_the_words_compared_as_well():
    metric = final_response_match_v2(model=Scripted(then=yes("is_correct")))
    for asked in (metric, jury([metric, judge("tone", "?", model=Scripted(yes()))])):
        found = await score(run(*WHOLE, case=TALK), [asked])
        assert list(found) == [asked.name]


async def test_an_exact_response_that_is_expected_serves_as_reference():
    case = Case("exact", says="Where?", expect=Expect(response="In Lyon."))
    metric = final_response_match_v2(model=Scripted(then=yes("is_correct")))
    found = await measured(metric, run(user("Where?"), agent("It is in Lyon."), case=case))
    assert found.passed
