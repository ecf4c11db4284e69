"""Our metrics as google-adk's evaluators, measuring what google-adk played."""

from importlib.util import find_spec
from typing import Any

import pytest
from google.adk.evaluation.eval_case import IntermediateData, Invocation
from google.adk.evaluation.eval_metrics import BaseCriterion, EvalMetric, MetricInfo
from google.adk.evaluation.evaluator import EvalStatus, EvaluationResult, Evaluator
from google.genai import types

from greenroom import Score
from greenroom.errors import MissingExtra
from greenroom.ledger import questions as q
from greenroom.metrics import (
    called,
    completed_within,
    contains,
    cost_within,
    event_count,
    handed_over,
    metric,
    state_is,
    tokens_within,
    turn_within,
)
from greenroom.suite.adk.metrics import ledger_of, register_metrics


class LedgerSource:
    """A registry with nothing else on it."""

    def __init__(self) -> None:
        self.kept: dict[str, type[Evaluator]] = {}

    def register_evaluator(self, metric_info: MetricInfo, evaluator: type[Evaluator]) -> None:
        self.kept[metric_info.metric_name] = evaluator


def content(text: str) -> types.Content:
    return types.Content(role="user", parts=[types.Part(text=text)])


def turn(says: str, answer: str, *tools: tuple[str, dict[str, Any], Any]) -> Invocation:
    calls = [types.FunctionCall(id=name, name=name, args=args) for name, args, _ in tools]
    results = [
        types.FunctionResponse(id=name, name=name, response=value) for name, _, value in tools
    ]
    return Invocation(
        user_content=content(says),
        final_response=content(answer),
        intermediate_data=IntermediateData(tool_uses=calls, tool_responses=results),
    )


OSLO = turn("weather?", "3 degrees", ("weather", {"city": "Oslo"}, {"result": "3"}))


async def measured(given: Any, actual: list[Invocation], **options: Any) -> EvaluationResult:
    shelf, expected = LedgerSource(), options.pop("expected", actual)
    (name,) = register_metrics([given], shelf)
    asked = EvalMetric(metric_name=name, threshold=options.pop("threshold", None), **options)
    evaluator: Any = shelf.kept[name]
    return await evaluator(eval_metric=asked).evaluate_invocations(actual, expected)


async def test_a_metric_of_ours_measures_what_google_adk_played():
    passed = await measured(called("weather", {"city": "Oslo"}), [OSLO])
    failed = await measured(contains("Bergen"), [OSLO])
    assert (passed.overall_score, passed.overall_eval_status) == (1.0, EvalStatus.PASSED)
    assert (failed.overall_score, failed.overall_eval_status) == (0.0, EvalStatus.FAILED)
    assert failed.overall_rubric_scores is not None
    assert "Bergen" in str(failed.overall_rubric_scores[0].rationale)
    assert [one.eval_status for one in passed.per_invocation_results] == [EvalStatus.PASSED]


@pytest.mark.parametrize(
    "options", [{"threshold": 0.9}, {"criterion": BaseCriterion(threshold=0.9)}]
)
async def test_their_threshold_decides_where_one_is_given(options: Any):
    @metric
    def half() -> Score:
        return Score(0.5)

    own = await measured(half, [OSLO])
    theirs = await measured(half, [OSLO], **options)
    assert own.overall_eval_status is EvalStatus.PASSED
    assert theirs.overall_eval_status is EvalStatus.FAILED


async def test_a_metric_that_broke_is_not_evaluated_and_says_why():
    @metric
    def broken() -> Score:
        raise ValueError("no ruler")

    result = await measured(broken, [OSLO], threshold=0.0)
    assert (result.overall_score, result.overall_eval_status) == (None, EvalStatus.NOT_EVALUATED)
    assert "no ruler" in str(result.overall_rubric_scores)


@pytest.mark.parametrize(
    "given",
    [
        cost_within(0.01),
        tokens_within(10),
        completed_within(1),
        turn_within(1),
        state_is("session", "paid", query={"$exists": False}),
        event_count("model_replied", at_most=3),
        handed_over("another", never=True),
    ],
    ids=lambda given: given.name,
)
async def test_what_google_adk_did_not_record_is_not_evaluated(given: Any):
    result = await measured(given, [OSLO])
    assert (result.overall_score, result.overall_eval_status) == (None, EvalStatus.NOT_EVALUATED)


async def test_several_turns_are_judged_as_one_conversation():
    result = await measured(called("weather"), [OSLO, turn("thanks", "you are welcome")])
    assert result.overall_eval_status is EvalStatus.PASSED
    assert [one.score for one in result.per_invocation_results] == [None, None]


async def test_what_google_adk_expects_is_what_the_metric_compares_with():
    same = await measured("response_match_score", [OSLO])
    other = await measured(
        "response_match_score", [OSLO], expected=[turn("weather?", "no idea at all")]
    )
    assert (same.overall_score, other.overall_score) == (1.0, 0.0)


def test_the_ledger_has_every_turn_call_and_result():
    ledger = ledger_of([OSLO, turn("again", "fine")])
    assert (q.turns(ledger), q.responses(ledger)) == (2, ["3 degrees", "fine"])
    assert [(call.tool, call.result, call.turn) for call in q.tool_calls(ledger)] == [
        ("weather", "3", 1)
    ]


@pytest.mark.skipif(find_spec("pandas") is not None, reason="google-adk[eval] is installed")
def test_without_google_adks_eval_extra_the_missing_extra_is_named():
    with pytest.raises(MissingExtra, match=r"google-adk\[eval\]"):
        register_metrics([contains("x")])
