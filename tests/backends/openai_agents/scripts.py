"""OpenAI Agents models that answer from a list, and agents built as the conformance suite wants."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from agents.testing import ModelStep, ScriptedModel
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    Model,
    ModelResponse,
    RunConfig,
    Runner,
    Usage,
    function_tool,
)
from greenroom.backends.openai_agents import OpenAIAgentsBackend
from greenroom.ledger.messages import ToolCall
from greenroom.testing import (
    USAGE,
    Blueprint,
    Bypass,
    HandOver,
    Hang,
    Structured,
    ToolPlan,
    pieces,
)


class Script(Model):
    """Answers by how many replies the history already holds, so it serves many runs at once."""

    def __init__(self, *lines: Any, streams: bool = False) -> None:
        self.lines = lines
        self.streams = streams
        self.asked: list[Any] = []
        self.model = "script"

    async def get_response(self, system_instructions: Any, input: Any, *_: Any, **__: Any) -> Any:
        if self.streams:
            raise AssertionError("this model only streams")
        return await self._reply(input)

    async def stream_response(
        self, system_instructions: Any, input: Any, *args: Any, **given: Any
    ) -> AsyncIterator[Any]:
        response = await self._reply(input)
        step = ModelStep(output=response.output, usage=response.usage)
        async for event in ScriptedModel([step]).stream_response(
            system_instructions, input, *args, **given
        ):
            if event.type != "response.output_text.delta":
                yield event
                continue
            for piece in pieces(event.delta):
                yield event.model_copy(update={"delta": piece})

    async def _reply(self, input: Any) -> ModelResponse:
        self.asked.append(input)
        line = self.lines[replies_in(input)]
        if isinstance(line, Hang):
            await asyncio.Event().wait()
        if isinstance(line, Exception):
            raise line
        usage = Usage(1, USAGE.input, output_tokens=USAGE.output, total_tokens=USAGE.total)
        return ModelResponse(output=output_of(line), usage=usage, response_id=None)


def replies_in(items: Any) -> int:
    """How often the model has spoken: calls made at once are one reply, a handoff begins again."""
    count, inside = 0, False
    for item in [] if isinstance(items, str) else items:
        mine = str(item.get("type")).endswith("_call") or item.get("role") == "assistant"
        count += mine and not inside
        inside = mine
        if str(item.get("name")).startswith("transfer_to_"):
            count = 0
    return count


def output_of(line: Any) -> list[Any]:
    match line:
        case str():
            text = ResponseOutputText(type="output_text", text=line, annotations=[])
            return [
                ResponseOutputMessage(
                    id="msg_1", type="message", role="assistant", status="completed", content=[text]
                )
            ]
        case HandOver(to):
            return output_of(ToolCall(f"transfer_to_{to}", {}, f"call-{to}"))
        case Structured(value):
            # The framework wraps what is not an object of its own in one.
            return output_of(json.dumps({"response": dict(value)}))
        case ToolCall():
            return output_of([line])
        case _:
            return [
                ResponseFunctionToolCall(
                    type="function_call",
                    name=call.tool,
                    call_id=call.id,
                    arguments=json.dumps(dict(call.args)),
                )
                for call in line
            ]


class Write(AgentHooks[Any]):
    """Puts the agent's answer into the run's context."""

    def __init__(self, key: str) -> None:
        self.key = key

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        context.context[self.key] = output


def tell(_: Any, error: Exception) -> str:
    return str(error)


def swallow(_: Any, error: Exception) -> str:
    return "all fine"


def tool_of(plan: ToolPlan, swallows: bool = False) -> FunctionTool:
    return function_tool(
        plan.fn,
        failure_error_function=swallow if swallows else tell,
        strict_mode=False,
        needs_approval=plan.kind == "approval",
    )


def agent_of(plan: Blueprint) -> Agent[Any]:
    return Agent(
        plan.name,
        model=Script(*plan.lines, streams=plan.streams),
        instructions=plan.instructions,
        tools=[tool_of(tool, plan.swallows) for tool in plan.tools],
        handoffs=[agent_of(helper) for helper in plan.helpers],
        output_type=plan.output,
        hooks=Write(plan.writes) if plan.writes else None,
    )


class OpenAIAgentsHarness:
    backend: Any = OpenAIAgentsBackend
    seam = (
        "agents.tool:_invoke_function_tool_with_metadata",
        "agents.run_internal.tool_execution:_invoke_function_tool_with_metadata",
        "agents.run_internal.run_loop:get_model",
        "agents.agent:AgentBase.get_all_tools",
    )

    def build(self, plan: Blueprint) -> Any:
        agent = agent_of(plan)
        if plan.writes:
            return OpenAIAgentsBackend(agent, context=dict)
        return OpenAIAgentsBackend(agent, streamed=True) if plan.streams else agent

    async def run_bare(self, agent: Any, says: str) -> None:
        quiet = RunConfig(tracing_disabled=True)
        await Runner.run(agent, says, run_config=quiet)

    def bypasses(self) -> Mapping[str, Bypass]:
        from backends.openai_agents.bypasses import BYPASSES

        return BYPASSES
