"""Toolsets: gated as they are listed; what must ask a server is not even listed unless named."""

import sys
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.google_search_tool import GoogleSearchTool
from google.adk.tools.mcp_tool.mcp_session_manager import StdioConnectionParams
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.genai import types
from mcp import StdioServerParameters

from backends.adk.bypasses import LedgerSource, Server
from backends.adk.scripts import WEATHER, agent, case, ledger_of, result_of
from greenroom import fault, live
from greenroom.backends.adk import AdkBackend
from greenroom.ledger import questions as q
from greenroom.ledger.events import ModelCalled
from greenroom.testing import Desk

LISTED = [
    {
        "name": "weather",
        "description": "The weather.",
        "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
    }
]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def calls(result: Any) -> list[tuple[str, str]]:
    return [(call.tool, call.source) for call in q.tool_calls(ledger_of(result))]


async def test_a_toolsets_tool_is_mocked_by_the_name_the_model_knows(desk: Desk):
    shelf = LedgerSource(desk.weather, tool_name_prefix="far")
    clerk = agent("clerk", ("far_weather", {"city": "Oslo"}), "done", tools=[shelf])
    result = await result_of(clerk, case(mocks={"far_weather": "mild"}))
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert calls(result) == [("far_weather", "mock")]
    assert clerk.tools == [shelf]
    assert AdkBackend(clerk).tools is None


async def test_a_toolsets_tool_that_is_named_runs(desk: Desk):
    clerk = agent("clerk", WEATHER, "done", tools=[LedgerSource(desk.weather)])
    result = await result_of(clerk, case(allow_tools=["weather"]))
    assert (result.status, desk.marks) == ("passed", ["weather Oslo 1"]), result.error


async def test_a_tool_that_comes_up_later_is_gated_as_it_comes(desk: Desk):
    class Growing(LedgerSource):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            self._tools = (desk.later,) if self._tools else (desk.weather,)
            return await super().get_tools(readonly_context)

    lines = [WEATHER, ("later", {"minutes": 5}), "done"]
    clerk = agent("clerk", *lines, tools=[Growing()])
    result = await result_of(clerk, case(mocks={"weather": "mild", "later": "ok"}))
    assert desk.marks == []
    assert {tool for tool, _ in calls(result)} <= {"weather", "later"}


class Completing(BaseTool):
    """Has no body: it only completes what the model is asked."""

    def __init__(self, *, searches: bool) -> None:
        super().__init__(name="today", description="The date.")
        self._searches = searches

    async def process_llm_request(self, *, tool_context: Any, llm_request: Any) -> None:
        llm_request.append_instructions(["It is Monday."])
        if self._searches:
            llm_request.config.tools = [types.Tool(google_search=types.GoogleSearch())]


async def test_a_tool_of_ones_own_that_completes_requests_is_run():
    clerk = agent("clerk", "done", tools=[Completing(searches=False)])
    result = await result_of(clerk, case())
    assert result.status == "passed", result.error
    assert "It is Monday." in str(ledger_of(result).of(ModelCalled)[0])


async def test_one_that_brings_a_tool_of_the_provider_is_refused_when_it_does():
    result = await result_of(agent("clerk", "done", tools=[Completing(searches=True)]), case())
    assert result.error is not None
    assert (result.error.type, len(ledger_of(result).of(ModelCalled))) == ("ToolRefused", 0)


async def test_a_provider_side_tool_in_a_toolset_ends_the_case(desk: Desk):
    class Searching(LedgerSource):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            return [GoogleSearchTool()]

    result = await result_of(agent("clerk", "done", tools=[Searching()]), case())
    assert result.error is not None
    assert (result.status, len(ledger_of(result).of(ModelCalled))) == ("error", 0)
    assert "google_search" in result.error.message


async def test_a_server_is_not_asked_for_its_tools_and_the_model_is_not_asked_either(desk: Desk):
    result = await result_of(agent("clerk", "done", tools=[Server(desk)]), case())
    assert result.error is not None
    assert (result.status, result.error.type, desk.marks) == ("error", "ToolRefused", [])
    assert "'Server'" in result.error.message
    assert ledger_of(result).of(ModelCalled) == []


