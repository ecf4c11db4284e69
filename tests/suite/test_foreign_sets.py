"""Sets kept in other tools' files are judged as those tools judge them."""

import json

import pytest

from greenroom import Agent, Scripted, call, evaluate, tool
from greenroom.cases import Criterion, EvalConfig, read_evalset


@tool
def look_up(order: int) -> str:
    """Find an order."""
    raise RuntimeError("never reached in a rehearsal")


AGENT = Agent(
    "clerk", model=Scripted(call("look_up", order=8), "It is on its way."), tools=[look_up]
)
MOCKS = {"look_up": "on its way"}


def adk_file(tmp_path, said: str, order: int):
    path = tmp_path / "orders.evalset.json"
    turn = {
        "user_content": {"parts": [{"text": "Where is it?"}], "role": "user"},
        "final_response": {"parts": [{"text": said}], "role": "model"},
        "intermediate_data": {
            "tool_uses": [{"name": "look_up", "args": {"order": order}}],
            "intermediate_responses": [["clerk", [{"text": "Let me see."}]]],
        },
    }
    case = {"eval_id": "where", "conversation": [turn]}
    path.write_text(json.dumps({"eval_set_id": "orders", "eval_cases": [case]}))
    return path


async def test_an_adk_set_is_judged_by_adks_two_usual_criteria(tmp_path):
    path = adk_file(tmp_path, "It is on its way.", order=8)
    report = await evaluate(AGENT, path, mocks=MOCKS)
    assert report.passed, report
    assert set(report["where"].scores) == {"tool_trajectory_avg_score", "response_match_score"}


async def test_the_calls_of_an_adk_turn_are_right_or_wrong_as_a_whole(tmp_path):
    report = await evaluate(AGENT, adk_file(tmp_path, "It is on its way.", order=7), mocks=MOCKS)
    assert report["where"].measured["tool_trajectory_avg_score"].value == 0
    assert report["where"].status == "failed"


async def test_a_config_is_the_whole_list_of_what_counts(tmp_path):
    path = adk_file(tmp_path, "It is on its way.", order=7)
    config = EvalConfig(criteria=[Criterion("response_match_score", threshold=0.5)])
    report = await evaluate(AGENT, path, mocks=MOCKS, config=config)
    assert set(report["where"].scores) == {"response_match_score"}
    assert report.passed, report


async def test_a_part_of_the_set_is_judged_like_the_whole(tmp_path):
    evalset = read_evalset(adk_file(tmp_path, "It is on its way.", order=8)).filter("wh*")
    report = await evaluate(AGENT, evalset, mocks=MOCKS)
    assert set(report["where"].scores) == {"tool_trajectory_avg_score", "response_match_score"}


@pytest.mark.parametrize("own", [[], [Criterion("contains", options={"texts": ["way"]})]])
async def test_metrics_given_for_the_run_are_added(tmp_path, own):
    path = adk_file(tmp_path, "It is on its way.", order=8)
    report = await evaluate(AGENT, path, mocks=MOCKS, metrics=own)
    assert len(report["where"].scores) == 2 + len(own)
