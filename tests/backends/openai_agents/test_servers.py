"""Tools of MCP servers that code calls itself, without an agent of the framework."""

import json
from pathlib import Path
from typing import Any

import pytest
from agents.mcp import MCPServer
from mcp.types import CallToolResult, TextContent

from backends.openai_agents.bypasses import WEATHER, Server, clerk
from greenroom import Case, evaluate
from greenroom.backends.openai_agents import OpenAIAgentsBackend
from greenroom.cases import fault, in_turn
from greenroom.ledger import questions as q
from greenroom.ledger.events import ToolBlocked, ToolCalled, ToolReturned
from greenroom.metrics import completed_within
from greenroom.results.result import CaseResult
from greenroom.testing import Desk


class Louder(Server):
    """A server that hands its calls on to its base class."""

    async def call_tool(self, *args: Any, **named: Any) -> CallToolResult:
        return await super().call_tool(*args, **named)


class Proxy(Server):
    """A server that hands its calls on to another one."""

    async def call_tool(self, *args: Any, **named: Any) -> CallToolResult:
        return await Server(self.desk).call_tool(*args, **named)


SERVERS = [Server, Louder, Proxy]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


def text_in(found: CallToolResult) -> str:
    return "".join(part.text for part in found.content if isinstance(part, TextContent))


def asking(server: MCPServer, times: int = 1) -> Any:
    async def ask(message: str) -> str:
        said: list[str] = []
        for _ in range(times):
            try:
                found = await server.call_tool("weather", {"city": "Oslo"})
            except Exception as error:
                said.append(f"swallowed {error}")
            else:
                said.append(text_in(found))
        return " ".join(said)

    return ask


async def result_of(agent: Any, **options: Any) -> CaseResult:
    case = Case("c", "Hi", metrics=[completed_within(600)], **options)
    return (await evaluate(agent, case, store=None)).results[0]


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_call_without_a_mock_is_refused_though_the_refusal_is_swallowed(
    kind: type[Server], desk: Desk
):
    result = await result_of(asking(kind(desk)))
    assert (result.status, desk.marks) == ("error", [])
    assert [blocked.tool for blocked in result.ledger.of(ToolBlocked)] == ["weather"]


@pytest.mark.parametrize(
    "answer, text", [("cold", "cold"), ({"degrees": -3}, '{"degrees": -3}'), (["a"], '["a"]')]
)
async def test_a_mock_answers_in_the_form_of_a_server(answer: Any, text: str, desk: Desk):
    result = await result_of(asking(Server(desk)), mocks={"weather": answer})
    assert (result.status, q.response(result.ledger), desk.marks) == ("passed", text, []), (
        result.error
    )
    [call] = result.ledger.of(ToolCalled)
    assert (call.tool, call.args) == ("weather", {"city": "Oslo"})


async def test_a_mock_may_answer_as_a_server_would_and_fail(desk: Desk):
    whole = {"content": [{"type": "text", "text": "warm"}], "isError": False}
    mocks = {"weather": in_turn(whole, fault("no signal"))}
    result = await result_of(asking(Server(desk), times=2), mocks=mocks)
    assert (result.status, desk.marks) == ("passed", []), result.error
    assert q.response(result.ledger) == "warm no signal"


@pytest.mark.parametrize("kind", SERVERS)
async def test_a_tool_that_is_allowed_runs_and_is_asked_about_once(kind: type[Server], desk: Desk):
    result = await result_of(asking(kind(desk)), allow_tools=["weather"])
    assert (result.status, q.response(result.ledger)) == ("passed", "really called"), result.error
    assert desk.marks == ["called"]
    [returned] = result.ledger.of(ToolReturned)
    assert "really called" in json.dumps(returned.value)


@pytest.mark.parametrize("kind", SERVERS)
async def test_an_agent_s_call_of_a_server_is_asked_about_once(kind: type[Server], desk: Desk):
    server = kind(desk)
    agent = OpenAIAgentsBackend(clerk(WEATHER, "done", mcp_servers=[server]), live_servers=[server])
    result = await result_of(agent, allow_tools=["weather"])
    assert (result.status, q.response(result.ledger)) == ("passed", "done"), result.error
    assert [mark for mark in desk.marks if mark != "listed"] == ["called"]
    assert len(result.ledger.of(ToolCalled)) == 1


async def test_outside_of_rehearsals_a_server_is_called_as_usual(desk: Desk):
    await result_of(asking(Server(desk)), mocks={"weather": "mocked"})
    found = await Server(desk).call_tool("weather", {"city": "Oslo"})
    assert text_in(found) == "really called"
