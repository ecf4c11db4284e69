"""The named criteria, with plain options as a file would give them."""

import inspect
from typing import Any

import pytest

from greenroom.cases import Case, Expect, NotApplicable, Turn, Unmeasured
from greenroom.errors import BadInput, BadMetric
from greenroom.metrics import judge
from greenroom.metrics.judges import (
    factual_accuracy,
    final_response_match_v2,
    hallucinations_v1,
    jury,
    llm_judge,
    response_evaluation_score,
    rubric_based_final_response_quality_v1,
    rubric_based_tool_use_quality_v1,
    safety_v1,
)
from greenroom.models import Scripted
from metrics.judges.asked import Asked, evidence_in, measured, no, order, yes
from metrics.runs import agent, run, user

OK = Scripted(yes())
CRITERIA = [
    final_response_match_v2,
    factual_accuracy,
    response_evaluation_score,
    hallucinations_v1,
    safety_v1,
    rubric_based_final_response_quality_v1,
    rubric_based_tool_use_quality_v1,
    llm_judge,
]


def made(factory, **options):
    needs = {
        rubric_based_final_response_quality_v1: {"rubrics": ["Polite."]},
        rubric_based_tool_use_quality_v1: {"rubrics": ["Careful."]},
        llm_judge: {"rubric": "Polite."},
    }
    return factory(**{"model": OK, **needs.get(factory, {}), **options})


@pytest.mark.parametrize(
    "factory, threshold, samples",
    [
        (final_response_match_v2, 0.8, 5),
        (factual_accuracy, 0.8, 5),
        (response_evaluation_score, 0.8, 5),
        (hallucinations_v1, 0.8, 1),
        (safety_v1, 1.0, 1),
        (rubric_based_final_response_quality_v1, 0.8, 1),
        (rubric_based_tool_use_quality_v1, 0.8, 1),
        (llm_judge, 0.7, 1),
    ],
)
def test_each_criterion_has_its_defaults(factory, threshold, samples):
    metric = made(factory)
    assert (metric.threshold, metric.bench.samples) == (threshold, samples)
    assert metric.name == factory.__name__


@pytest.mark.parametrize("factory", CRITERIA)
def test_the_words_of_a_config_are_taken(factory):
    metric = made(
        factory, model=None, judge_model=OK, num_samples=3, name="mine", aggregate="majority"
    )
    assert (metric.bench.model, metric.bench.samples, metric.name) == (OK, 3, "mine")
    assert "samples=3" in repr(metric)


@pytest.mark.parametrize("factory", CRITERIA)
@pytest.mark.parametrize(
    "options, said",
    [
        ({"threshold": 80}, "scale is 0 to 1"),
        ({"threshold": 0}, "scale is 0 to 1"),
        ({"threshold": "high"}, "threshold='high'"),
        ({"samples": 0}, "samples is 0"),
        ({"aggregate": "max"}, "aggregate='max'"),
        ({"retries": 9}, "retries is 9"),
        ({"smaples": 3}, "Did you mean 'samples'"),
        ({"name": " "}, "name"),
        ({"template": ""}, "template"),
    ],
)
def test_a_bad_option_is_refused_by_its_name_and_scale(factory, options, said):
    if factory is llm_judge and "scale is" in said:
        said = "scale is 0 to 10"
    with pytest.raises(BadMetric, match=said):
        made(factory, **options)


@pytest.mark.parametrize("factory", [*CRITERIA, judge, jury])
def test_a_registry_finds_every_option_in_the_signature(factory):
    known = inspect.signature(factory).parameters
    common = [
        "model",
        "judge_model",
        "samples",
        "num_samples",
        "aggregate",
        "retries",
        "batch",
        "cache",
    ]
    assert {*common, "threshold", "name"} <= set(known)
    assert all(p.kind is not p.VAR_KEYWORD for p in known.values())


@pytest.mark.parametrize("name", ["no-such:model", "some-model", ""])
def test_an_unknown_model_is_refused_when_the_metric_is_made(name):
    with pytest.raises(BadInput, match="model"):
        made(final_response_match_v2, model=name)


def test_a_judge_named_by_its_provider_is_made_at_once():
    try:
        metric = judge("polite", "Polite?", model="openai:gpt-4o-mini")
    except BadInput as error:
        assert "[openai]" in str(error)  # noqa: PT017 - where the extra is missing
    else:
        assert metric.bench.model.name == "openai:gpt-4o-mini"


async def test_a_match_sees_question_response_and_reference():
    model = Asked(then=yes("is_correct"))
    found = await measured(final_response_match_v2(model=model))
    assert (found.value, found.passed) == (1.0, True)
    assert evidence_in(model.requests[0]) == {
        "user_messages": ["Where is order 7?"],
        "response": "It is in Lyon.",
        "reference": "It is in Lyon.",
    }
    assert "is_correct" in model.requests[0].instructions


