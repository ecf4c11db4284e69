"""pydantic-ai passes the suite that every backend passes: the real framework, a scripted model."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.capabilities import AbstractCapability, Capability, ProcessEventStream
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.output import TextOutput
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset, WrapperToolset
from pydantic_ai.usage import RequestUsage

from greenroom import call
from greenroom.backends.pydantic_ai import PydanticAIBackend
from greenroom.ledger import ToolCall
from greenroom.testing import (
    USAGE,
    BackendConformance,
    Blueprint,
    Bypass,
    Desk,
    Hang,
    Structured,
    ToolPlan,
    pieces,
)

USED = RequestUsage(input_tokens=USAGE.input, output_tokens=USAGE.output)


@dataclass
class Script:
    """Answers by how many replies the history already holds, so it serves many runs at once."""

    lines: tuple[Any, ...]

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        return ModelResponse(parts=list(parts(await self.line(messages))), usage=USED)

    async def stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        line = await self.line(messages)
        if isinstance(line, str):
            for piece in pieces(line):
                yield piece
            return
        for index, one in enumerate(cast("list[ToolCallPart]", parts(line))):
            args = one.args_as_json_str()
            yield {index: DeltaToolCall(one.tool_name, args, tool_call_id=one.tool_call_id)}

    async def line(self, messages: list[ModelMessage]) -> Any:
        line = self.lines[sum(isinstance(message, ModelResponse) for message in messages)]
        if isinstance(line, Exception):
            raise line
        if isinstance(line, Hang):
            await asyncio.Event().wait()
        return line


def parts(line: Any) -> list[TextPart] | list[ToolCallPart]:
    match line:
        case str():
            return [TextPart(line)]
        case Structured(value):
            return [ToolCallPart("final_result", dict(value), "call-final")]
        case ToolCall():
            return parts([line])
        case _:
            return [
                ToolCallPart(
                    one.tool, dict(one.args), **({"tool_call_id": one.id} if one.id else {})
                )
                for one in line
            ]


class AllFine(AbstractCapability[Any]):
    """A user's capability that makes the best of every failure."""

    async def on_tool_execute_error(self, ctx: Any, *, error: Exception, **_: Any) -> Any:
        return "all fine"


async def listen(ctx: Any, events: Any) -> None:
    async for _ in events:
        pass


def agent(*lines: Any, **options: Any) -> Agent[Any, Any]:
    options = {"name": "clerk", **options}
    return Agent(model(*lines), **options)


def model(*lines: Any, streams: bool = False) -> FunctionModel:
    script = Script(lines)
    if streams:
        return FunctionModel(script, stream_function=script.stream, model_name="script")
    return FunctionModel(script, model_name="script")


class PydanticAIHarness:
    backend = PydanticAIBackend
    seam = (
        "pydantic_ai.tool_manager:ToolManager._raw_execute",
        "pydantic_ai.toolsets:FunctionToolset.call_tool",
        "pydantic_ai.toolsets:WrapperToolset.call_tool",
        "pydantic_ai._output:execute_choice_action",
    )

    def build(self, plan: Blueprint) -> Any:
        asked = [given for given in plan.tools if given.kind == "question"]
        hears = [ProcessEventStream(listen)] if plan.streams else []
        handles = [AllFine()] if plan.swallows else []
        return Agent(
            model(*plan.lines, streams=plan.streams),
            name=plan.name,
            instructions=plan.instructions,
            output_type=plan.output or str,
            tools=[made(given) for given in plan.tools if given not in asked],
            toolsets=[ExternalToolset([question(given) for given in asked])] if asked else [],
            capabilities=[*hears, *handles],
        )

    async def run_bare(self, agent: Any, says: str) -> None:
        await agent.run(says)

    def bypasses(self) -> Mapping[str, Bypass]:
        return {
            "a wrapping toolset that does the work itself": Bypass(wrapping),
            "the tools of a capability": Bypass(of_a_capability),
            "prefixed and renamed tools": Bypass(renamed),
            "a toolset made for each step": Bypass(made_in_the_run(True)),
            "a toolset made for each run": Bypass(made_in_the_run(False)),
            "an output function": Bypass(output_function),
            "a function of the text output": Bypass(text_output),
        }


def made(plan: ToolPlan) -> Tool[Any]:
    return Tool(plan.fn, requires_approval=plan.kind == "approval")


def question(plan: ToolPlan) -> ToolDefinition:
    return ToolDefinition(name=plan.name)


WEATHER = call("weather", city="Oslo")


def wrapping(desk: Desk) -> Any:
    class Helpful(WrapperToolset[Any]):
        async def call_tool(self, name: str, tool_args: Any, ctx: Any, tool: Any) -> Any:
            return desk.mark(f"helpful {name}")

    return agent(WEATHER, "done", toolsets=[Helpful(FunctionToolset([desk.weather]))])


def of_a_capability(desk: Desk) -> Any:
    return agent(WEATHER, "done", capabilities=[Capability(id="sky", tools=[desk.weather])])


def renamed(desk: Desk) -> Any:
    toolset = FunctionToolset([desk.weather]).renamed({"sky": "weather"}).prefixed("my")
    return agent(call("my_sky", city="Oslo"), "done", toolsets=[toolset])


def made_in_the_run(per_run_step: bool) -> Any:
    def build(desk: Desk) -> Any:
        clerk = agent(WEATHER, "done")

        @clerk.toolset(per_run_step=per_run_step)
        def make(ctx: RunContext[Any]) -> FunctionToolset[Any]:
            return FunctionToolset([desk.weather])

        return clerk

    return build


def output_function(desk: Desk) -> Any:
    def send_mail(to: str) -> str:
        """Send a mail."""
        return desk.mark(f"mail {to}")

    return agent(call("final_result", to="Ada"), output_type=send_mail)


def text_output(desk: Desk) -> Any:
    def publish(text: str) -> str:
        return desk.mark(f"published {text}")

    return agent("news", output_type=TextOutput(publish))


class TestPydanticAI(BackendConformance):
    harness = PydanticAIHarness()
