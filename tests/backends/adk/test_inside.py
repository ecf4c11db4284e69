"""Agents of google-adk inside plain functions: their calls meet the gate, whichever way they come."""

import asyncio
import inspect
import re
import sys
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.code_executors import BaseCodeExecutor, BuiltInCodeExecutor
from google.adk.code_executors.code_execution_utils import CodeExecutionResult
from google.adk.models.llm_request import LlmRequest
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, google_search
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_tool import McpTool
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.adk.tools.tool_context import ToolContext
from google.genai import types
from mcp import StdioServerParameters
from mcp.types import CallToolResult, Tool

from backends.adk.bypasses import BYPASSES, Server, leads_nowhere, smuggle_into
from backends.adk.insiders import INSIDERS, around, replaced_on_the_object, simple
from backends.adk.scripts import WEATHER, Script, agent, case, ledger_of, result_of, run_bare
from backends.adk.test_toolsets import LISTED, SERVER
from greenroom import Agent, Ledger, Scripted, call, evaluate, simulate, tool
from greenroom.ledger.events import AgentSaid, ModelCalled, ModelReplied, ToolCalled, ToolReturned
from greenroom.ledger.questions import ended
from greenroom.metrics import called, contains
from greenroom.simulation import UserAgents
from greenroom.testing import Desk

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    # A runner that blocks has a thread of its own, in some versions without a word for its caller.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning"),
]

MOCKED: dict[str, Any] = {
    "mocks": {"weather": "fine"},
    "metrics": [contains("done"), called("weather")],
}


async def run(clerk: Any) -> None:
    if inspect.iscoroutinefunction(clerk):
        await clerk("hello")
    else:
        await asyncio.to_thread(clerk, "hello")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("name", INSIDERS)
async def test_no_body_runs_inside_a_function_and_a_mock_answers(name: str, tmp_path: Path):
    made, desk = INSIDERS[name], Desk(tmp_path)
    (tmp_path / "open").mkdir()
    open_desk = Desk(tmp_path / "open")
    await run(made(open_desk))
    assert open_desk.marks, "the canary does not fire even without a gate"
    refused = await evaluate(made(desk), case())
    many = [case(f"case {n}") for n in range(8)]
    together = await evaluate(made(desk), many, concurrency=8)
    told = [result.error and result.error.type for result in [*refused, *together]]
    assert set(told) == {"ToolRefused"}
    mocked = await evaluate(made(desk), [case(f"case {n}", **MOCKED) for n in range(8)])
    assert {result.status for result in mocked} == {"passed"}, str(mocked)
    for result in mocked:
        calls = [call.tool for call in ledger_of(result).of(ToolCalled)]
        assert calls.count("weather") == 1
    assert desk.marks == []


@pytest.mark.parametrize("name", INSIDERS)
async def test_a_named_body_runs_once_inside_a_function(name: str, desk: Desk):
    result = await result_of(INSIDERS[name](desk), case(allow_tools=["weather"]))
    assert result.status == "passed", result.error
    assert desk.marks == ["weather Oslo 1"]


@pytest.mark.parametrize("name", BYPASSES)
async def test_a_way_around_the_gate_leads_nowhere_inside_a_function(name: str, tmp_path: Path):
    await leads_nowhere(BYPASSES[name], tmp_path, around)


def consulting(inner: Any) -> Any:
    async def consult() -> str:
        """Ask another agent."""
        await run_bare(inner)
        return "consulted"

    return consult


CONSULT = ("consult", {})


@pytest.mark.parametrize("native", [True, False], ids=["native", "google-adk"])
async def test_the_agent_that_a_named_tool_starts_is_asked_about(native: bool, desk: Desk):
    consult = consulting(simple(desk))
    clerk: Any = agent("clerk", CONSULT, "done", tools=[consult])
    if native:
        clerk = Agent("clerk", model=Scripted(call("consult"), "done"), tools=[tool(consult)])
    refused = await result_of(clerk, case(allow_tools=["consult"]))
    assert refused.error is not None
    assert (refused.status, refused.error.type) == ("error", "ToolRefused")
    mocked = await result_of(clerk, case(allow_tools=["consult"], mocks={"weather": "fine"}))
    assert mocked.status == "passed", mocked.error
    outer, weather = ledger_of(mocked).of(ToolCalled)
    assert weather.path == f"{outer.path}/call:{outer.call_id}/inner"
    assert desk.marks == []
    await result_of(clerk, case(allow_tools=["consult", "weather"]))
    assert desk.marks == ["weather Oslo 1"]