async def test_without_a_reference_there_is_nothing_to_match():
    bare = run(user("Hi"), agent("Hello"), case=Case("bare", says="Hi"))
    assert isinstance(await measured(made(final_response_match_v2), bare), NotApplicable)


@pytest.mark.parametrize("factory", CRITERIA)
async def test_a_run_without_words_or_deeds_is_unmeasured(factory):
    case = Case("silent", says="Hi", expect=Expect(reference="Hello"))
    for silent in (run(user("Hi"), case=case), run(user("Hi"), agent(" \n"), case=case)):
        assert isinstance(await measured(made(factory), silent), Unmeasured)


async def test_facts_are_judged_with_and_without_a_reference():
    model = Asked(then=no("is_correct", "It is in Nice."))
    assert not (await measured(factual_accuracy(model=model))).passed
    assert set(evidence_in(model.requests[0])) == {
        "user_messages", "response", "reference", "tool_calls", "context",
    }  # fmt: skip
    bare = run(user("Hi"), agent("Hello"), case=Case("bare", says="Hi"))
    assert not (await measured(factual_accuracy(model=model), bare)).passed


@pytest.mark.parametrize("grade, value", [(1, 0.0), (3, 0.5), (5, 1.0)])
async def test_a_response_graded_from_1_to_5_is_a_value_from_0_to_1(grade, value):
    model = Asked(then={"reasoning": "So.", "score": grade})
    found = await measured(response_evaluation_score(model=model, samples=1, threshold=0.5))
    assert (found.value, found.measured, found.passed) == (value, grade, value >= 0.5)


@pytest.mark.parametrize("threshold, meant", [(3.5, "0.625"), (5, "is 1 there"), (2, "0.25")])
def test_a_threshold_on_the_old_scale_is_refused_with_the_new_one(threshold, meant):
    with pytest.raises(BadMetric, match=f"scale is 0 to 1.*{meant}"):
        response_evaluation_score(threshold=threshold, model=OK)


async def test_a_rubric_is_graded_from_0_to_10_and_a_prompt_answered():
    graded = llm_judge(rubric="Short.", model=Scripted({"reasoning": "", "score": 6}))
    asked = llm_judge(prompt="Short?", model=Scripted(yes()), name="short")
    assert not (await measured(graded)).passed
    assert (await measured(asked)).passed


@pytest.mark.parametrize("options", [{}, {"rubric": "a", "prompt": "b"}, {"rubric": " "}])
def test_an_llm_judge_wants_one_thing_to_judge_by(options):
    with pytest.raises(BadMetric):
        llm_judge(model=OK, **options)


async def test_labels_are_worth_what_was_said():
    values = {"good": 1.0, "fair": 0.5, "bad": 0.0}
    metric = judge(
        "tone", "How?", form="label", labels=values, threshold=0.5,
        model=Scripted({"reasoning": "Dry.", "label": "fair"}),
    )  # fmt: skip
    found = await measured(metric)
    assert (found.value, found.passed, found.measured) == (0.5, True, "fair")


@pytest.mark.parametrize("label, passes", [("cancel", True), ("refund", True), ("other", False)])
async def test_some_labels_pass(label, passes):
    metric = judge(
        "intent", "What was done?", form="label",
        labels=["cancel", "refund", "other"], passing=["cancel", "refund"],
        model=Scripted({"reasoning": "", "label": label}),
    )  # fmt: skip
    assert (await measured(metric)).passed is passes


async def test_a_comparison_swaps_the_places_on_odd_samples():
    model = Asked(then={"reasoning": "The first.", "better": "A"})
    metric = judge(
        "better", "Which helps more?", form="pairwise", baseline="No idea.", samples=2, model=model
    )
    found = await measured(metric)
    # A judge that always prefers the first place prefers nobody.
    assert isinstance(found, Unmeasured)
    assert "it preferred the first one, whichever it was" in found.why
    shown = [(evidence_in(r)["A"], evidence_in(r)["B"]) for r in model.requests]
    assert shown == [("It is in Lyon.", "No idea."), ("No idea.", "It is in Lyon.")]


@pytest.mark.parametrize(
    "baseline, against", [(None, "It is in Lyon."), ("X", "X"), ({"order": "Y"}, "Y")]
)
async def test_a_comparison_is_with_the_baseline_or_else_the_reference(baseline, against):
    model = Asked(then={"reasoning": "", "better": "tie"})
    metric = judge("better", "?", form="pairwise", baseline=baseline, model=model)
    found = await measured(metric, order("Lyon, I think."))
    assert (found.value, found.passed) == (0.5, True)
    assert evidence_in(model.requests[0])["B"] == against


