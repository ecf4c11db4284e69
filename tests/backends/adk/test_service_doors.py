"""What google-adk's service is asked for is checked before anything of it is opened."""

import json
from importlib.util import find_spec
from math import inf, nan
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import BaseAgent
from google.adk.evaluation.eval_config import EvalConfig
from google.adk.evaluation.eval_metrics import EvalMetricResult, EvalStatus

from backends.adk.scripts import agent, case
from greenroom import Case, EvalSet, Expect, call, metric
from greenroom.cases.literals import literal
from greenroom.cases.scores import Score, Unmeasured
from greenroom.errors import BadAgent, BadInput, MissingExtra
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import contains, tool_name_match
from greenroom.suite.adk.service import evaluate_in_adk
from greenroom.suite.adk.stand_ins import check_judged, ours_beside, outcome_of

TOOLS, MATCH, JUDGE = "tool_trajectory_avg_score", "response_match_score", "final_response_match_v2"
ALL = Expect(
    tools=[call("pay", order=7)],
    reference="It is paid.",
    response="Paid.",
    contains="Paid",
    state={"session": {"paid": True}},
)


@pytest.mark.skipif(find_spec("pandas") is not None, reason="google-adk[eval] is installed")
async def test_without_google_adks_eval_extra_the_missing_extra_is_named():
    with pytest.raises(MissingExtra, match=r"google-adk\[eval\]"):
        await evaluate_in_adk(agent("clerk", "done"), case())


@pytest.mark.parametrize("criteria", [{"exact": "high"}, {"exact": None}, "nowhere.json"])
async def test_criteria_that_are_none_are_refused(criteria: Any):
    with pytest.raises(BadInput, match="names no criteria of google-adk"):
        await evaluate_in_adk(agent("clerk", "done"), case(), criteria)


async def test_a_config_file_with_a_misspelt_field_is_refused(tmp_path: Path):
    path = tmp_path / "test_config.json"
    path.write_text(json.dumps({"criteria": {"exact": "high"}}))
    with pytest.raises(BadInput, match="test_config"):
        await evaluate_in_adk(agent("clerk", "done"), case(), path)


async def test_an_agent_that_cannot_be_held_is_refused_first():
    class OwnAgent(BaseAgent):
        """Does its work in its own code."""

    with pytest.raises(BadAgent, match="OwnAgent"):
        await evaluate_in_adk(OwnAgent(name="a"), case())


@pytest.mark.parametrize("given", ["metrics", "set"])
async def test_a_metric_that_is_named_like_a_criterion_is_refused_first(given: str):
    named = metric(lambda case: True, name="exact")
    cases = EvalSet("shop", [case()], metrics=[named] if given == "set" else [])
    with pytest.raises(BadInput, match="'exact' is both a metric and a criterion of google-adk"):
        await evaluate_in_adk(
            agent("clerk", "done"),
            cases,
            {"exact": 1},
            metrics=[named] if given == "metrics" else [],
        )


def test_a_cases_metric_that_is_named_like_a_criterion_is_refused():
    named = case(metrics=[metric(lambda case: True, name="exact")])
    with pytest.raises(BadInput, match="case 'one': 'exact' is both a metric"):
        ours_beside(named, [], ["exact"])


@pytest.mark.parametrize("criteria,left", [
    ([TOOLS, MATCH], []),
    ([TOOLS, JUDGE], []),
    ([TOOLS], ["expected_reference"]),
    ([MATCH], ["expected_tools"]),
    ([], ["expected_tools", "expected_reference"]),
])  # fmt: skip
def test_what_no_criterion_judges_is_measured_by_us(criteria: list[str], left: list[str]):
    found = [one.name for one in ours_beside(Case("one", "Hi", expect=ALL), [], criteria)]
    always = ["expected_contains", "expected_response", "expected_state"]
    assert sorted(found) == sorted([*left, *always])


def test_what_is_asked_for_is_measured_whatever_the_criteria_judge():
    asked = Case("one", "Hi", expect=ALL, metrics=[contains("Paid")], implied=False)
    given = [tool_name_match()]
    found = ours_beside(asked, given, [TOOLS])
    assert [one.name for one in found] == ["contains('Paid')", given[0].name]


@pytest.mark.parametrize(
    "wanted",
    ["pay", call("pay", order={"$gt": 3}), call("pay", order={"items": [{"count": {"$gt": 3}}]})],
    ids=["any arguments", "an operator", "an operator deep down"],
)
def test_calls_that_are_not_written_out_are_none_for_google_adk_to_compare(wanted: Any):
    asked = Case("one", "Hi", expect=Expect(tools=[wanted]))
    with pytest.raises(BadInput, match=r"case 'one' expects .*pay"):
        check_judged(asked, {TOOLS: 1.0})
    check_judged(asked, {MATCH: 1.0})
    for name in ("ignore_args", "ignoreArgs"):
        config = EvalConfig.model_validate({"criteria": {TOOLS: {"threshold": 1.0, name: True}}})
        check_judged(asked, config.criteria)


def test_calls_that_are_written_out_are_googles_to_compare_operators_by_the_letter_included():
    quoted = ToolCall("pay", literal({"order": {"$gt": 3}}))
    check_judged(
        Case("one", "Hi", expect=Expect(tools=[call("pay", order=7), quoted])), {TOOLS: 1.0}
    )


@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_a_score_that_is_no_number_is_no_verdict(score: float):
    found = EvalMetricResult(
        metric_name="m", threshold=0.5, score=score, eval_status=EvalStatus.PASSED
    )
    assert outcome_of(found, "") == Unmeasured(
        f"google-adk gives it {score!r}, which is not a measure"
    )
    real = found.model_copy(update={"score": 4.5})
    assert outcome_of(real, "") == Score(1.0, True, measured=4.5)
