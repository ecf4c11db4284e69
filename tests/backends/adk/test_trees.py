"""Agents below agents: who was entered and left, where, and who handed over to whom."""

from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import (
    LoopAgent,  # pyright: ignore[reportDeprecated]
    ParallelAgent,  # pyright: ignore[reportDeprecated]
    SequentialAgent,  # pyright: ignore[reportDeprecated]
)
from google.adk.apps import App
from google.adk.plugins import BasePlugin
from google.adk.tools import AgentTool, exit_loop

from backends.adk.scripts import WEATHER, agent, case, ledger_of, result_of
from backends.adk.versions import needs_modes
from greenroom import Ledger
from greenroom.ledger import questions as q
from greenroom.ledger.events import Decided, ModelReplied, NodeEnded, NodeStarted, ToolCalled
from greenroom.testing import Desk

pytestmark = [
    pytest.mark.filterwarnings("ignore:The `plugins` argument is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Agent is deprecated:DeprecationWarning"),
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def entered(ledger: Ledger) -> list[str]:
    return [event.path for event in ledger.of(NodeStarted)]


def left(ledger: Ledger) -> list[str]:
    return [event.path for event in ledger.of(NodeEnded)]


def transfer(to: str) -> tuple[str, dict[str, Any]]:
    return ("transfer_to_agent", {"agent_name": to})


async def test_a_transfer_leaves_one_agent_and_enters_the_next_beside_it(desk: Desk):
    helper = agent("helper", WEATHER, "done", tools=[desk.weather])
    clerk = agent("clerk", transfer("helper"), sub_agents=[helper])
    ledger = ledger_of(await result_of(clerk, case(mocks={"weather": "fine"})))
    assert entered(ledger) == left(ledger) == ["@1/clerk", "@1/helper"]
    assert [(event.path, event.choice) for event in ledger.of(Decided)] == [("@1/clerk", "helper")]
    order = [type(event) for event in ledger.of(NodeEnded, NodeStarted)]
    assert order == [NodeStarted, NodeEnded, NodeStarted, NodeEnded]


async def test_an_agent_that_is_handed_the_conversation_back_is_entered_anew():
    clerk = agent("clerk", transfer("helper"), transfer("helper"), "done")
    helper = agent("helper", transfer("clerk"), transfer("clerk"), transfer("clerk"))
    clerk = clerk.clone(update={"sub_agents": [helper]})
    ledger = ledger_of(await result_of(clerk, case()))
    assert entered(ledger)[:3] == ["@1/clerk", "@1/helper", "@1/clerk#2"]
    assert [event.choice for event in ledger.of(Decided)][:2] == ["helper", "clerk"]


async def test_what_runs_at_the_same_time_has_a_path_of_its_own(desk: Desk):
    both = ParallelAgent(  # pyright: ignore[reportDeprecated]
        name="both",
        sub_agents=[
            agent("one", WEATHER, "1", tools=[desk.weather]),
            agent("two", WEATHER, "2", tools=[desk.weather]),
        ],
    )
    last = agent("last", "never", "never", "done", "done", "done")
    line = SequentialAgent(name="line", sub_agents=[both, last])  # pyright: ignore[reportDeprecated]
    result = await result_of(line, case(mocks={"weather": "fine"}))
    ledger = ledger_of(result)
    paths = ["@1/line", "@1/line/both", "@1/line/both/one", "@1/line/both/two", "@1/line/last"]
    assert sorted(entered(ledger)) == sorted(left(ledger)) == sorted(paths), result.error
    assert {event.path for event in ledger.of(ToolCalled)} == set(paths[2:4])
    for event in ledger.of(ModelReplied):
        assert event.path.endswith(f"/{event.agent}")


async def test_every_round_of_a_loop_has_a_path_of_its_own():
    worker = agent("worker", "again", "again", ("exit_loop", {}), tools=[exit_loop])
    loop = LoopAgent(name="loop", sub_agents=[worker])  # pyright: ignore[reportDeprecated]
    ledger = ledger_of(await result_of(loop, case()))
    rounds = ["@1/loop/worker", "@1/loop/worker#2", "@1/loop/worker#3"]
    assert entered(ledger) == ["@1/loop", *rounds]
    assert left(ledger) == [*rounds, "@1/loop"]


@pytest.mark.parametrize("include_plugins", [True, False])
async def test_an_agent_used_as_a_tool_is_a_tool_call_with_the_agents_work_inside(
    desk: Desk, include_plugins: bool
):
    helper = agent("helper", WEATHER, "fine", tools=[desk.weather])
    delegate = AgentTool(helper, include_plugins=include_plugins)
    ask = ("helper", {"request": "weather?"})
    clerk = agent("clerk", [ask, ask], "done", tools=[delegate])
    result = await result_of(clerk, case(mocks={"weather": "mild"}))
    ledger = ledger_of(result)
    inner = ["@1/clerk/helper", "@1/clerk/helper#2"]
    assert sorted(entered(ledger)) == ["@1/clerk", *inner], result.error
    assert sorted(left(ledger)) == ["@1/clerk", *inner]
    calls = [(call.tool, call.result) for call in q.tool_calls(ledger)]
    assert sorted(calls) == [("helper", "fine")] * 2 + [("weather", "mild")] * 2
    asked = [event.path for event in ledger.of(ModelReplied) if event.agent == "helper"]
    assert sorted(asked) == sorted(inner * 2)
    assert desk.marks == []


async def test_an_agent_used_as_a_tool_has_the_apps_plugins(desk: Desk):
    seen: list[str] = []

    class Watch(BasePlugin):
        async def before_tool_callback(self, *, tool: Any, **_: Any) -> None:
            seen.append(tool.name)

    helper = agent("helper", WEATHER, "fine", tools=[desk.weather])
    clerk = agent("clerk", ("helper", {"request": "?"}), "done", tools=[AgentTool(helper)])
    app = App(name="shop", root_agent=clerk, plugins=[Watch("watch")])
    result = await result_of(app, case(mocks={"weather": "mild"}))
    assert (result.status, seen) == ("passed", ["helper", "weather"]), result.error
    assert entered(ledger_of(result)) == ["@1/clerk", "@1/clerk/helper"]


async def test_an_agent_without_plugins_keeps_its_own_callbacks_and_is_spared_the_apps(desk: Desk):
    seen: list[str] = []

    class Watch(BasePlugin):
        async def before_agent_callback(self, *, agent: Any, callback_context: Any) -> None:
            seen.append(f"plug-in {agent.name}")

    def own(callback_context: Any) -> None:
        seen.append(f"own {callback_context.agent_name}")

    helper = agent("helper", "fine", before_agent_callback=own)
    delegate = AgentTool(helper, include_plugins=False)
    clerk = agent("clerk", ("helper", {"request": "?"}), "done", tools=[delegate])
    app = App(name="shop", root_agent=clerk, plugins=[Watch("watch")])
    result = await result_of(app, case())
    assert (result.status, seen) == ("passed", ["plug-in clerk", "own helper"]), result.error
    assert helper.before_agent_callback is own


@needs_modes
async def test_a_single_turn_helper_is_a_tool_call_too(desk: Desk):
    helper = agent("helper", WEATHER, "fine", mode="single_turn", tools=[desk.weather])
    clerk = agent("clerk", ("helper", {"request": "?"}), "done", sub_agents=[helper])
    ledger = ledger_of(await result_of(clerk, case(mocks={"weather": "mild"})))
    assert [call.tool for call in q.tool_calls(ledger)] == ["helper", "weather"]
    assert entered(ledger) == ["@1/clerk", "@1/clerk/helper"]