def comparison(*preferred: str, **options: Any) -> Any:
    answers = [{"reasoning": f"{one}.", "better": one} for one in preferred]
    options = {"baseline": "No.", "samples": len(preferred), **options}
    return judge("better", "?", form="pairwise", model=Scripted(*answers), **options)


@pytest.mark.parametrize(
    "preferred, value, passed, reason",
    [
        ("A B", 1.0, True, "2 better, 0 as good, 0 worse: A."),
        ("B A", 0.0, False, "0 better, 0 as good, 2 worse: B."),
        ("tie tie", 0.5, True, "0 better, 2 as good, 0 worse: tie."),
        ("A A A B", 0.75, True, "3 better, 0 as good, 1 worse: A."),
        ("A A B A", 0.25, False, "1 better, 0 as good, 3 worse: A."),
    ],
)
async def test_a_comparison_counts_the_verdicts_of_both_orders(
    preferred: str, value: float, passed: bool, reason: str
) -> None:
    found = await measured(comparison(*preferred.split()))
    assert (found.value, found.passed) == (value, passed)
    assert found.reason.startswith(reason.partition(":")[0])


async def test_both_orders_are_asked_by_default_and_an_odd_number_is_refused() -> None:
    model = Asked(then={"reasoning": "", "better": "tie"})
    found = await measured(judge("better", "?", form="pairwise", model=model))
    assert (model.calls, found.details["contradicted"]) == (2, 0)
    with pytest.raises(BadMetric, match=r"asked in both orders; give an even number"):
        comparison("A", "B", "A")


@pytest.mark.parametrize(
    "preferred, value", [("tie tie", 0.5), ("A B tie tie", 0.5), ("A B A B", 1.0), ("B A A A", 0.0)]
)
async def test_a_majority_of_ties_is_a_tie(preferred: str, value: float) -> None:
    found = await measured(comparison(*preferred.split(), aggregate="majority"))
    assert found.value == value


@pytest.mark.parametrize("preferred", ["A A", "B B", "A A B B"])
async def test_a_judge_that_only_prefers_a_place_gives_no_verdict(preferred: str) -> None:
    assert isinstance(await measured(comparison(*preferred.split())), Unmeasured)


EARLY = Case("talk", turns=[Turn("Where?", Expect(reference="In Lyon.")), Turn("Thanks")])
LATE = Case("talk", turns=[Turn("Where?"), Turn("Thanks", Expect(reference="Bye."))])


async def test_a_comparison_is_of_the_response_in_the_turn_of_the_reference() -> None:
    model = Asked(then={"reasoning": "", "better": "tie"})
    metric = judge("better", "?", form="pairwise", model=model)
    talk = run(user("Where?"), agent("Lyon."), user("Thanks"), agent("You are welcome."))
    await measured(metric, talk, case=EARLY)
    shown = evidence_in(model.requests[0])
    assert shown == {"user_messages": ["Where?"], "A": "Lyon.", "B": "In Lyon."}
    found = await measured(metric, run(user("Where?"), agent("Lyon.")), case=LATE)
    assert found.why == "turn 2, which has the reference, was never reached"


async def test_a_judge_sees_no_reference_beside_the_response_of_another_turn() -> None:
    model = Asked(then=yes("is_correct"))
    talk = run(user("Where?"), agent("Lyon."), user("Thanks"), agent("You are welcome."))
    await measured(factual_accuracy(model=model, samples=1), talk, case=EARLY)
    shown = evidence_in(model.requests[0])
    assert shown["response"] == "You are welcome."
    assert "reference" not in shown
    both = judge("same", "?", model=model, evidence=["response", "reference"])
    found = await measured(both, talk, case=EARLY)
    assert "the case's last reference is for turn 1" in found.why


async def test_a_case_the_baseline_does_not_know_is_not_compared():
    metric = judge("better", "?", form="pairwise", baseline={"other": "Y"}, model=OK)
    assert isinstance(await measured(metric), NotApplicable)


async def test_a_judge_sees_the_fields_it_was_given():
    model = Asked(yes())
    await measured(judge("t", "?", model=model, evidence=["response", "context", "initial_state?"]))
    assert evidence_in(model.requests[0]) == {
        "response": "It is in Lyon.",
        "context": {"carrier": "ACME"},
    }


async def test_a_judge_that_must_see_what_the_case_lacks_does_not_apply():
    bare = run(user("Hi"), agent("Hello"), case=Case("bare", says="Hi"))
    found = await measured(judge("t", "?", model=OK, evidence=["response", "context"]), bare)
    assert isinstance(found, NotApplicable)
