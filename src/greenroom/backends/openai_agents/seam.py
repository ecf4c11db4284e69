"""Where the framework calls its tools and models; each place asks who answers for the running work.

Outside of rehearsals, everything is as it was.
"""

# The framework is half typed, and its seams are its own affair.
# pyright: reportPrivateUsage=false

import functools
from collections.abc import Callable
from typing import Any

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
from greenroom.backends.openai_agents.run import STAGE, model_caller, tool_caller
from greenroom.backends.seams import original
from greenroom.errors import ToolRefused
from greenroom.world.presence import model_host

Call = Callable[..., Any]

_INVOKE = "_invoke_function_tool_with_metadata"
_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once."""
    if _installed:
        return
    # All are looked up before the first goes in: a version that lacks one is left as it is.
    found = [
        (owner, name, seam(original(owner, name)))
        for owner, name, seam in (
            (AgentBase, "get_all_tools", _tools_seam),
            (run_loop, "get_model", _model_seam),
            (tool_module, _INVOKE, _call_seam),
            (tool_execution, _INVOKE, _call_seam),
            (_FailureHandlingFunctionToolInvoker, "__call__", _invoker_seam),
            (DefaultTraceProvider, "create_trace", _trace_seam),
        )
    ]
    for owner, name, seam in found:
        setattr(owner, name, seam)
    _installed.append(True)


def _tools_seam(real: Call) -> Call:
    """What no gate can hold is refused before it is listed."""

    @functools.wraps(real)
    async def get_all_tools(self: Any, run_context: Any) -> list[Any]:
        stage, caller = STAGE.get(), model_caller()
        if caller is None:
            return await real(self, run_context)
        if why := unheld_part(self, () if stage is None else stage.live_servers):
            raise caller.refuse(ToolRefused(why))
        if stage is None:
            return await real(self, run_context)
        found = stage.settled.get(self)
        if found is None:
            found = await real(self, run_context)
            stage.settled.put(self, found)
        return found

    return get_all_tools


def _model_seam(real: Call) -> Call:
    @functools.wraps(real)
    def get_model(agent: Any, run_config: RunConfig) -> Any:
        caller = model_caller()
        if caller is None:
            return real(agent, run_config)
        name = model_name(run_config.model if run_config.model is not None else agent.model)
        return GatedModel(caller, agent.name, name, lambda: real(agent, run_config))

    return get_model


def _call_seam(real: Call) -> Call:
    """The innermost call of a function tool, wherever it was listed and whatever its class."""

    @functools.wraps(real)
    async def invoke(*, function_tool: FunctionTool, context: Any, arguments: str) -> Any:
        if not is_passed(context):
            caller = tool_caller(origin_of(function_tool), function_tool.name)
            if caller is not None:
                function_tool = gated_tool(caller, function_tool)
        return await real(function_tool=function_tool, context=context, arguments=arguments)

    return invoke


def _invoker_seam(real: Call) -> Call:
    """A tool that the author's code invokes by itself, past the framework's own loop."""

    @functools.wraps(real)
    async def invoke(self: Any, ctx: Any, input: str) -> Any:
        tool = self._function_tool
        if tool is None or is_passed(ctx) or _is_leading(self):
            return await real(self, ctx, input)
        caller = tool_caller(origin_of(tool), tool.name)
        if caller is None:
            return await real(self, ctx, input)
        return await gated_tool(caller, tool).on_invoke_tool(ctx, input)

    return invoke


def _is_leading(invoker: Any) -> bool:
    """Whether it runs an agent that is used as a tool, whose calls are asked for one by one."""
    return is_delegation(invoker._function_tool)


def _trace_seam(real: Call) -> Call:
    """Traces would be sent to their collector by a thread of the framework's own."""

    @functools.wraps(real)
    def create_trace(self: Any, *args: Any, **given: Any) -> Any:
        if STAGE.get() is not None or model_host() is not None:
            given["disabled"] = True
            args = args[:4]
        return real(self, *args, **given)

    return create_trace
