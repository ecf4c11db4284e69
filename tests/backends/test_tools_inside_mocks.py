"""A real tool is handed over whole, or not at all: inside another mock it is refused in every framework."""

from collections.abc import Callable
from typing import Any

import pytest

from backends.keyed_agents import FRAMEWORKS, get_weather
from greenroom import Agent, Case, Scripted, call, fault, live, rehearse, tool
from greenroom.cases import by_args, in_turn
from greenroom.ledger import tool_calls
from greenroom.metrics import contains

INSIDE: dict[str, Any] = {
    "in_turn": in_turn(get_weather),
    "by_args": by_args(({"city": "Paris"}, live(get_weather))),
    "lost": fault(lost=get_weather),
    "lost, by name": fault(lost=in_turn(live("get_weather"))),
    "returned": lambda city: live("get_weather"),
    "returned as lost": lambda city: fault(lost=get_weather),
}


@pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=[*FRAMEWORKS])
@pytest.mark.parametrize("mock", INSIDE.values(), ids=[*INSIDE])
def test_a_real_tool_inside_another_mock_is_refused(build: Callable[..., Any], mock: Any) -> None:
    model = Scripted(call("get_weather", city="Paris"), then="Fine.")
    case = Case("c", says="Paris?", mocks={"get_weather": mock}, metrics=[contains("Fine")])
    [result] = rehearse(build(), [case], model=model, store=False)
    assert result.error is not None
    # Had the body run, its own error would stand here, or the agent would have seen it.
    assert "has the real tool inside it, so it was not run" in result.error.message


@tool
def today() -> int:
    """Current weather."""
    return 21


def test_a_real_tool_may_be_named_by_its_name() -> None:
    agent = Agent("weather", model=Scripted(call("today"), then="Fine."), tools=[today])
    case = Case("c", says="?", mocks={"today": live("today")}, metrics=[contains("Fine")])
    [result] = rehearse(agent, [case], store=False)
    assert [(one.result, one.source) for one in tool_calls(result.ledger)] == [(21, "live")]
