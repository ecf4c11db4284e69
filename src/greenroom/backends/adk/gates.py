"""The gates around the framework's innermost calls: instead of a model or a tool, the World is asked."""

import copy
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from functools import partial
from types import FunctionType
from typing import Any, TypeVar, cast

from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.adk.tools.agent_tool import AgentTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from greenroom.backends.adk.run import PASSED, AdkCaller, run_passed
from greenroom.backends.adk.translation import (
    part_of,
    reply_of,
    request_of,
    response_of,
    result_as_json,
    server_side_tools,
    with_call_ids,
)
from greenroom.backends.adk.versions import signed_like
from greenroom.backends.attached import with_files
from greenroom.backends.callers import listener
from greenroom.backends.foreign import jsonable
from greenroom.backends.seams import real_of
from greenroom.errors import KeyRefused, ToolRefused
from greenroom.ledger.plain import as_object
from greenroom.ledger.redaction import keep_keys
from greenroom.models.model import ModelReply, ModelRequest, send_piece
from greenroom.world.call_context import decided
from greenroom.world.world import Pending, ToolRequest

Tool = TypeVar("Tool", bound=BaseTool)
RunTool = Callable[[Any, dict[str, Any], Any], Awaitable[Any]]
"""Runs a tool, or a stand-in for it, with these arguments in this context."""