async def test_the_agent_that_a_callback_of_a_handed_over_agent_starts_is_asked_about(desk: Desk):
    inner = simple(desk)

    async def act(callback_context: Any) -> None:
        with suppress(Exception):
            await run_bare(inner)

    clerk = agent("clerk", "done", before_agent_callback=act)
    refused = await result_of(clerk, case())
    mocked = await result_of(clerk, case(**MOCKED))
    assert (refused.status, mocked.status) == ("error", "passed"), mocked.error
    (weather,) = ledger_of(mocked).of(ToolCalled)
    assert weather.path == "@1/clerk/inner"
    assert desk.marks == []


async def test_a_named_tool_does_not_open_another_one_that_it_calls(desk: Desk):
    other = FunctionTool(desk.weather)

    async def consult(tool_context: ToolContext) -> Any:
        """Run another tool in one's own context."""
        return await other.run_async(args={"city": "Oslo"}, tool_context=tool_context)

    for clerk in (
        agent("clerk", CONSULT, "done", tools=[consult]),
        around(agent("inner", CONSULT, "done", tools=[consult])),
    ):
        refused = await result_of(clerk, case(allow_tools=["consult"]))
        assert refused.status == "error"
        mocked = await result_of(clerk, case(allow_tools=["consult"], mocks={"weather": "fine"}))
        assert mocked.status == "passed", mocked.error
    assert desk.marks == []


async def test_a_tool_whose_method_was_replaced_is_held_when_its_agent_is_handed_over(desk: Desk):
    made: Any = replaced_on_the_object(desk)
    (inner,) = [cell.cell_contents for cell in made.__closure__]
    await run_bare(inner)
    assert desk.marks == ["weather Oslo 1"]
    refused = await result_of(inner, case(metrics=[]))
    assert refused.error is not None
    assert refused.error.type == "ToolRefused"
    assert desk.marks == ["weather Oslo 1"]


async def test_an_agent_used_as_a_tool_can_be_mocked_handed_over_and_inside(desk: Desk):
    outer = agent("outer", ("inner", {"request": "?"}), "done", tools=[AgentTool(simple(desk))])
    for clerk in (outer, around(outer)):
        result = await result_of(clerk, case(mocks={"inner": "all fine"}))
        assert result.status == "passed", result.error
        assert [c.tool for c in ledger_of(result).of(ToolCalled)] == ["inner"]
    assert desk.marks == []


async def test_a_code_executor_inside_a_function_is_refused(desk: Desk):
    class Local(BaseCodeExecutor):
        """Runs code in this very process."""

        def execute_code(self, invocation_context: Any, code_execution_input: Any) -> Any:
            desk.mark(code_execution_input.code.strip())
            return CodeExecutionResult(stdout="42")

    inner = agent("inner", "```python\nprint(42)\n```", "fine", code_executor=Local())

    async def clerk(message: str) -> str:
        await events_of(inner, message)
        return "done"

    await clerk("hello")
    assert desk.marks == ["print(42)"]
    result = await result_of(clerk, case())
    assert result.error is not None
    assert (result.status, result.error.type) == ("error", "ToolRefused")
    assert "code executor Local" in result.error.message
    assert desk.marks == ["print(42)"]


@pytest.mark.parametrize(
    "options", [{"tools": [google_search]}, {"code_executor": BuiltInCodeExecutor()}]
)
async def test_what_runs_at_the_provider_is_refused_inside_a_function(options: Any):
    inner = LlmAgent(name="inner", model=Script(model="gemini-2.5-flash", lines=["x"]), **options)

    async def swallowing(message: str) -> str:
        with suppress(Exception):
            await run_bare(inner, message)
        return "done"

    result = await result_of(swallowing, case())
    assert result.error is not None
    assert "at the model's provider" in result.error.message


async def test_a_live_connection_inside_a_function_is_refused(desk: Desk):
    class Live(Script):
        @asynccontextmanager
        async def connect(self, llm_request: LlmRequest):
            desk.mark("connected")
            raise ConnectionError("no line")
            yield

    inner = LlmAgent(name="inner", model=Live(lines=["fine"]))

    async def clerk(message: str) -> str:
        runner = InMemoryRunner(agent=inner, app_name="bare")
        await runner.session_service.create_session(app_name="bare", user_id="u", session_id="s")
        queue = LiveRequestQueue()
        with suppress(Exception):
            async for _ in runner.run_live(
                user_id="u", session_id="s", live_request_queue=queue, run_config=RunConfig()
            ):
                pass
        return "done"

    await clerk("hello")
    assert desk.marks, "the canary does not fire"
    fired = desk.marks
    result = await result_of(clerk, case())
    assert result.error is not None
    assert "without run_live" in result.error.message
    assert desk.marks == fired


