"""Verdicts of the agentevals library (0.0.9) on its own trajectory-match cases."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, Expect, Score, Turn, score
from greenroom.ledger import (
    AgentSaid,
    Event,
    Ledger,
    ModelReplied,
    RunEnded,
    RunStarted,
    ToolCall,
    ToolCalled,
    ToolReturned,
    UserSaid,
)
from greenroom.metrics import tool_trajectory_avg_score

DATA = os.environ.get("GREENROOM_DATA")

pytestmark = pytest.mark.skipif(
    not DATA, reason="GREENROOM_DATA names no folder with agentevals_match_cases.json"
)

# Theirs speaks of the call that was made, ours of what the author wrote.
ARGS = {"exact": "exact", "ignore": "ignore", "subset": "superset", "superset": "subset"}
ROLES = {"HumanMessage": "user", "AIMessage": "assistant", "ToolMessage": "tool"}
CALLABLE = "<callable>"


def published() -> list[dict[str, Any]]:
    return json.loads((Path(DATA or "") / "agentevals_match_cases.json").read_text())


def carries_code(one: dict[str, Any]) -> bool:
    return CALLABLE in one["config"].get("tool_args_match_overrides", {}).values()


def calls_in(message: dict[str, Any]) -> list[ToolCall]:
    """The calls a message of OpenAI or LangChain asks for."""
    asked = message.get("tool_calls") or []
    return [
        ToolCall(c["function"]["name"], json.loads(c["function"]["arguments"]))
        if "function" in c
        else ToolCall(c["name"], c["args"])
        for c in asked
    ]


def role(message: dict[str, Any]) -> str:
    return message.get("role") or ROLES[message["__lc__"]]


def expecting(reference: list[dict[str, Any]]) -> Case:
    """The reference as turns of a case."""
    turns: list[tuple[str, list[ToolCall]]] = []
    for message in reference:
        if role(message) == "user":
            turns.append((message["content"], []))
        else:
            turns[-1][1].extend(calls_in(message))
    return Case("c", turns=[Turn(says, Expect(tools=calls)) for says, calls in turns])


def ran(outputs: list[dict[str, Any]]) -> Ledger:
    """The outputs as the ledger of a run."""
    ledger = Ledger()
    events: list[Event] = [RunStarted(run_id="r")]
    for number, message in enumerate(outputs):
        events += happened(message, number)
    for event in [*events, RunEnded(reason="completed")]:
        ledger.append(event, at=1.0)
    return ledger


def happened(message: dict[str, Any], number: int) -> list[Event]:
    said = message["content"]
    if role(message) == "user":
        return [UserSaid(text=said)]
    if role(message) == "tool":
        return [ToolReturned(call_id=f"{number}", tool="", value=said, source="live")]
    calls = [ToolCall(c.tool, c.args, f"{number}.{n}") for n, c in enumerate(calls_in(message))]
    made = [ToolCalled(call_id=call.id, tool=call.tool, args=call.args) for call in calls]
    reply = ModelReplied(model="m", text=said, calls=tuple(calls))
    return [reply, *made] if made else [reply, AgentSaid(text=said)]


async def verdict(one: dict[str, Any], stand_in: Any = None) -> bool:
    config = one["config"]
    overrides = config.get("tool_args_match_overrides", {})
    metric = tool_trajectory_avg_score(
        config.get("trajectory_match_mode", "strict"),
        args=ARGS[config.get("tool_args_match_mode", "exact")],  # pyright: ignore[reportArgumentType]
        tool_args={
            tool: stand_in if rule == CALLABLE else rule if isinstance(rule, list) else ARGS[rule]
            for tool, rule in overrides.items()
        },
        scope="all",
    )
    found = (await score(ran(one["outputs"]), [metric], expecting(one["reference"])))[metric.name]
    assert isinstance(found, Score), found
    return found.passed


async def test_every_verdict_that_data_can_express_is_the_same():
    expressible = [one for one in published() if not carries_code(one)]
    assert len(expressible) == 56
    for one in expressible:
        assert await verdict(one) is one["score"], (one["test"], one["config"])


async def test_the_cases_that_carry_a_function_are_these_and_agree_with_one_that_takes_everything():
    # The file shows their function as text only, so that a stand-in is all that can be tried.
    coded = [one for one in published() if carries_code(one)]
    assert [(one["test"], one["config"]["trajectory_match_mode"]) for one in coded] == [
        (test, mode)
        for test in (
            "test_trajectory_match_with_langchain_messages_and_override",
            "test_trajectory_match_with_overrides",
        )
        for mode in ("unordered", "superset", "subset", "strict")
    ]
    for one in coded:
        found = await verdict(one, stand_in=lambda made, wanted: True)
        assert found is one["score"], (one["test"], one["config"])
