"""An agent that another loop drives, and plug-ins that answer for everybody else."""

from typing import Any

import pytest
from google.adk.apps import App
from google.adk.events import Event
from google.adk.plugins import BasePlugin
from google.adk.runners import Runner
from google.adk.tools import AgentTool, LongRunningFunctionTool
from google.adk.tools.tool_context import ToolContext

from backends.adk.scripts import agent, case, ledger_of, result_of
from greenroom import Lines, Turn, UserAgents, simulate
from greenroom.backends.adk.served import APP, SESSION, USER, ServedBackend
from greenroom.ledger import questions as q
from greenroom.ledger.events import Answered, NodeEnded


class Loud(BasePlugin):
    """Gives every event back, so that no plug-in after it hears of any."""

    async def on_event_callback(self, *, event: Event, **_: Any) -> Event:
        return event


class Quiet(BasePlugin):
    """Says nothing."""


async def serve(served: ServedBackend[None], app: App) -> None:
    """A loop as simple as can be: asks for a line and lets the agent answer."""
    await served.sessions.create_session(app_name=APP, user_id=USER, session_id=SESSION)
    runner = Runner(app=app, app_name=APP, session_service=served.sessions)
    events: list[Event] = []
    while line := await served.prompter.next_line(events):
        running = runner.run_async(user_id=USER, session_id=SESSION, new_message=line)
        events = [*events, *[event async for event in running]]


def note(city: str, tool_context: ToolContext) -> str:
    """Note the city."""
    tool_context.state["city"] = city
    tool_context.state["user:home"] = city
    tool_context.state["temp:near"] = city
    return "noted"


@pytest.mark.parametrize("plugin", [Loud, Quiet])
async def test_state_is_written_down_whatever_plugins_do_with_events(plugin: type[BasePlugin]):
    clerk = agent(
        "clerk",
        ("note", {"city": "Oslo"}),
        "done",
        ("note", {"city": "Rome"}),
        "done",
        tools=[note],
    )
    served = ServedBackend(App(name="shop", root_agent=clerk, plugins=[plugin("own")]), serve)
    asked = case(says="", turns=[Turn("one"), Turn("two")], allow_tools=["note"])
    ledger = await simulate(asked, served)
    await served.over()
    assert q.ended(ledger)
    assert q.state(ledger) == {"session": {"city": "Rome"}, "user": {"home": "Rome"}}
    seen = [(step.old, step.new) for step in q.state_changes(ledger) if step.scope == "temp"]
    assert seen == [(None, "Oslo"), (None, "Rome")]


async def test_the_state_of_an_agent_used_as_a_tool_comes_back_once():
    helper = agent("helper", ("note", {"city": "Oslo"}), "fine", tools=[note])
    clerk = agent("clerk", ("helper", {"request": "?"}), "done", tools=[AgentTool(helper)])
    served = ServedBackend(clerk, serve)
    ledger = await simulate(case(allow_tools=["note"]), served)
    await served.over()
    assert q.state(ledger)["session"] == {"city": "Oslo"}


@pytest.mark.parametrize("plugin", [Loud, Quiet])
async def test_an_agent_that_waits_is_at_work_whatever_plugins_do_with_events(
    plugin: type[BasePlugin],
):
    def ask_boss(question: str) -> None:
        """Ask the boss."""

    lines = (("ask_boss", {"question": "?"}), "done")
    clerk = agent("clerk", *lines, tools=[LongRunningFunctionTool(ask_boss)])
    app = App(name="shop", root_agent=clerk, plugins=[plugin("own")])
    result = await result_of(app, case(user=UserAgents(tools={"ask_boss": Lines("yes")})))
    assert result.status == "passed", result.error
    ledger = ledger_of(result)
    (ended,) = ledger.of(NodeEnded)
    assert ended.seq > ledger.of(Answered)[0].seq
