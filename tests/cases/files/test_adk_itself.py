"""What is written as ADK's can be read by ADK itself."""

from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, EvalSet, Expect, SimulatedUser, Stop, Turn, call
from greenroom.cases import Criterion, EvalConfig, write_config, write_evalset

pytestmark = pytest.mark.slow

SHOP = EvalSet(
    "shop",
    [
        Case(
            "refund",
            turns=[
                Turn("Money back.", Expect(tools=[call("look", order=7)], intermediate=["Wait."])),
                Turn("Now!", Expect(tools=[], reference="It is paid back.")),
            ],
            state={"session": {"order": 7}, "user": {"name": "Ada"}, "patient": {"id": 1}},
            tags=["smoke"],
            mocks={"look": {"ok": True}},
            stop=Stop(max_turns=4),
        ),
        Case("chat", "Hello", user=SimulatedUser("Impatient.", plan="Ask for a refund.")),
    ],
    name="Shop",
    trials=3,
)


@pytest.fixture(scope="module")
def adk() -> Any:
    pytest.importorskip("google.adk", reason="google-adk is not installed")
    from google.adk.evaluation import eval_config, eval_set

    return eval_set.EvalSet, eval_config.EvalConfig


def test_adk_reads_the_cases(adk: Any, tmp_path: Path) -> None:
    write_evalset(SHOP, tmp_path / "shop.evalset.json", shape="adk")
    read = adk[0].model_validate_json((tmp_path / "shop.evalset.json").read_text())
    refund, chat = read.eval_cases
    assert [i.user_content.parts[0].text for i in refund.conversation] == ["Money back.", "Now!"]
    first, second = [i.intermediate_data for i in refund.conversation]
    assert [(use.name, use.args) for use in first.tool_uses] == [("look", {"order": 7})]
    assert (second.tool_uses, refund.conversation[1].final_response.parts[0].text) == (
        [],
        "It is paid back.",
    )
    assert refund.session_input.state == {"order": 7, "user:name": "Ada"}
    assert chat.conversation_scenario.starting_prompt == "Hello"
    assert chat.conversation_scenario.user_persona.description == "Impatient."


def test_adk_reads_the_config(adk: Any, tmp_path: Path) -> None:
    judge = {"judge_model": "gemini-2.5-flash", "num_samples": 3}
    config = EvalConfig(
        criteria=[
            Criterion(
                "tool_trajectory_avg_score", threshold=1.0, options={"match_type": "IN_ORDER"}
            ),
            Criterion("response_match_score", threshold=0.8),
            Criterion("final_response_match_v2", threshold=0.5, options=judge),
        ]
    )
    write_config(config, tmp_path / "test_config.json", shape="adk")
    read = adk[1].model_validate_json((tmp_path / "test_config.json").read_text())
    assert read.criteria["response_match_score"] == 0.8
    assert read.criteria["final_response_match_v2"].judge_model_options["num_samples"] == 3