class ModelGate:
    """Replaces a model's `generate_content_async`."""

    __slots__ = ("_agent", "_caller", "_model")

    def __init__(self, caller: AdkCaller, agent: str, model: BaseLlm) -> None:
        self._caller = caller
        self._agent = agent
        self._model = model

    async def __call__(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """The World's reply; the real model's own response object if that is what it replied."""
        caller = self._caller
        keep_keys(self._model)
        if found := server_side_tools(llm_request):
            raise caller.refuse(
                ToolRefused(
                    f"agent {self._agent!r} gives its model {', '.join(found)}, which would run at "
                    f"the model's provider, where the tool gate cannot intercept it. Rehearse with a function tool "
                    f"instead."
                )
            )
        request = caller.place_model(request_of(llm_request, self._agent))

        def to_reply(given: list[LlmResponse]) -> ModelReply:
            return reply_of(given[-1], request.model)

        ask = partial(self._ask, llm_request, stream)
        reply, kept = await caller.ask_model(request, ask, to_reply)
        for response in kept.real if kept.matches(reply) else [response_of(reply)]:
            yield response

    async def _ask(
        self, llm_request: LlmRequest, stream: bool, request: ModelRequest
    ) -> list[LlmResponse]:
        """The real model's complete response; its pieces go to the listener, if there is one."""
        if request.seed is not None and llm_request.config.seed is None:
            llm_request.config.seed = request.seed
        heard = listener()
        given: list[LlmResponse] = []
        try:
            async for response in self._model.generate_content_async(
                llm_request, stream or heard is not None
            ):
                if response.partial:
                    await send_piece(heard, reply_of(response, "").text)
                else:
                    given.append(response)
        except ValueError as error:
            if "API key" not in str(error):
                raise
            raise KeyRefused(
                f"the model {request.model!r} of agent {self._agent!r} needs an API key. Set "
                f"GOOGLE_API_KEY, or let another model answer: model=Scripted(...), --model NAME."
            ) from error
        return [*given[:-1], with_call_ids(given[-1], self._caller.new_id, request)]


class NoLine:
    """Replaces a model's `connect`, because a live connection bypasses the turns."""

    __slots__ = ("_agent", "_caller")

    def __init__(self, caller: AdkCaller, agent: str) -> None:
        self._caller = caller
        self._agent = agent

    def __call__(self, llm_request: LlmRequest) -> Any:  # noqa: ARG002
        """Refuse to connect."""
        raise self._caller.refuse(
            ToolRefused(
                f"agent {self._agent!r} tried to open a live connection to its model, which the tool gate "
                f"cannot intercept. Rehearse it in turns, without run_live."
            )
        )


async def run_tool(tool: BaseTool, args: dict[str, Any], context: ToolContext) -> Any:
    """Run a tool as the framework does."""
    return await tool.run_async(args=args, tool_context=context)


class Delegation:
    """Replaces the run of an agent that is used as a tool: records the call, and gates what is inside."""

    __slots__ = ("_caller", "_run", "_tool")

    def __init__(self, caller: AdkCaller, tool: AgentTool, run: RunTool = run_tool) -> None:
        self._caller = caller
        self._tool = tool
        self._run = run

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """What the agent answered, or what a mock answers instead."""
        caller, tool, call_id = self._caller, self._tool, tool_context.function_call_id or ""
        request = ToolRequest(
            id=call_id,
            tool=tool.name,
            args=as_object(jsonable(args)),
            path=caller.agent,
            delegates=True,
        )

        async def run() -> Any:
            return await run_passed(tool, tool_context, lambda: self._run(tool, args, tool_context))

        outcome, kept = await caller.ask_tool(caller.place_tool(request), run)
        assert not isinstance(outcome, Pending), "an agent that is run as a tool never waits"
        if kept.error is not None:
            raise kept.error
        if outcome.error:
            return {"error": outcome.error}
        return kept.real if kept.matches(outcome.value) else outcome.value


class ToolGate:
    """Replaces a tool's `run_async`."""

    __slots__ = ("_caller", "_checks", "_in_graph", "_origin", "_run", "_tool")

    def __init__(
        self,
        caller: AdkCaller,
        tool: Any,
        origin: Any,
        in_graph: bool = False,
        run: RunTool = run_tool,
        checks: bool = True,
    ) -> None:
        self._caller = caller
        self._tool = tool
        self._in_graph = in_graph
        self._origin = origin
        self._run = run
        self._checks = checks and checks_arguments(tool)

    async def __call__(self, *, args: dict[str, Any], tool_context: ToolContext) -> Any:
        """The World's answer, after the framework has checked the arguments, if it checks them."""
        if not self._checks:
            return await self._ask(args, args, tool_context)

        async def gate(**checked: Any) -> Any:
            given = {key: value for key, value in checked.items() if value is not tool_context}
            return await self._ask(given, args, tool_context)

        stand_in = copy.copy(self._tool)
        stand_in.func = signed_like(gate, self._tool.func)
        with PASSED.during((stand_in, tool_context)):
            return await self._run(stand_in, args, tool_context)

    async def _ask(self, shown: dict[str, Any], args: dict[str, Any], context: ToolContext) -> Any:
        """The World's answer to a call with the `shown` arguments; the tool itself runs with `args`."""
        caller, tool = self._caller, self._tool
        name = name_of_tool(tool)
        wanted = "" if self._in_graph else getattr(context, "function_call_id", None) or ""
        request = caller.place_tool(
            ToolRequest(
                id=wanted,
                tool=name,
                args=as_object(jsonable(shown)),
                path=caller.agent,
                yields=bool(getattr(tool, "is_long_running", False)),
                origin=self._origin,
            )
        )
        if self._in_graph:
            # The framework makes up a new one each time.
            context.function_call_id = request.id

        async def run() -> Any:
            with decided(_name_at_server(tool) or name):
                return await run_passed(tool, context, lambda: self._run(tool, args, context))

        caller.watch_state(context)
        outcome, kept = await caller.ask_tool(request, run, result_as_json)
        if isinstance(outcome, Pending):
            return None
        if outcome.error:
            if kept.error is not None:
                raise kept.error
            caller.hand_over_state(request.id, context)
            return {"error": outcome.error}
        caller.hand_over_state(request.id, context)
        return kept.real if kept.matches(outcome.value) else with_files(outcome.value, part_of)


_CHECKING = {
    name: real_of(method)
    for name, method in vars(FunctionTool).items()
    if isinstance(method, FunctionType) and name not in ("__init__", "_get_declaration")
}
"""The framework's own functions between a call and the author's function."""


def checks_arguments(tool: Any) -> bool:
    """Whether only the framework's own code runs before the author's function."""
    if type(tool) is not FunctionTool and not isinstance(tool, FunctionTool):
        return False
    if not vars(tool).keys().isdisjoint(_CHECKING):
        return False
    kind: Any = type(tool)
    return all(real_of(getattr(kind, name)) is method for name, method in _CHECKING.items())


def _name_at_server(tool: object) -> str:
    """The name by which an MCP server knows a tool, without a toolset's prefix; "" for any other tool."""
    module: Any = sys.modules.get("google.adk.tools.mcp_tool.mcp_tool")
    if module is None or not isinstance(tool, module.McpTool):
        return ""
    return cast(Any, tool)._mcp_tool.name


def name_of_tool(tool: Any) -> str:
    """The name its model knows it by; an object that is not a tool of the framework is named after its type."""
    name = getattr(tool, "name", None)
    return name if isinstance(name, str) and name else type(tool).__name__