async def test_a_long_running_tool_inside_a_function_needs_a_mock():
    def book(day: str) -> None:
        """Book a day."""

    inner = agent(
        "inner", ("book", {"day": "today"}), "fine", tools=[LongRunningFunctionTool(book)]
    )
    refused = await result_of(around(inner), case())
    assert refused.error is not None
    assert "rehearse that agent by itself" in refused.error.message
    mocked = await result_of(around(inner), case(mocks={"book": {"status": "booked"}}))
    assert mocked.status == "passed", mocked.error


async def events_of(inner: Any, message: str) -> list[Any]:
    runner = InMemoryRunner(agent=inner, app_name="bare")
    await runner.session_service.create_session(app_name="bare", user_id="u", session_id="s")
    said = types.Content(role="user", parts=[types.Part(text=message)])
    return [e async for e in runner.run_async(user_id="u", session_id="s", new_message=said)]


async def test_a_tool_that_wants_an_approval_pauses_for_the_function_around_it(desk: Desk):
    careful = FunctionTool(desk.weather, require_confirmation=True)
    inner = agent("inner", WEATHER, "fine", tools=[careful])

    async def clerk(message: str) -> str:
        wanted = [c.name for e in await events_of(inner, message) for c in e.get_function_calls()]
        return f"done {wanted}"

    alone = await clerk("hello")
    assert "adk_request_confirmation" in alone
    result = await result_of(clerk, case(mocks={"weather": "fine"}))
    assert result.status == "passed", result.error
    assert [said.text for said in ledger_of(result).of(AgentSaid)] == [alone]
    assert [c.tool for c in ledger_of(result).of(ToolCalled)] == []
    assert desk.marks == []


async def test_a_server_is_listed_inside_a_function_as_when_its_agent_is_handed_over(desk: Desk):
    clerk = around(agent("clerk", WEATHER, "done", tools=[Server(desk)]))
    await clerk("hello")
    assert desk.marks
    fired = desk.marks
    refused = await result_of(clerk, case())
    assert refused.error is not None
    assert refused.error.type == "ToolRefused"
    assert ledger_of(refused).of(ModelCalled) == []
    mocked = await result_of(clerk, case(mocks={"Server": LISTED, "weather": "mild"}))
    assert mocked.status == "passed", mocked.error
    assert [c.tool for c in ledger_of(mocked).of(ToolCalled)] == ["Server", "weather"]
    assert desk.marks == fired
    bare = await result_of(clerk, case(allow_tools=["Server"]))
    assert (bare.status, desk.marks) == ("error", [*fired, "server started"])


async def test_a_real_mcp_server_is_not_started_inside_a_function(tmp_path: Path):
    canary = tmp_path / "canary"

    async def clerk(message: str) -> str:
        params = StdioServerParameters(command=sys.executable, args=["-c", SERVER, str(canary)])
        far = McpToolset(connection_params=StdioConnectionParams(server_params=params, timeout=60))
        try:
            await run_bare(agent("inner", WEATHER, "fine", tools=[far]), message)
        finally:
            await far.close()
        return "done"

    await clerk("hello")
    fired = canary.read_text()
    assert fired == "server started\nweather\n"
    refused = await result_of(clerk, case())
    mocked = await result_of(clerk, case(mocks={"McpToolset": LISTED, "weather": "mild"}))
    assert (refused.status, mocked.status) == ("error", "passed"), mocked.error
    assert canary.read_text() == fired


