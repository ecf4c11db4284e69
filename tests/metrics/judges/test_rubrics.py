"""Rubrics: each judged by itself, weighed, and batched only if asked for."""

import json
from typing import Any

import pytest

from greenroom.errors import BadMetric
from greenroom.metrics import judge
from greenroom.metrics.judges import (
    Rubric,
    rubric_based_final_response_quality_v1,
    rubric_based_tool_use_quality_v1,
    rubric_template,
)
from greenroom.models import ModelRequest, Scripted
from metrics.judges.asked import Asked, evidence_in, measured, no, yes
from metrics.runs import agent, run, user

THREE: list[Any] = [
    {"id": "short", "content": "It is short."},
    {"id": "right", "content": "It is right.", "weight": 3},
    {"id": "kind", "content": "It is kind."},
]


def quality(*answers, rubrics=THREE, **options):
    model = Asked(*answers)
    return model, rubric_based_final_response_quality_v1(rubrics=rubrics, model=model, **options)


def properties(request: ModelRequest) -> dict[str, Any]:
    assert request.output_schema is not None
    return request.output_schema["properties"]


async def test_each_rubric_is_asked_for_by_itself():
    model, metric = quality(yes(why="Two words."), yes(), no(why="Curt."))
    found = await measured(metric)
    assert model.calls == 3
    for rubric, request in zip(THREE, model.requests, strict=True):
        assert rubric["content"] in request.instructions
    assert "It is right." not in model.requests[0].instructions
    assert found.details["rubric_scores"] == {"short": 1.0, "right": 1.0, "kind": 0.0}
    assert found.details["rubrics"]["kind"]["reasoning"] == "Curt."
    assert found.reason == "not met: kind"


async def test_the_value_is_the_mean_by_weight():
    _, metric = quality(yes(), no(), yes())
    found = await measured(metric)
    assert (found.value, found.passed) == (0.4, False)
    _, metric = quality(no(), yes(), yes())
    found = await measured(metric)
    assert (found.value, found.passed, found.threshold) == (0.8, True, 0.8)


async def test_bare_texts_are_rubrics_too():
    _, metric = quality(yes(), yes(), rubrics=["It is short.", "It is kind."])
    found = await measured(metric)
    assert (found.value, list(found.details["rubrics"])) == (1.0, ["rubric_1", "rubric_2"])


async def test_a_scoring_guide_makes_it_a_grade():
    guide = {"1": "useless", "3": "fair", "5": "excellent"}
    model, metric = quality(
        {"reasoning": "Fair.", "score": 3},
        rubrics=[{"id": "use", "content": "Useful.", "guide": guide}],
    )
    found = await measured(metric)
    assert found.value == 0.5
    assert "5: excellent" in model.requests[0].instructions
    assert properties(model.requests[0])["score"]["maximum"] == 5


async def test_dimensions_are_averaged_apart():
    rubrics = [
        {"id": "a", "content": "A", "dimension": "style"},
        {"id": "b", "content": "B", "dimension": "style", "weight": 3},
        {"id": "c", "content": "C", "dimension": "facts"},
    ]
    _, metric = quality(yes(), no(), yes(), rubrics=rubrics)
    found = await measured(metric)
    assert found.details["dimensions"] == {"style": 0.25, "facts": 1.0}


async def test_the_words_of_other_tools_are_understood():
    rubrics = [{"rubric_id": "x", "rubric_content": {"text_property": "It is short."}}]
    model, metric = quality(yes(), rubrics=rubrics)
    assert (await measured(metric)).passed
    assert "It is short." in model.requests[0].instructions


async def test_tool_use_is_judged_even_if_no_tool_was_used():
    model = Asked(no(why="It should have looked."))
    metric = rubric_based_tool_use_quality_v1(rubrics=["It looks before it speaks."], model=model)
    found = await measured(metric, run(user("Where?"), agent("Lyon.")))
    assert not found.passed
    assert evidence_in(model.requests[0])["tool_calls"] == []


async def test_samples_stop_once_the_weighted_mean_is_certain_if_asked_for():
    model, metric = quality(*[no()] * 30, samples=5, early_stop=True)
    found = await measured(metric)
    # After two rounds of no, 3/5 of each rubric could still come: not enough for 0.8.
    assert (found.passed, model.calls) == (False, 6)
    assert found.details["votes"] == {"cast": 2, "of": 5}
    model, metric = quality(*[no()] * 30, samples=5)
    assert not (await measured(metric)).passed
    assert model.calls == 15