async def test_a_named_server_lists_its_tools_and_each_tool_still_needs_its_mock(desk: Desk):
    server = Server(desk, tool_name_prefix="desk")
    clerk = agent("clerk", ("desk_weather", {"city": "Oslo"}), "done", tools=[server])
    for allowed in (server, live(server), "desk"):
        refused = await result_of(clerk, case(allow_tools=[allowed]))
        assert (refused.status, set(desk.marks)) == ("error", {"server started"})
    passed = await result_of(clerk, case(mocks={"desk": live(server), "desk_weather": "mild"}))
    assert (passed.status, set(desk.marks)) == ("passed", {"server started"}), passed.error
    assert calls(passed) == [("desk", "live"), ("desk_weather", "mock")]


async def test_a_case_may_say_itself_which_tools_a_server_has(desk: Desk):
    clerk = agent("clerk", WEATHER, "done", tools=[Server(desk)])
    one = case(mocks={"Server": LISTED, "weather": "mild"})
    result = await result_of(clerk, one)
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert calls(result) == [("Server", "mock"), ("weather", "mock")]
    assert ledger_of(result).of(ModelCalled)[0].tools == ("weather",)


@pytest.mark.parametrize("nonsense", ["weather", [{"nom": "weather"}], [3], None])
async def test_a_listing_that_is_none_ends_the_case(desk: Desk, nonsense: Any):
    clerk = agent("clerk", "done", tools=[Server(desk)])
    result = await result_of(clerk, case(mocks={"Server": nonsense}))
    assert result.error is not None
    assert (result.status, desk.marks) == ("error", [])
    assert "the tools that the server lists" in result.error.message


async def test_a_server_that_cannot_be_reached_is_the_agents_failure_and_says_why(desk: Desk):
    class Down(Server):
        async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
            raise ConnectionError("nobody at home")

    down = Down(desk)
    result = await result_of(agent("clerk", "done", tools=[down]), case(allow_tools=[down]))
    assert result.error is not None
    assert (result.status, result.error.phase) == ("error", "agent")
    assert "'Down' could not be listed" in result.error.message
    assert "nobody at home" in result.error.message
    assert ledger_of(result).of(ModelCalled) == []


async def test_a_case_may_say_that_a_server_is_down(desk: Desk):
    clerk = agent("clerk", "done", tools=[Server(desk)])
    result = await result_of(clerk, case(mocks={"Server": fault("nobody at home")}))
    assert result.error is not None
    assert (result.status, result.error.phase, desk.marks) == ("error", "agent", [])
    assert "nobody at home" in result.error.message


SERVER = """
import sys
try:
    from mcp.server.mcpserver import MCPServer
except ImportError:
    from mcp.server.fastmcp import FastMCP as MCPServer

with open(sys.argv[1], "a") as file:
    file.write("server started\\n")
server = MCPServer("desk")


@server.tool()
def weather(city: str) -> str:
    with open(sys.argv[1], "a") as file:
        file.write("weather\\n")
    return "fine"


server.run()
"""


async def test_a_real_mcp_server_is_not_started(tmp_path: Path):
    canary = tmp_path / "canary"

    def toolset() -> McpToolset:
        params = StdioServerParameters(command=sys.executable, args=["-c", SERVER, str(canary)])
        return McpToolset(connection_params=StdioConnectionParams(server_params=params, timeout=60))

    bare = toolset()
    assert [tool.name for tool in await bare.get_tools()] == ["weather"]
    await bare.close()
    assert canary.read_text() == "server started\n"

    def clerk() -> LlmAgent:
        return agent("clerk", WEATHER, "done", tools=[toolset()])

    refused = await result_of(clerk(), case())
    mocked = await result_of(clerk(), case(mocks={"McpToolset": LISTED, "weather": "mild"}))
    assert (refused.status, mocked.status) == ("error", "passed"), mocked.error
    assert canary.read_text() == "server started\n"