class Session:
    """A session with a server that is up already."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def call_tool(self, name: str, *_: Any, **__: Any) -> CallToolResult:
        text = {"type": "text", "text": self._desk.mark(name)}
        return CallToolResult.model_validate({"content": [text]})


class Sessions:
    """Hands out the one session there is."""

    def __init__(self, desk: Desk) -> None:
        self._session = Session(desk)

    async def create_session(self, *_: Any, **__: Any) -> Session:
        return self._session

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: None


async def test_a_tool_of_an_mcp_server_that_is_up_is_asked_about(desk: Desk):
    told = Tool.model_validate({"name": "weather", "inputSchema": LISTED[0]["inputSchema"]})
    manager: Any = Sessions(desk)
    far = McpTool(mcp_tool=told, mcp_session_manager=manager)
    inner = agent("inner", WEATHER, "done", tools=[far])
    await run_bare(inner)
    assert desk.marks == ["weather"]
    for clerk in (inner, around(inner)):
        refused = await result_of(clerk, case())
        assert refused.error is not None
        assert refused.error.type == "ToolRefused"
        mocked = await result_of(clerk, case(**MOCKED))
        assert mocked.status == "passed", mocked.error
    assert desk.marks == ["weather"]


async def test_what_a_function_with_an_agent_heard_before_a_pause_is_not_asked_again(desk: Desk):
    inner = simple(desk)

    @tool(yields=True)
    def confirm(question: str) -> str: ...

    async def clerk(message: str) -> str:
        await run_bare(inner, message)
        return f"done {confirm('sure?')}"

    user = UserAgents(tools={"confirm": "yes"})
    result = await result_of(clerk, case(allow_tools=["weather"], user=user))
    assert result.status == "passed", result.error
    assert desk.marks == ["weather Oslo 1"]
    assert len(ledger_of(result).of(ModelCalled)) == 2


async def test_outside_a_rehearsal_an_agent_runs_as_before(desk: Desk):
    inner = simple(desk)
    before = await events_of(inner, "hello")
    await result_of(around(inner), case(**MOCKED))
    after = await events_of(inner, "hello")
    told = [
        [e.model_dump(include={"author", "content"}) for e in found] for found in (before, after)
    ]
    ids = re.compile(r"adk-[0-9a-f-]+")
    assert ids.sub("", str(told[0])) == ids.sub("", str(told[1]))
    assert desk.marks == ["weather Oslo 1"] * 2


async def test_a_tool_that_reaches_a_handed_over_agent_while_it_runs_is_asked_about(desk: Desk):
    clerk = agent("clerk", WEATHER, "done", before_model_callback=smuggle_into(desk))
    refused = await result_of(clerk, case())
    assert refused.error is not None
    assert refused.error.type == "ToolRefused"
    mocked = await result_of(clerk, case(**MOCKED))
    assert mocked.status == "passed", mocked.error
    assert [c.path for c in ledger_of(mocked).of(ToolCalled)] == ["@1/clerk"]
    assert desk.marks == []


async def test_an_agent_that_comes_up_while_another_runs_is_asked_about(desk: Desk):
    hidden = simple(desk)

    async def act(callback_context: Any) -> None:
        context = callback_context._invocation_context
        async for event in hidden.run_async(context):
            context.session.events.append(event)

    clerk = agent("clerk", "done", before_agent_callback=act)
    refused = await result_of(clerk, case())
    assert refused.error is not None
    assert refused.error.type == "ToolRefused"
    mocked = await result_of(clerk, case(**MOCKED))
    assert mocked.status == "passed", mocked.error
    assert [c.path for c in ledger_of(mocked).of(ToolCalled)] == ["@1/clerk/inner"]
    assert {c.path for c in ledger_of(mocked).of(ModelCalled)} == {"@1/clerk", "@1/clerk/inner"}
    assert desk.marks == []


async def test_a_function_with_an_agent_cut_anywhere_goes_on_and_no_tool_acts_twice(desk: Desk):
    outer = agent("outer", ("inner", {"request": "?"}), "fine", tools=[AgentTool(simple(desk))])
    one = case(allow_tools=["weather"])
    whole = list(await simulate(one, around(outer)))
    assert desk.marks == ["weather Oslo 1"]
    acted = [type(event) for event in whole].index(ToolReturned)
    for cut in range(1, len(whole) - 1):
        before = len(desk.marks)
        ledger = await simulate(one, around(outer), ledger=Ledger(whole[:cut]))
        end, new = ended(ledger), len(desk.marks) - before
        assert end is not None
        in_doubt = isinstance(whole[acted - 1], ToolCalled) and cut == acted
        assert (end.reason, end.error_type) == (
            ("error", "InDoubt") if in_doubt else ("completed", "")
        ), (cut, end)
        assert new == (1 if cut < acted else 0)
        if not in_doubt:
            kinds = (ToolCalled, ToolReturned, ModelReplied, AgentSaid)
            assert [(e.kind, e.path) for e in ledger.of(*kinds)] == [
                (e.kind, e.path) for e in whole if isinstance(e, kinds)
            ]
