"""The innermost wrapping: where the framework would ask a model or run a tool, the World is asked."""

import copy
from collections.abc import AsyncGenerator
from typing import Any, TypeVar

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from greenroom.backends.adk.nodes import node_call_id
from greenroom.backends.adk.stage import Stage
from greenroom.backends.adk.state import name_of
from greenroom.backends.adk.translation import (
    reply_of,
    request_of,
    response_of,
    server_side_tools,
    with_call_ids,
)
from greenroom.backends.adk.versions import signed_like
from greenroom.backends.foreign import Kept, call_tool, jsonable
from greenroom.errors import ToolRefused
from greenroom.ledger.events import ToolReturned
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelReply, ModelRequest, OnDelta
from greenroom.world.recording import answer_tool
from greenroom.world.world import Context, Pending, ToolRequest

Tool = TypeVar("Tool", bound=BaseTool)


class ModelGate:
    """Stands where a model's `generate_content_async` stood."""

    __slots__ = ("_agent", "_model", "_stage")

    def __init__(self, stage: Stage, agent: str, model: BaseLlm) -> None:
        self._stage = stage
        self._agent = agent
        self._model = model

    async def __call__(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The World's reply; the real model's own response wherever that is what was replied."""
        invocation, kept = self._stage.invocation, Kept()
        if found := server_side_tools(llm_request):
            raise invocation.keep(_refused_tools(self._agent, found))
        request = request_of(
            llm_request,
            agent=self._agent,
            path=self._stage.place,
            n=invocation.replies(self._agent),
        )

        async def body(request: ModelRequest, _on_delta: OnDelta | None) -> ModelReply:
            asked = self._model.generate_content_async(llm_request, stream)
            given = [response async for response in asked if not response.partial]
            final = with_call_ids(given[-1], invocation.world, request)
            return kept.tell([*given[:-1], final], reply_of(final, request.model))

        reply = await invocation.routed(invocation.world.call_model(request, body))
        for response in kept.real if kept.matches(reply) else [response_of(reply)]:
            yield response


class NoLine:
    """Stands where a model's `connect` stood: what is said live goes past every turn."""

    __slots__ = ("_agent", "_stage")

    def __init__(self, stage: Stage, agent: str) -> None:
        self._stage = stage
        self._agent = agent

    def __call__(self, llm_request: LlmRequest) -> Any:  # noqa: ARG002
        """Nobody is connected."""
        raise self._stage.invocation.keep(
            ToolRefused(
                f"agent {self._agent!r} was to talk to its model live, where no gate can hold what "
                f"is said. Rehearse it in turns, without run_live."
            )
        )


class Delegation:
    """Stands where an agent used as a tool is run: the call is written down, what is in it gated."""

    __slots__ = ("_stage", "_tool")

    def __init__(self, stage: Stage, tool: AgentTool) -> None:
        self._stage = stage
        self._tool = tool

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """What the agent answered."""
        invocation, kept = self._stage.invocation, Kept()
        request = tool_request(self._stage, self._tool, args, tool_context)

        async def body(_context: Context) -> Json:
            try:
                value = await self._tool.run_async(args=args, tool_context=tool_context)
            except Exception as error:
                kept.error = error
                raise
            return kept.tell(value, jsonable(value))

        await invocation.routed(answer_tool(invocation.world, request, body, "live"))
        if kept.error is not None:
            raise kept.error
        return kept.real


class ToolGate:
    """Stands where a tool's `run_async` stood."""

    __slots__ = ("_in_graph", "_origin", "_stage", "_tool")

    def __init__(self, stage: Stage, tool: BaseTool, origin: Any, in_graph: bool = False) -> None:
        self._stage = stage
        self._tool = tool
        self._in_graph = in_graph
        self._origin = origin

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """The World's answer, after the framework has checked the arguments where it does so."""
        if type(self._tool).run_async is not FunctionTool.run_async:
            return await self._ask(args, args, tool_context)
        assert isinstance(self._tool, FunctionTool)

        async def gate(**checked: Any) -> Any:
            given = {key: value for key, value in checked.items() if value is not tool_context}
            return await self._ask(given, args, tool_context)

        stand_in = twin_of(self._tool)
        stand_in.func = signed_like(gate, self._tool.func)
        return await stand_in.run_async(args=args, tool_context=tool_context)

    async def _ask(self, told: dict[str, Any], args: dict[str, Any], context: ToolContext) -> Any:
        invocation = self._stage.invocation
        if self._in_graph:
            # The framework makes one up anew each time.
            context.function_call_id = node_call_id(self._stage, self._tool.name)
        request = tool_request(self._stage, self._tool, told, context, self._origin)
        outcome, kept = await call_tool(
            invocation,
            request,
            lambda: self._tool.run_async(args=args, tool_context=context),
        )
        if isinstance(outcome, Pending):
            return None
        if outcome.error:
            if kept.error is not None:
                raise kept.error
            return {"error": outcome.error}
        self._hand_over_state(request, context)
        return kept.real if kept.matches(outcome.value) else outcome.value

    def _hand_over_state(self, request: ToolRequest, context: ToolContext) -> None:
        """State that a mock changed in the ledger is changed in the framework's session too."""
        invocation = self._stage.invocation
        event = invocation.trail.results.get(request.id)
        for change in event.changes if isinstance(event, ToolReturned) else ():
            name = name_of(change.scope, change.path[0])
            if name is not None:
                held = invocation.ledger.fold(invocation.world.voice).get(change.scope, {})
                context.state[name] = held.get(change.path[0])


def twin_of(tool: Tool) -> Tool:
    """A shallow copy; of a function's tool without a detour over what is said for pickling."""
    if type(tool) is not FunctionTool:
        return copy.copy(tool)
    twin = object.__new__(type(tool))
    vars(twin).update(vars(tool))
    return twin


def tool_request(
    stage: Stage, tool: BaseTool, told: dict[str, Any], context: ToolContext, origin: Any = None
) -> ToolRequest:
    """A call of the framework to a tool, as ours."""
    name, path, call_id = tool.name, stage.place, context.function_call_id or ""
    return ToolRequest(
        id=call_id,
        tool=name,
        args=plain(jsonable(told), f"arguments of {name!r}"),
        path=path,
        yields=tool.is_long_running,
        origin=origin,
        n=stage.invocation.trail.call_number(name, call_id, path),
    )


def _refused_tools(agent: str, found: list[str]) -> ToolRefused:
    return ToolRefused(
        f"agent {agent!r} gives its model {', '.join(found)}, which would run at the model's "
        f"provider, where no gate can hold it. Rehearse with a function tool instead."
    )
