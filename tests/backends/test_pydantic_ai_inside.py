"""Ways of running a tool, an output function or a choice, by every door: all meet the gate.

Each is first walked without a rehearsal, to see that it leads somewhere.
"""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any, cast

import mcp
import pytest
from mcp.server.mcpserver import MCPServer
from pydantic_ai import Agent, Choice, Choices, RunContext, direct
from pydantic_ai.capabilities import AbstractCapability, NativeTool
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.native_tools import WebSearchTool
from pydantic_ai.output import NativeOutput, PromptedOutput, TextOutput
from pydantic_ai.tools import Tool, ToolDefinition
from pydantic_ai.toolsets import (
    AbstractToolset,
    FunctionToolset,
    ToolsetTool,
    WrapperToolset,
)
from pydantic_core import SchemaValidator, core_schema

from greenroom import Agent as NativeAgent
from greenroom import Case, evaluate
from greenroom.ledger import ModelCalled
from greenroom.ledger.questions import tool_calls
from greenroom.metrics import called, contains
from greenroom.models import ModelReply
from greenroom.models import ModelRequest as Question
from greenroom.results.result import CaseResult

Marks = list[str]
Way = Callable[[Marks], Agent[Any, Any]]


def saying(*lines: Any) -> FunctionModel:
    """A model that goes through its lines, in one piece or as a stream."""

    def line(messages: list[ModelMessage]) -> Any:
        return lines[sum(isinstance(m, ModelResponse) for m in messages) % len(lines)]

    async def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        said = line(messages)
        return ModelResponse(parts=[TextPart(said) if isinstance(said, str) else said])

    async def stream(messages: list[ModelMessage], _: AgentInfo) -> AsyncIterator[Any]:
        said = line(messages)
        if isinstance(said, str):
            yield said
        else:
            yield {0: DeltaToolCall(said.tool_name, said.args_as_json_str())}

    return FunctionModel(reply, stream_function=stream, model_name="script")


def paying(marks: Marks) -> Callable[[], str]:
    def pay() -> str:
        """Pay."""
        marks.append("pay")
        return "paid"

    return pay


def clerk(*lines: Any, **options: Any) -> Agent[Any, Any]:
    return Agent(saying(*(lines or (ToolCallPart("pay", {}), "done"))), name="clerk", **options)


def plain_tool(marks: Marks) -> Agent[Any, Any]:
    return clerk(tools=[paying(marks)])


def choice(marks: Marks) -> Agent[Any, Any]:
    chosen = Choices({"pay": Choice("Pay.", value=paying(marks)), "wait": Choice("Wait.")})
    return clerk(ToolCallPart("final_result", {"response": "pay"}), output_type=chosen)


def async_choice(marks: Marks) -> Agent[Any, Any]:
    async def pay(amount: int) -> str:
        marks.append("pay")
        return "paid"

    chosen = Choices({"pay": Choice("Pay.", value=functools.partial(pay, 5)), "wait": Choice()})
    return clerk(ToolCallPart("final_result", {"response": "pay"}), output_type=chosen)


def output_function(marks: Marks) -> Agent[Any, Any]:
    return clerk(ToolCallPart("final_result", {}), output_type=paying(marks))


def one_of_two_outputs(marks: Marks) -> Agent[Any, Any]:
    line = ToolCallPart("final_result_pay", {})
    return clerk(line, output_type=[paying(marks), _later])


def _later() -> str:
    return "later"


def text_output(marks: Marks) -> Agent[Any, Any]:
    def pay(text: str) -> str:
        marks.append("pay")
        return text

    return clerk("paid", output_type=TextOutput(pay))


def prompted_output(marks: Marks) -> Agent[Any, Any]:
    return clerk("{}", output_type=PromptedOutput(paying(marks)))


def native_output(marks: Marks) -> Agent[Any, Any]:
    agent = clerk("{}", output_type=NativeOutput(paying(marks)))
    profile: Any = {"supports_json_schema_output": True}
    agent.model = FunctionModel(cast(Any, agent.model).function, profile=profile)
    return agent


