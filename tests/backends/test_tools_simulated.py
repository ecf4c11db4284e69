"""A model answers for the tools of agents of every framework, and knows how they are described."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from backends.keyed_agents import ASKED, FRAMEWORKS
from greenroom import Case, Expect, Scripted, call, rehearse
from greenroom.cases import simulated
from greenroom.ledger import simulated_state, tool_calls
from greenroom.models.model import ModelRequest

every_framework = pytest.mark.parametrize("build", FRAMEWORKS.values(), ids=[*FRAMEWORKS])
LINES = (call("get_weather", city="Paris"), call("get_weather", city="Rome"), "It is mild.")


def weather(request: ModelRequest) -> dict[str, Any]:
    """One more city was asked for; the tool must have been described."""
    told = json.loads(request.last)
    assert told["about"]["description"].startswith("Current weather in a city.")
    assert "city" in told["about"]["parameters"]["properties"]
    asked = [*told["state"].get("asked", []), told["arguments"]["city"]]
    if len(asked) > 1:
        return {"error": "one city a day", "state": {"asked": asked}}
    return {"result": {"celsius": 21}, "state": {"asked": asked}}


@every_framework
def test_a_model_answers_for_the_tools_of_every_framework(build: Callable[..., Any]) -> None:
    world = simulated("A weather station.", model=Scripted(then=weather, name="station"))
    mocks = {"get_weather": world}
    case = Case("c", says="Paris, Rome?", mocks=mocks, expect=Expect(contains="mild"))
    report = rehearse(build(), [case], model=Scripted(*LINES))
    [result] = report.results
    assert result.status == "passed", str(report)
    first, second = tool_calls(result.ledger)
    assert (first.result, first.source) == ({"celsius": 21}, "simulated")
    assert (second.error, second.source) == ("one city a day", "simulated")
    assert simulated_state(result.ledger) == {"asked": ["Paris", "Rome"]}
    assert result.user_models == {"station": 2}
    assert not ASKED


@every_framework
def test_no_framework_takes_an_unusable_answer_for_an_error_of_its_tool(
    build: Callable[..., Any],
) -> None:
    world = simulated("A weather station.", model=Scripted(then="It is mild."))
    case = Case("c", says="Hi", mocks={"get_weather": world}, expect=Expect(contains="mild"))
    [result] = rehearse(build(), [case], model=Scripted(*LINES)).results
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type == "MockBroke"
