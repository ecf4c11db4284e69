"""The innermost wrapping: where the framework would ask a model or run a tool, the World is asked."""

import copy
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from greenroom.backends.adk.state import name_of
from greenroom.backends.adk.translation import (
    reply_of,
    request_of,
    response_of,
    server_side_tools,
    with_call_ids,
)
from greenroom.backends.foreign import Invocation, Kept, call_tool, jsonable
from greenroom.errors import ToolRefused
from greenroom.ledger.events import NodeEnded, NodeStarted, ToolReturned
from greenroom.ledger.plain import plain
from greenroom.models.model import ModelReply, ModelRequest, OnDelta
from greenroom.world.world import Pending, ToolRequest


class Stage:
    """One advance of one invocation: which agents are at work, and where in the ledger."""

    __slots__ = ("_open", "invocation")

    def __init__(self, invocation: Invocation) -> None:
        self.invocation = invocation
        self._open = {
            begun.node: begun.path
            for begun in invocation.trail.started.values()
            if begun.path not in invocation.trail.ended
        }

    def path(self, agent: str) -> str:
        """The path of the agent's present run."""
        return self._open.get(agent, f"{self.invocation.root}/{agent}")

    def enter(self, agent: str, given: str | None) -> None:
        """An agent begins, unless it only goes on after a pause."""
        if agent in self._open:
            return
        world, trail = self.invocation.world, self.invocation.trail
        path, visit = f"{self.invocation.root}/{agent}", 1
        while path in trail.started:
            visit += 1
            path = f"{self.invocation.root}/{agent}#{visit}"
        self._open[agent] = path
        world.record(NodeStarted(path=path, node=agent, input=given))

    def leave(self, agent: str) -> None:
        """An agent has ended."""
        path = self._open.pop(agent, None)
        if path is not None:
            steps = self.invocation.trail.steps.get(path)
            output = getattr(steps[-1], "text", None) if steps else None
            self.invocation.world.record(NodeEnded(path=path, node=agent, output=output))

    def leave_all(self) -> None:
        """The invocation is over, and with it every agent that was still open."""
        for agent in reversed(list(self._open)):
            self.leave(agent)


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
            path=self._stage.path(self._agent),
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


class ToolGate:
    """Stands where a tool's `run_async` stood."""

    __slots__ = ("_agent", "_origin", "_stage", "_tool")

    def __init__(self, stage: Stage, agent: str, tool: BaseTool, origin: Any) -> None:
        self._stage = stage
        self._agent = agent
        self._tool = tool
        self._origin = origin

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """The World's answer, after the framework has checked the arguments where it does so."""
        if type(self._tool).run_async is not FunctionTool.run_async:
            return await self._ask(args, args, tool_context)
        assert isinstance(self._tool, FunctionTool)

        async def gate(**checked: Any) -> Any:
            given = {key: value for key, value in checked.items() if value is not tool_context}
            return await self._ask(given, args, tool_context)

        stand_in = copy.copy(self._tool)
        stand_in.func = gate
        return await stand_in.run_async(args=args, tool_context=tool_context)

    async def _ask(self, told: dict[str, Any], args: dict[str, Any], context: ToolContext) -> Any:
        invocation, request = self._stage.invocation, self._request(told, context)
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

    def _request(self, told: dict[str, Any], context: ToolContext) -> ToolRequest:
        name, path = self._tool.name, self._stage.path(self._agent)
        call_id = context.function_call_id or ""
        return ToolRequest(
            id=call_id,
            tool=name,
            args=plain(jsonable(told), f"arguments of {name!r}"),
            path=path,
            yields=self._tool.is_long_running,
            origin=self._origin,
            n=self._stage.invocation.trail.call_number(name, call_id, path),
        )

    def _hand_over_state(self, request: ToolRequest, context: ToolContext) -> None:
        """State that a mock changed in the ledger is changed in the framework's session too."""
        invocation = self._stage.invocation
        event = invocation.trail.results.get(request.id)
        for change in event.changes if isinstance(event, ToolReturned) else ():
            name = name_of(change.scope, change.path[0])
            if name is not None:
                held = invocation.ledger.fold(invocation.world.voice).get(change.scope, {})
                context.state[name] = held.get(change.path[0])


def _refused_tools(agent: str, found: list[str]) -> ToolRefused:
    return ToolRefused(
        f"agent {agent!r} gives its model {', '.join(found)}, which would run at the model's "
        f"provider, where no gate can hold it. Rehearse with a function tool instead."
    )
