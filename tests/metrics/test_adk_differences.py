"""Where calls are compared otherwise than by google-adk, the page about it says so; nowhere else."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import score
from greenroom.cases import NotApplicable
from greenroom.cases.config import read_config
from greenroom.cases.files import read_evalset
from greenroom.metrics.registry import metric_named

pytest.importorskip("google.adk")

from google.adk.evaluation.eval_case import IntermediateData, Invocation
from google.adk.evaluation.eval_metrics import EvalMetric, ToolTrajectoryCriterion
from google.adk.evaluation.trajectory_evaluator import TrajectoryEvaluator
from google.genai import types

from greenroom.suite.adk.metrics import ledger_of

Calls = list[tuple[str, dict[str, Any] | None]]
NAME = "tool_trajectory_avg_score"


def invocation(calls: Calls | None) -> Invocation:
    uses = [types.FunctionCall(name=name, args=args) for name, args in calls or []]
    return Invocation(
        user_content=types.Content(role="user", parts=[types.Part(text="Hi")]),
        final_response=types.Content(role="model", parts=[types.Part(text="Hello.")]),
        intermediate_data=None if calls is None else IntermediateData(tool_uses=uses),
    )


def theirs(wanted: list[Calls | None], made: list[Calls], match: str) -> float | None:
    criterion = ToolTrajectoryCriterion.model_validate({"threshold": 1.0, "match_type": match})
    evaluator = TrajectoryEvaluator(eval_metric=EvalMetric(metric_name=NAME, criterion=criterion))
    played, expected = ([invocation(calls) for calls in side] for side in (made, wanted))
    return evaluator.evaluate_invocations(played, expected).overall_score


async def ours(folder: Any, wanted: list[Calls | None], made: list[Calls], match: str) -> Any:
    turns = [json.loads(invocation(c).model_dump_json(exclude_none=True)) for c in wanted]
    cases = [{"eval_id": "one", "conversation": turns}]
    (folder / "a.evalset.json").write_text(json.dumps({"eval_set_id": "s", "eval_cases": cases}))
    criteria = {NAME: {"threshold": 1.0, "match_type": match}, "response_match_score": 0.5}
    (folder / "test_config.json").write_text(json.dumps({"criteria": criteria}))
    [case] = read_evalset(folder / "a.evalset.json")
    metric = metric_named(read_config(folder / "test_config.json").criteria[0])
    ledger = ledger_of([invocation(calls) for calls in made])
    found = (await score(ledger, [metric], case, expectations=False))[NAME]
    return NotApplicable if isinstance(found, NotApplicable) else getattr(found, "value", found)


A: tuple[str, dict[str, Any]] = ("a", {"x": 1})
B: tuple[str, dict[str, Any]] = ("b", {})
LISTED: list[tuple[list[Calls | None], list[Calls], str, float, Any]] = [
    ([None], [[A]], "EXACT", 0.0, NotApplicable),
    ([[A], None], [[A], [B]], "EXACT", 0.5, 1.0),
    ([[]], [[A]], "IN_ORDER", 1.0, 0.0),
    ([[]], [[A]], "ANY_ORDER", 1.0, 0.0),
    ([[("a", {"x": True})]], [[A]], "EXACT", 1.0, 0.0),
    ([[("b", None)]], [[B]], "EXACT", 0.0, 1.0),
    ([[A, B]], [[A, ("b", {"y": 2})]], "EXACT", 0.0, 0.5),
    ([[A, B]], [[A]], "IN_ORDER", 0.0, 0.5),
    ([[A, B]], [[B]], "ANY_ORDER", 0.0, 0.5),
]


@pytest.mark.parametrize("wanted, made, match, there, here", LISTED)
async def test_a_listed_difference_is_one(tmp_path, wanted, made, match, there, here):
    assert theirs(wanted, made, match) == there
    assert await ours(tmp_path, wanted, made, match) == here


ARGS = st.dictionaries(
    st.sampled_from("xy"), st.sampled_from([0, 1, 2.5, "1", None, [1, "a"], {"k": 1}]), max_size=2
)
CALLS = st.lists(st.tuples(st.sampled_from("ab"), ARGS), min_size=1, max_size=3)
TURNS = st.lists(st.tuples(CALLS, CALLS | st.just([])), min_size=1, max_size=3)


@given(TURNS, st.sampled_from(["EXACT", "IN_ORDER", "ANY_ORDER"]))
async def test_apart_from_what_is_listed_both_pass_the_same_runs(
    tmp_path_factory: Any, turns: Any, match: str
):
    wanted: list[Calls | None] = [turn[0] for turn in turns]
    made: list[Calls] = [turn[1] for turn in turns]
    value = await ours(tmp_path_factory.mktemp("adk"), wanted, made, match)
    assert (value == 1.0) is (theirs(wanted, made, match) == 1.0)
