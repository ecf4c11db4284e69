"""Toolsets of pydantic-ai whose tools code calls itself, without letting an agent do so."""

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from threading import Thread
from typing import Any

import anyio.from_thread
import anyio.to_thread
import pytest
from pydantic_ai import Agent, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    CombinedToolset,
    FunctionToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_ai.usage import RunUsage
from pydantic_core import SchemaValidator, core_schema

from greenroom import Case, Stop, evaluate
from greenroom.ledger.events import ToolBlocked, ToolCalled
from greenroom.ledger.questions import tool_calls, user_view
from greenroom.metrics import contains
from greenroom.results.result import CaseResult

Marks = list[str]
Toolset = AbstractToolset[Any]
Ask = Callable[[], Coroutine[Any, Any, Any]]


def saying(*lines: Any) -> FunctionModel:
    async def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        said = lines[sum(isinstance(m, ModelResponse) for m in messages) % len(lines)]
        return ModelResponse(parts=[TextPart(said) if isinstance(said, str) else said])

    return FunctionModel(reply, model_name="script")


class Bank(AbstractToolset[Any]):
    """A toolset that knows itself how to call its tool."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {
            "pay": ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(name="pay"),
                max_retries=0,
                args_validator=SchemaValidator(core_schema.any_schema()),
            )
        }

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        self.marks.append(name)
        return "paid"


class Careful(Bank):
    """Passes its calls to its base class, and names its parameters in its own way."""

    async def call_tool(self, tool_name: str, given: Any, context: Any, which: Any) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return await super().call_tool(tool_name, given, context, which)


class Pays:
    async def call_tool(self, *given: Any) -> Any:
        self.__dict__["marks"].append(given[0])
        return "paid"


class Mixed(Pays, Bank):  # pyright: ignore[reportIncompatibleMethodOverride]
    """Has its call from a mixin, which is no toolset."""


def function_toolset(marks: Marks) -> FunctionToolset[Any]:
    def pay() -> str:
        """Pay."""
        marks.append("pay")
        return "paid"

    return FunctionToolset([pay])


def wrapping(marks: Marks) -> Toolset:
    class Wrapping(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return await self.wrapped.call_tool(name, tool_args, ctx, tool)

    return Wrapping(Bank(marks))


def replacing(marks: Marks) -> Toolset:
    class Replacing(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            marks.append(name)
            return "paid"

    return Replacing(function_toolset([]))


KINDS: dict[str, Callable[[Marks], Toolset]] = {
    "its own": Bank,
    "a subclass with other parameters": Careful,
    "a mixin": Mixed,
    "a function's": function_toolset,
    "a wrapper that hands on": wrapping,
    "a wrapper that does it itself": replacing,
    "one of several": lambda marks: CombinedToolset([Bank(marks)]),
    "filtered": lambda marks: Bank(marks).filtered(lambda *_: True),
}


def asking(toolset: Toolset, *, without_tool: bool = False) -> Ask:
    async def ask() -> Any:
        ctx = RunContext[Any](deps=None, model=saying("done"), usage=RunUsage())
        tool: Any = (await toolset.get_tools(ctx))["pay"]
        return await toolset.call_tool("pay", {}, ctx, None if without_tool else tool)  # pyright: ignore[reportArgumentType]

    return ask


async def at_once(ask: Ask) -> Any:
    return await ask()


async def in_a_thread(ask: Ask) -> Any:
    return await asyncio.to_thread(lambda: asyncio.run(ask()))


async def from_a_thread(ask: Ask) -> Any:
    return await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(ask))


async def in_a_thread_of_its_own(ask: Ask) -> Any:
    found: list[Any] = []

    def work() -> None:
        with suppress(Exception):
            found.append(asyncio.run(ask()))

    thread = Thread(target=work)
    thread.start()
    await asyncio.to_thread(thread.join)
    return found


PLACES = [at_once, in_a_thread, from_a_thread, in_a_thread_of_its_own]


def function(ask: Ask) -> Any:
    async def desk(message: str) -> str:
        with suppress(Exception):
            await ask()
        return "done"

    return desk


def instructions(ask: Ask) -> Any:
    agent = Agent(saying("done"), name="clerk")

    @agent.system_prompt
    async def look() -> str:
        with suppress(Exception):
            await ask()
        return "Be kind."

    return agent


def output_validator(ask: Ask) -> Any:
    agent = Agent(saying("done"), name="clerk")

    @agent.output_validator
    async def check(said: str) -> str:
        with suppress(Exception):
            await ask()
        return said

    return agent


def another_tool(ask: Ask) -> Any:
    async def look() -> str:
        """Look."""
        with suppress(Exception):
            await ask()
        return "seen"

    return Agent(saying(ToolCallPart("look", {}), "done"), name="clerk", tools=[look])


CALLERS = [function, instructions, output_validator, another_tool]


async def played(agent: Any, times: int = 1, **options: Any) -> list[CaseResult]:
    allowed = [*options.pop("allow_tools", ())]
    if getattr(agent, "name", "") and "look" in agent._function_toolset.tools:
        allowed.append("look")
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    cases = [Case(f"case {n}", allow_tools=allowed, **given) for n in range(times)]
    return [*(await evaluate(agent, cases, concurrency=times, store=None)).results]


def calls_of(result: CaseResult) -> list[tuple[str, str]]:
    return [(c.tool, c.source) for c in tool_calls(result.ledger) if c.tool != "look"]


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_of_a_toolset_is_answered_like_any_other(kind: str, caller: Any):
    fired: Marks = []
    await asking(KINDS[kind](fired))()
    assert fired == ["pay"]
    marks: Marks = []
    agent = caller(asking(KINDS[kind](marks)))
    for times in (1, 4):
        for result in await played(agent, times):
            assert (result.status, marks) == ("error", [])
            assert [blocked.tool for blocked in result.ledger.of(ToolBlocked)] == ["pay"]
    [mocked] = await played(agent, mocks={"pay": "ok"})
    assert (mocked.status, marks) == ("passed", []), mocked.error
    assert calls_of(mocked) == [("pay", "mock")]
    for result in (named := await played(agent, 3, allow_tools=["pay"])):
        assert result.status == "passed", result.error
        assert calls_of(result) == [("pay", "live")]
    assert marks == ["pay"] * len(named)


@pytest.mark.parametrize("place", PLACES)
async def test_a_call_of_a_toolset_is_answered_wherever_it_is_made(place: Any):
    marks: Marks = []
    asks = [asking(kind(marks)) for kind in KINDS.values()]

    async def desk(message: str) -> str:
        return " ".join([str(await place(ask)) for ask in asks])

    [refused] = await played(desk)
    assert (refused.status, marks) == ("error", [])
    [mocked] = await played(desk, mocks={"pay": "done"})
    assert (mocked.status, marks) == ("passed", []), mocked.error
    assert calls_of(mocked) == [("pay", "mock")] * len(asks)


async def test_a_call_without_a_tool_s_definition_is_answered_too():
    marks: Marks = []
    desk = function(asking(Bank(marks), without_tool=True))
    [refused] = await played(desk)
    assert (refused.status, marks) == ("error", [])
    [named] = await played(desk, allow_tools=["pay"])
    assert (named.status, marks, calls_of(named)) == ("passed", ["pay"], [("pay", "live")])


async def test_a_named_tool_does_not_open_another_toolset_s_that_it_calls():
    marks: Marks = []

    class Greedy(Bank):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            await Deleting(marks).call_tool("delete", {}, ctx, None)
            return await super().call_tool(name, tool_args, ctx, tool)

    class Deleting(Bank): ...

    agent = Agent(saying(ToolCallPart("pay", {}), "done"), name="clerk", toolsets=[Greedy(marks)])
    await agent.run("hello")
    assert marks == ["delete", "pay"]
    marks.clear()
    [refused] = await played(agent, allow_tools=["pay"])
    assert (refused.status, marks) == ("error", [])
    [mocked] = await played(agent, allow_tools=["pay"], mocks={"delete": "ok"})
    assert (mocked.status, marks) == ("passed", ["pay"]), mocked.error
    assert sorted(calls_of(mocked)) == [("delete", "mock"), ("pay", "live")]


@pytest.mark.parametrize("kind", KINDS)
async def test_an_agent_s_own_call_is_asked_about_once(kind: str):
    marks: Marks = []
    script = saying(ToolCallPart("pay", {}), "done")
    agent = Agent(script, name="clerk", toolsets=[KINDS[kind](marks)])
    [named] = await played(agent, allow_tools=["pay"])
    assert (named.status, marks, calls_of(named)) == ("passed", ["pay"], [("pay", "live")])


async def test_a_call_by_a_simulated_user_is_on_the_user_s_side():
    marks: Marks = []
    ask = asking(Bank(marks))

    async def user(input: str) -> str:
        with suppress(Exception):
            await ask()
        return "thanks"

    agent = Agent(saying("done"), name="clerk")
    [refused] = await played(agent, user=user, stop=Stop(max_turns=2))
    assert (refused.status, marks) == ("error", [])
    [mocked] = await played(agent, user=user, stop=Stop(max_turns=2), mocks={"pay": "ok"})
    assert marks == []
    called = [event for event in user_view(mocked.ledger) if isinstance(event, ToolCalled)]
    assert [event.tool for event in called] == ["pay"]


async def test_outside_of_rehearsals_a_toolset_is_called_as_usual():
    marks: Marks = []
    await played(function(asking(Bank(marks))), mocks={"pay": "ok"})
    assert await asking(Careful(marks))() == "paid"
    assert marks == ["pay"]