def sheet(**verdicts):
    answers = [{"id": key, "reasoning": "So.", "verdict": v} for key, v in verdicts.items()]
    return {"answers": answers}


async def test_a_batch_asks_about_several_at_once():
    model, metric = quality(sheet(short=True, right=True, kind=False), batch=10)
    found = await measured(metric)
    assert model.calls == 1
    assert all(rubric["content"] in model.requests[0].instructions for rubric in THREE)
    assert found.details["rubric_scores"] == {"short": 1.0, "right": 1.0, "kind": 0.0}


@pytest.mark.parametrize(
    "first",
    [
        sheet(short=True, right=True),
        {"answers": sheet(short=True, right=True, kind=True)["answers"] * 2},
        sheet(short=True, right="yes", kind=True),
        sheet(short=True, right=True, other=True),
        sheet(short=True, right=True, kind=True, other=False),
    ],
)
async def test_a_batch_that_is_not_whole_is_asked_for_again_as_a_whole(first):
    model, metric = quality(first, sheet(short=True, right=False, kind=True), batch=10)
    found = await measured(metric)
    assert found.details["rubric_scores"] == {"short": 1.0, "right": 0.0, "kind": 1.0}
    assert model.calls == 2
    assert "could not be used" in model.requests[1].last
    assert "answers" in properties(model.requests[1])


async def test_a_batch_that_is_never_whole_leaves_all_unmeasured():
    model, metric = quality(*[sheet(short=True, right=True)] * 3, batch=10)
    assert "no usable answer in 3 attempts" in (await measured(metric)).why
    assert model.calls == 3


async def test_batches_are_no_larger_than_said():
    model, metric = quality(sheet(short=True, right=True), sheet(kind=True), batch=2)
    assert (await measured(metric)).passed
    assert model.calls == 2


async def test_a_judge_of_ones_own_may_use_rubrics():
    model = Asked(yes(), no())
    metric = judge("clerk", "A clerk {at} work.", form="rubric", rubrics=["A", "B"], model=model)
    found = await measured(metric)
    assert (found.value, found.name) == (0.5, "clerk")
    assert "A clerk {at} work." in model.requests[0].instructions


async def test_a_ready_made_rubric_is_filled_in():
    french = rubric_template("in_language", language="French", weight=2)
    listed = {"template": "stays_on_topic", "topic": "orders", "id": "topic"}
    model, metric = quality(yes(), yes(), rubrics=[french, listed])
    await measured(metric)
    assert "written in French" in model.requests[0].instructions
    assert [(r.id, r.weight) for r in metric.rubrics] == [("in_language", 2.0), ("topic", 1.0)]


@pytest.mark.parametrize(
    "rubrics",
    [
        None,
        [],
        "It is short.",
        [""],
        [7],
        [{"id": "a"}],
        [{"id": "", "content": "A"}],
        [{"id": "a", "content": "A"}, {"id": "a", "content": "B"}],
        [{"id": "a", "content": "A", "weight": 0}],
        [{"id": "a", "content": "A", "weight": -1}],
        [{"id": "a", "content": "A", "weight": float("nan")}],
        [{"id": "a", "content": "A", "weight": "2"}],
        [{"id": "a", "content": "A", "wieght": 2}],
        [{"id": "a", "content": "A", "guide": {"1": "only"}}],
        [{"id": "a", "content": "A", "guide": {"low": "x", "high": "y"}}],
        [{"id": "a", "content": "A", "guide": ["x", "y"]}],
        [{"id": "a", "content": "A", "threshold": 7}],
        [{"id": "a", "content": "A", "dimension": 7}],
        [{"template": "unheard_of"}],
        [{"template": "in_language"}],
        [{"template": "concise", "language": "French"}],
        [Rubric("a", " ")],
    ],
)
def test_rubrics_that_could_not_be_judged_are_refused(rubrics):
    with pytest.raises(BadMetric):
        rubric_based_final_response_quality_v1(rubrics=rubrics, model=Scripted("x"))


def test_a_rubric_is_plain_json():
    given = json.loads(json.dumps(THREE))
    metric = rubric_based_final_response_quality_v1(rubrics=given, model=Scripted("x"))
    assert [(r.id, r.weight) for r in metric.rubrics] == [
        ("short", 1.0),
        ("right", 3.0),
        ("kind", 1.0),
    ]