def claiming_to_be_the_frameworks(marks: Marks) -> Agent[Any, Any]:
    class Mine(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            marks.append("pay")
            return "paid"

    Mine.__module__, Mine.__qualname__ = "pydantic_ai.toolsets.wrapper", "WrapperToolset"
    return clerk(toolsets=[Mine(FunctionToolset([paying([])]))])


def wrapped_as_the_frameworks(marks: Marks) -> Agent[Any, Any]:
    class Mine(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            marks.append("pay")
            return "paid"

    functools.update_wrapper(Mine.call_tool, WrapperToolset.call_tool)

    return clerk(toolsets=[Mine(FunctionToolset([paying([])]))])


def replaced_in_the_object(marks: Marks) -> Agent[Any, Any]:
    toolset: Any = FunctionToolset([paying([])])

    @functools.wraps(toolset.call_tool)
    async def call_tool(*given: Any) -> Any:
        marks.append("pay")
        return "paid"

    toolset.call_tool = call_tool
    return clerk(toolsets=[toolset])


def found_by_another_look(marks: Marks) -> Agent[Any, Any]:
    async def call_tool(*given: Any) -> Any:
        marks.append("pay")
        return "paid"

    class Mine(FunctionToolset[Any]):
        def __getattribute__(self, name: str) -> Any:
            return call_tool if name == "call_tool" else super().__getattribute__(name)

    return clerk(toolsets=[Mine([paying([])])])


def subclassed(marks: Marks) -> Agent[Any, Any]:
    class Mine(FunctionToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return await super().call_tool(name, tool_args, ctx, tool)

    return clerk(toolsets=[Mine([paying(marks)])])


class Served(AbstractToolset[Any]):
    """The tools of an MCP server in this process."""

    def __init__(self, server: MCPServer) -> None:
        self.server = server

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        async with mcp.Client(self.server) as client:
            listed = (await client.list_tools()).tools
        validator = SchemaValidator(core_schema.any_schema())
        return {
            known.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(name=known.name, parameters_json_schema=known.input_schema),
                max_retries=0,
                args_validator=validator,
            )
            for known in listed
        }

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        async with mcp.Client(self.server) as client:
            return (await client.call_tool(name, tool_args)).structured_content


def of_a_server(marks: Marks) -> Agent[Any, Any]:
    server = MCPServer("bank")
    server.tool()(paying(marks))
    return clerk(toolsets=[Served(server)])


def of_a_server_under_other_names(marks: Marks) -> Agent[Any, Any]:
    server = MCPServer("bank")
    server.tool(name="send")(paying(marks))
    return clerk(toolsets=[Served(server).renamed({"pay": "send"}).filtered(lambda *_: True)])


def made_in_the_run(marks: Marks) -> Agent[Any, Any]:
    agent = clerk()

    @agent.toolset
    def make(ctx: RunContext[Any]) -> AbstractToolset[Any]:
        class Mine(WrapperToolset[Any]):
            async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
                marks.append("pay")
                return "paid"

        return Mine(FunctionToolset([paying([])]))

    return agent


def in_instructions(marks: Marks) -> Agent[Any, Any]:
    agent = clerk("done")

    @agent.instructions
    async def look() -> str:
        return (await plain_tool(marks).run("look")).output

    return agent


def in_a_hook(marks: Marks) -> Agent[Any, Any]:
    class Looks(AbstractCapability[Any]):
        async def before_model_request(self, ctx: RunContext[Any], request_context: Any) -> Any:
            await plain_tool(marks).run("look")
            return request_context

    return clerk("done", capabilities=[Looks()])


def in_an_output_validator(marks: Marks) -> Agent[Any, Any]:
    agent = clerk("done")

    @agent.output_validator
    async def check(said: str) -> str:
        await plain_tool(marks).run("look")
        return said

    return agent


def in_a_model(marks: Marks) -> Agent[Any, Any]:
    async def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        await plain_tool(marks).run("look")
        return ModelResponse(parts=[TextPart("done")])

    return Agent(FunctionModel(reply), name="clerk")


def in_a_pool_of_a_hook(marks: Marks) -> Agent[Any, Any]:
    agent = clerk("done")

    @agent.instructions
    def look() -> str:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(lambda: asyncio.run(plain_tool(marks).run("look"))).result()
        return "Be kind."

    return agent


WAYS: list[Way] = [
    *(plain_tool, choice, async_choice, output_function, one_of_two_outputs, text_output),
    *(prompted_output, native_output, claiming_to_be_the_frameworks, wrapped_as_the_frameworks),
    *(replaced_in_the_object, found_by_another_look, subclassed, of_a_server),
    *(of_a_server_under_other_names, made_in_the_run, in_instructions, in_a_hook),
    *(in_an_output_validator, in_a_model, in_a_pool_of_a_hook),
]


def wrapping(agent: Agent[Any, Any]) -> Callable[[str], Awaitable[str]]:
    """A function around an agent, by an author who makes the best of every failure."""

    async def desk(message: str) -> str:
        with suppress(Exception):
            await agent.run(message)
        return "done"

    return desk


async def played(agent: Any, times: int = 1, **options: Any) -> Sequence[CaseResult]:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    cases = [Case(f"case {n}", **given) for n in range(times)]
    return (await evaluate(agent, cases, concurrency=times)).results


@pytest.mark.parametrize("way", WAYS)
async def test_nothing_runs_by_any_way_unless_it_is_named(way: Way):
    fired: Marks = []
    await way(fired).run("hello")
    assert "pay" in fired
    marks: Marks = []
    for agent in (way(marks), wrapping(way(marks))):
        for times in (1, 8):
            for result in await played(agent, times):
                assert (result.status, result.error and result.error.type) == (
                    "error",
                    "ToolRefused",
                )
    assert marks == []


@pytest.mark.parametrize("way", WAYS)
async def test_a_mock_answers_by_every_way(way: Way):
    marks: Marks = []
    for agent in (way(marks), wrapping(way(marks))):
        metrics = [called("pay")]
        (result,) = await played(agent, mocks={"pay": "done"}, metrics=metrics)
        assert result.status == "passed", result.error
        assert result.ledger is not None
        assert [(c.tool, c.source) for c in tool_calls(result.ledger)] == [("pay", "mock")]
    assert marks == []


@pytest.mark.parametrize("way", WAYS)
async def test_what_is_named_runs_once_by_every_way(way: Way):
    for is_inside in (False, True):
        marks: Marks = []
        agent = way(marks)
        given = wrapping(agent) if is_inside else agent
        (result,) = await played(given, allow_tools=["pay"], metrics=[called("pay")])
        assert (result.status, marks) == ("passed", ["pay"]), result.error


async def streamed(agent: Agent[Any, Any]) -> Any:
    async with agent.run_stream("hello") as run:
        return await run.get_output()


async def iterated(agent: Agent[Any, Any]) -> Any:
    async with agent.iter("hello") as run:
        async for _ in run:
            pass
    assert run.result is not None
    return run.result.output


async def events(agent: Agent[Any, Any]) -> Any:
    async with agent.run_stream_events("hello") as told:
        return [event async for event in told]


async def sync(agent: Agent[Any, Any]) -> Any:
    def run() -> Any:
        with asyncio.Runner() as runner:
            asyncio.set_event_loop(runner.get_loop())
            return agent.run_sync("hello").output

    return await asyncio.to_thread(run)


@pytest.mark.parametrize("start", [streamed, iterated, events, sync])
async def test_every_way_of_starting_a_run_inside_a_function_meets_the_gate(start: Any):
    fired: Marks = []
    await start(plain_tool(fired))
    assert fired == ["pay"]
    marks: Marks = []

    async def desk(message: str) -> str:
        with suppress(Exception):
            await start(plain_tool(marks))
        return "done"

    refused = [*await played(desk), *await played(desk, 8)]
    assert {result.status for result in refused} == {"error"}
    (result,) = await played(desk, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert (result.status, marks) == ("passed", []), result.error
    assert result.ledger is not None
    assert [event.path for event in result.ledger.of(ModelCalled)] == ["@1/desk/clerk"] * 2


async def test_a_named_wrapping_toolset_is_asked_once_and_cannot_call_another_tool():
    marks: Marks = []

    def delete() -> str:
        """Delete."""
        marks.append("delete")
        return "deleted"

    class Curious(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            if other := (await self.get_tools(ctx)).get("my_delete"):
                with suppress(Exception):
                    await super().call_tool("my_delete", {}, ctx, other)
            return await super().call_tool(name, tool_args, ctx, tool)

    def desk(*tools: Any) -> Agent[Any, Any]:
        toolset = Curious(FunctionToolset([paying(marks), *tools]).prefixed("my"))
        return clerk(ToolCallPart("my_pay", {}), "done", toolsets=[toolset])

    (result,) = await played(desk(), allow_tools=["my_pay"])
    assert (result.status, marks) == ("passed", ["pay"]), result.error
    assert result.ledger is not None
    assert [call.tool for call in tool_calls(result.ledger)] == ["my_pay"]
    await desk(delete).run("hello")
    assert marks == ["pay", "delete", "pay"]
    marks.clear()
    (result,) = await played(desk(delete), allow_tools=["my_pay"])
    assert result.status == "error"
    assert "delete" not in marks


class Plain(AbstractToolset[Any]):
    """Two tools without arguments, which share the object that says so."""

    def __init__(self, marks: Marks) -> None:
        self.marks = marks
        self.schema: dict[str, Any] = {"type": "object", "properties": {}}

    @property
    def id(self) -> str:
        return "plain"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        return {
            name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(name=name, parameters_json_schema=self.schema),
                max_retries=0,
                args_validator=SchemaValidator(core_schema.any_schema()),
            )
            for name in ("pay", "delete")
        }

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        self.marks.append(name)
        return name


class Greedy(WrapperToolset[Any]):
    """Calls everything that it finds."""

    async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
        for other, found in (await self.get_tools(ctx)).items():
            with suppress(Exception):
                await super().call_tool(other, tool_args, ctx, found)
        return "done"


@pytest.mark.parametrize("prefix", ["", "my"])
async def test_a_named_tool_does_not_open_one_with_the_same_schema_object(prefix: str):
    marks: Marks = []
    name = f"{prefix}_pay" if prefix else "pay"
    toolset = Plain(marks).prefixed(prefix) if prefix else Plain(marks)
    desk = clerk(ToolCallPart(name, {}), "done", toolsets=[Greedy(toolset)])
    await desk.run("hello")
    assert marks == ["pay", "delete"]
    for agent in (desk, wrapping(desk)):
        marks.clear()
        (refused,) = await played(agent, allow_tools=[name])
        assert (refused.status, marks) == ("error", ["pay"])
        (mocked,) = await played(agent, allow_tools=[name], mocks={"delete": "ok"})
        assert (mocked.status, marks) == ("passed", ["pay", "pay"]), mocked.error
        (named,) = await played(agent, allow_tools=[name, "delete"])
        assert (named.status, marks[2:]) == ("passed", ["pay", "delete"]), named.error


async def test_a_wrapped_agent_as_tool_is_a_body_and_the_agent_inside_meets_the_gate():
    marks: Marks = []
    inner = plain_tool(marks)

    async def ask(question: str) -> str:
        """Ask another agent."""
        return (await inner.run(question)).output

    @functools.wraps(ask)
    async def consult(question: str) -> str:
        marks.append("consult")
        return await ask(question)

    agent = clerk(ToolCallPart("ask", {"question": "?"}), "done", tools=[consult])
    await agent.run("hello")
    assert marks == ["consult", "pay"]
    marks.clear()
    (unnamed,) = await played(agent)
    assert (unnamed.status, marks) == ("error", [])
    (named,) = await played(agent, allow_tools=["ask"])
    assert (named.status, marks) == ("error", ["consult"])
    (mocked,) = await played(agent, allow_tools=["ask"], mocks={"pay": "ok"})
    assert (mocked.status, marks) == ("passed", ["consult", "consult"]), mocked.error


async def test_a_toolset_called_by_hand_inside_a_function_meets_the_gate():
    marks: Marks = []
    toolset = FunctionToolset[Any]([paying(marks)])

    async def desk(message: str) -> str:
        agent = clerk("done")
        async with agent.iter("hello") as run:
            ctx: Any = RunContext(
                deps=None, model=cast(Any, agent.model), usage=run.usage, agent=agent
            )
            found = await toolset.get_tools(ctx)
            with suppress(Exception):
                await toolset.call_tool("pay", {}, ctx, found["pay"])
        return "done"

    await desk("hello")
    assert marks == ["pay"]
    marks.clear()
    (refused,) = await played(desk)
    (mocked,) = await played(desk, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert (refused.status, mocked.status, marks) == ("error", "passed", []), mocked.error


async def test_a_tool_object_called_by_hand_meets_the_gate():
    marks: Marks = []
    pay = Tool(paying(marks))

    async def desk(message: str) -> str:
        with suppress(Exception):
            await pay.function_schema.call({}, cast(Any, None))
        return "done"

    (refused,) = await played(desk)
    (mocked,) = await played(desk, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert (refused.status, mocked.status, marks) == ("error", "passed", []), mocked.error
    (named,) = await played(desk, allow_tools=["pay"], metrics=[called("pay")])
    assert (named.status, marks) == ("passed", ["pay"]), named.error


async def test_a_toolset_of_ones_own_that_calls_its_tool_objects_is_asked_once():
    marks: Marks = []

    class Shelf(FunctionToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return await self.tools[name].function_schema.call(tool_args, ctx)

    desk = clerk(ToolCallPart("pay", {}), "done", toolsets=[Shelf([paying(marks)])])
    (result,) = await played(desk, allow_tools=["pay"])
    assert (result.status, marks) == ("passed", ["pay"]), result.error
    assert result.ledger is not None
    assert [call.tool for call in tool_calls(result.ledger)] == ["pay"]


async def test_models_around_models_are_one_question_and_classes_to_come_are_seen():
    class Mine(WrapperModel):
        async def request(self, *given: Any, **named: Any) -> ModelResponse:
            return await super().request(*given, **named)

    model = Mine(FallbackModel(Mine(saying("done")), saying("never")))

    async def desk(message: str) -> str:
        return (await Agent(model, name="clerk").run(message)).output

    for agent in (Agent(model, name="clerk"), desk):
        (result,) = await played(agent)
        assert result.ledger is not None
        assert (result.status, len(result.ledger.of(ModelCalled))) == ("passed", 1), result.error


async def test_a_model_of_ours_that_asks_by_the_frameworks_layer_is_one_question():
    class Layered:
        name = "layered"

        async def respond(self, request: Question, on_delta: Any = None) -> ModelReply:
            messages = [ModelRequest.user_text_prompt("hello")]
            said = await direct.model_request(saying("done"), messages)
            return ModelReply(said.text or "")

    (result,) = await played(NativeAgent("desk", model=cast(Any, Layered())))
    assert result.ledger is not None
    assert (result.status, len(result.ledger.of(ModelCalled))) == ("passed", 1), result.error


async def test_a_model_asked_without_an_agent_stands_at_its_function():
    async def desk(message: str) -> str:
        said = await direct.model_request(saying("done"), [ModelRequest.user_text_prompt(message)])
        return said.text or ""

    (result,) = await played(desk)
    assert result.ledger is not None
    asked = [(event.path, event.model) for event in result.ledger.of(ModelCalled)]
    assert (result.status, asked) == ("passed", [("@1/desk", "script")])


class Provider(FunctionModel):
    marks: Marks

    async def count_tokens(self, *_: Any, **__: Any) -> Any:
        self.marks.append("counted by the provider")


async def test_what_goes_to_a_provider_past_the_world_is_refused_inside_a_function():
    model: Any = Provider(cast(Any, saying("done")).function, model_name="script")
    model.marks = list[str]()

    async def counting(message: str) -> str:
        with suppress(Exception):
            await model.count_tokens([], None, ModelRequestParameters())
        return "done"

    await counting("hello")
    assert model.marks
    model.marks.clear()
    (result,) = await played(counting)
    assert (result.status, model.marks) == ("error", [])


@pytest.mark.parametrize(
    "options",
    [
        {"capabilities": [NativeTool(WebSearchTool())]},
        {"model_settings": {"openai_native_tools": [{"type": "web_search"}]}},
    ],
    ids=["native tool", "setting"],
)
async def test_tools_that_run_at_the_provider_are_refused_inside_a_function(
    options: dict[str, Any],
):
    asked: list[str] = []

    async def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        asked.append("asked")
        return ModelResponse(parts=[TextPart("done")])

    agent = Agent(FunctionModel(reply), name="clerk", **options)
    await agent.run("hello")
    assert asked
    asked.clear()
    (result,) = await played(wrapping(agent))
    assert (result.status, asked) == ("error", [])
    assert result.error is not None
    assert "provider" in result.error.message


@pytest.mark.parametrize("is_override", [False, True])
async def test_a_request_put_into_a_model_object_is_refused(is_override: bool):
    asked: list[str] = []

    async def request(*_: Any) -> ModelResponse:
        asked.append("asked")
        return ModelResponse(parts=[TextPart("done")])

    model: Any = saying("done")
    model.request = request
    agent = Agent(saying("done") if is_override else model, name="clerk")
    with agent.override(model=model) if is_override else nullcontext():
        await agent.run("hello")
        assert asked == ["asked"]
        asked.clear()
        (result,) = await played(agent)
    assert result.error is not None
    assert (result.error.type, asked) == ("BadAgent", [])
