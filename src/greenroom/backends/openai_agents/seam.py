"""The seams where the framework calls its tools and models; each asks who answers for the running code.

Outside of rehearsals, they behave as usual.
"""

# The framework is only partly typed, and the seams use its private names.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from functools import cache, wraps
from typing import Any, cast

from agents.agent import AgentBase
from agents.run_config import RunConfig
from agents.run_internal import run_loop, tool_execution
from agents.tool import _FailureHandlingFunctionToolInvoker
from agents.tracing.provider import DefaultTraceProvider

from agents import FunctionTool
from agents import tool as tool_module
from greenroom.backends.openai_agents.facts import model_name, unheld_part
from greenroom.backends.openai_agents.gates import (
    GatedModel,
    gated_tool,
    is_delegation,
    is_passed,
    origin_of,
)
from greenroom.backends.openai_agents.run import RUN, model_caller, tool_caller
from greenroom.backends.seams import Call, wrap
from greenroom.errors import ToolRefused
from greenroom.world.call_context import model_host

_INVOKE = "_invoke_function_tool_with_metadata"
_HELD = "_greenroom_held_invocation"


@cache
def install() -> None:
    """Install the seams, once."""
    wrap(
        [
            (AgentBase, "get_all_tools", _tools_seam),
            (run_loop, "get_model", _model_seam),
            (tool_module, _INVOKE, _call_seam),
            (tool_execution, _INVOKE, _call_seam),
            (_FailureHandlingFunctionToolInvoker, "__call__", _invoker_seam),
            (DefaultTraceProvider, "create_trace", _trace_seam),
        ]
    )
    # An attribute of instances; the class has nothing of that name to wrap.
    FunctionTool.on_invoke_tool = cast("Any", _HeldInvocation())


def _tools_seam(real: Call) -> Call:
    """Refuses tools that the tool gate cannot intercept, before they are listed."""

    async def get_all_tools(self: Any, run_context: Any) -> list[Any]:
        run, caller = RUN.get(), model_caller()
        if caller is not None:
            live_servers = () if run is None else run.live_servers
            if why := unheld_part(self, live_servers):
                raise caller.refuse(ToolRefused(why))
        return await real(self, run_context)

    return get_all_tools


def _model_seam(real: Call) -> Call:
    def get_model(agent: Any, run_config: RunConfig) -> Any:
        caller = model_caller()
        if caller is None:
            return real(agent, run_config)
        name = model_name(run_config.model if run_config.model is not None else agent.model)
        return GatedModel(caller, agent.name, name, lambda: real(agent, run_config))

    return get_model


def _call_seam(real: Call) -> Call:
    """The innermost call of a function tool, wherever it was listed and whatever its class."""

    async def invoke(*, function_tool: FunctionTool, context: Any, arguments: str) -> Any:
        if not is_passed(context):
            caller = tool_caller(origin_of(function_tool), function_tool.name)
            if caller is not None:
                function_tool = gated_tool(caller, function_tool)
        return await real(function_tool=function_tool, context=context, arguments=arguments)

    return invoke


def _invoker_seam(real: Call) -> Call:
    """For a tool that the author's code invokes directly, outside the framework's own loop."""

    async def invoke(self: Any, ctx: Any, input: str) -> Any:
        return await _invoked(self._function_tool, lambda: real(self, ctx, input), ctx, input)

    return invoke


async def _invoked(tool: FunctionTool | None, run: Callable[[], Any], ctx: Any, input: str) -> Any:
    """The result of a tool that code invokes directly."""
    # For an agent that is used as a tool, its calls are asked about one by one.
    if tool is None or is_passed(ctx) or is_delegation(tool):
        return await run()
    caller = tool_caller(origin_of(tool), tool.name)
    if caller is None:
        return await run()
    return await gated_tool(caller, tool).on_invoke_tool(ctx, input)


class _HeldInvocation:
    """`on_invoke_tool` of tools that the author constructed: their function, but behind the tool gate."""

    def __get__(self, tool: FunctionTool | None, _: object = None) -> Any:
        if tool is None:
            return self
        real: Any = vars(tool).get("on_invoke_tool")
        if real is None or isinstance(real, _FailureHandlingFunctionToolInvoker):
            return real  # that has its own seam
        # The framework checks whether it is still the same object, and copies take it along.
        of, known, invoke = vars(tool).get(_HELD, (None, None, None))
        if of == id(tool) and known is real:
            return invoke

        @wraps(real)
        async def invoke(ctx: Any, input: str) -> Any:
            return await _invoked(tool, lambda: real(ctx, input), ctx, input)

        vars(tool)[_HELD] = (id(tool), real, invoke)
        return invoke

    def __set__(self, tool: FunctionTool, value: Any) -> None:
        vars(tool)["on_invoke_tool"] = value


def _trace_seam(real: Call) -> Call:
    """Stops traces, which the framework would send to their collector from its own thread."""

    def create_trace(self: Any, *args: Any, **given: Any) -> Any:
        if RUN.get() is not None or model_host() is not None:
            given["disabled"] = True
            args = args[:4]
        return real(self, *args, **given)

    return create_trace
