"""Tools that a model call or a live tool calls: what opens the fence there opens it for them as little as elsewhere."""

import select
import socket
from collections.abc import Generator
from typing import Any

import pytest

from greenroom import Agent, Case, evaluate, live, tool
from greenroom.metrics import completed_within
from greenroom.models import ModelReply, ModelRequest
from greenroom.results.result import CaseResult

HOST = "127.0.0.1"
PLACES: list[int] = []


@pytest.fixture(autouse=True)
def listening() -> Generator[socket.socket]:
    with socket.create_server((HOST, 0)) as server:
        PLACES[:] = [server.getsockname()[1]]
        yield server


def connect() -> str:
    socket.create_connection((HOST, PLACES[0]), 30).close()
    return "connected"


def is_reached(server: socket.socket) -> bool:
    return bool(select.select([server], [], [], 0)[0])


@tool
def refund(order: int) -> str:
    """Refund an order."""
    return connect()


@tool
def lookup(order: int) -> str:
    """Look an order up, and refund it."""
    connect()
    return refund(order=order)


class Acting:
    """A model that calls a tool itself, while it is asked."""

    name = "acting"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        return ModelReply(refund(order=7))


class Asking:
    """A model that asks for a tool, then repeats its answer."""

    name = "asking"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        from greenroom import call

        last = request.messages[-1]
        return (
            ModelReply(calls=(call("lookup", order=7),))
            if last.role == "user"
            else ModelReply("ok")
        )


async def result_of(agent: Agent, **options: Any) -> CaseResult:
    case = Case("c", "Hi", metrics=[completed_within(600)], **options)
    return (await evaluate(agent, case, store=None)).results[0]


@pytest.mark.parametrize(
    "options",
    [
        {"allow_tools": [refund]},
        {"mocks": {"refund": refund}},
        {"mocks": {"refund": lambda **_: connect()}},
    ],
)
async def test_a_tool_inside_a_model_call_reaches_no_host(
    options: dict[str, Any], listening: socket.socket
) -> None:
    result = await result_of(Agent("desk", model=Acting(), tools=[refund]), **options)
    assert result.status == "error"
    assert "socket.connect" in str(result.error)
    assert not is_reached(listening)


async def test_a_live_tool_inside_a_model_call_reaches_the_hosts_that_were_named(
    listening: socket.socket,
) -> None:
    agent = Agent("desk", model=Acting(), tools=[refund])
    result = await result_of(agent, mocks={"refund": live(refund, hosts=[HOST])})
    assert result.status == "passed", result.error
    assert is_reached(listening)


async def test_the_hosts_of_a_live_tool_are_not_those_of_a_mock_that_it_calls(
    listening: socket.socket,
) -> None:
    agent = Agent("desk", model=Asking(), tools=[lookup, refund])
    mocks = {"lookup": live(lookup, hosts=[HOST]), "refund": lambda **_: connect()}
    result = await result_of(agent, mocks=mocks)
    assert result.status == "error"
    assert "at test_tools_inside_openings.py" in str(result.error)
