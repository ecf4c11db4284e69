"""A schema over google-adk's state: typed views of tools, temp, and the state after each agent."""

from typing import Annotated, Any

import pytest
from google.adk.agents import SequentialAgent  # pyright: ignore[reportDeprecated]
from google.adk.tools import ToolContext

from backends.adk.scripts import agent, case, ledger_of, result_of
from greenroom import Expect, StateSchema, Turn
from greenroom.agents import Temp, UserScoped
from greenroom.metrics import state_is

pytestmark = pytest.mark.filterwarnings("ignore:SequentialAgent is deprecated:DeprecationWarning")


class Billing(StateSchema):
    intent: str
    tier: Annotated[str, UserScoped] = "basic"
    draft: Annotated[str, Temp]
    seen: list[str] = []  # noqa: RUF012 - a default, copied for each reader


def look(tool_context: ToolContext) -> str:
    """Look at the state."""
    state = Billing.bind(tool_context)
    draft = state.draft if Billing.draft in state else "none"
    state.seen = [*state.seen, draft]
    state.draft = "made"
    state.tier = "gold"
    return draft


async def test_a_tool_sees_the_state_by_a_schema_and_temp_is_gone_in_turn_two() -> None:
    clerk = agent("clerk", ("look", {}), "one", ("look", {}), "two", tools=[look])
    asked = case(says="", turns=[Turn("one"), Turn("two")], allow_tools=["look"])
    result = await result_of(clerk, asked)
    state = ledger_of(result).fold()
    assert state["session"] == {"seen": ["none", "none"]}, result.error
    assert state["user"] == {"tier": "gold"}
    assert "temp" not in state


def line(**options: Any) -> Any:
    first = agent("first", "one", output_key="intent")
    second = agent("second", "two", output_key="intent")
    return SequentialAgent(name="line", sub_agents=[first, second], **options)  # pyright: ignore[reportDeprecated]


@pytest.mark.parametrize("node, value", [("first", "one"), ("second", "two")])
async def test_the_state_after_each_agent_of_google_adk_is_known(node: str, value: str) -> None:
    metric = state_is(Billing.intent, value, after=node)
    result = await result_of(line(), case(metrics=[metric]))
    assert result.status == "passed", result.scores
    other = state_is(Billing.intent, "three", after=node)
    assert (await result_of(line(), case(metrics=[other]))).status == "failed"


async def test_an_agent_of_google_adk_that_never_ran_is_no_success() -> None:
    expect = Expect(state_after={"third": {Billing.intent: {"$exists": False}}})
    result = await result_of(line(), case(says="", turns=[Turn("hi", expect)]))
    assert result.status == "failed"
    found: Any = result.scores["expected_state_after"]
    assert "'third' never ran; these did: line, first, second" in found.reason
