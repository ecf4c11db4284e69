"""The seams where the framework calls its tools and models; each asks who answers for the running code.

Outside of rehearsals, they behave as usual.
"""

# The framework is only partly typed, and the seams use its private names.
# pyright: reportPrivateUsage=false

from collections.abc import Callable
from dataclasses import Field
from functools import cache, wraps
from typing import Any

from agents.agent import AgentBase
from agents.run_config import RunConfig
from agents.run_internal import run_loop, tool_actions, tool_execution
from agents.tool import CustomTool, _FailureHandlingFunctionToolInvoker
from agents.tracing.provider import DefaultTraceProvider

from agents import FunctionTool
from agents import tool as tool_module
from greenroom.backends.openai_agents.facts import model_name, unheld_call, unheld_part, unheld_tool
from greenroom.backends.openai_agents.gates import (
    GatedModel,
    ToolGate,
    gated_tool,
    is_passed,
    origin_of,
)
from greenroom.backends.openai_agents.run import RUN, model_caller, tool_caller
from greenroom.backends.seams import Call, follow_classes, wrap
from greenroom.errors import ToolRefused
from greenroom.world.call_context import model_host

_INVOKE = "_invoke_function_tool_with_metadata"
_NAME = "on_invoke_tool"
_HELD = "_greenroom_held_invocation"
_INVOKED = (FunctionTool, CustomTool)
"""The classes of tools whose `on_invoke_tool` is the author's function."""


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
            *((kind, "execute", _action_seam) for kind in _actions()),
        ]
    )
    for base in _INVOKED:
        follow_classes(base, _hold_invocation)


def _actions() -> list[type]:
    """What runs the tools that are no function tools: shells, patches, computers, custom ones."""
    named = vars(tool_actions).items()
    return [kind for name, kind in named if name.endswith("Action") and "execute" in vars(kind)]


def _action_seam(real: Call) -> Call:
    """Refuses them where they act: a stored approval leads here without their being listed."""

    async def execute(action: type, **given: Any) -> Any:
        asked: dict[str, Any] = vars(given.get("call", given.get("action")))
        tool = next((it for key, it in asked.items() if key != "tool_call"), None)
        name = getattr(tool, "name", action.__name__)
        caller = tool_caller(tool, name)
        if caller is not None:
            raise caller.refuse(ToolRefused(unheld_tool(given["agent"], tool)))
        return await real(action, **given)

    return execute


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
        if not is_passed(context, function_tool.name):
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


async def _invoked(
    tool: FunctionTool | CustomTool | None, run: Callable[[], Any], ctx: Any, input: str
) -> Any:
    """The result of a tool that code invokes directly."""
    if tool is None or is_passed(ctx, tool.name):
        return await run()
    origin = origin_of(tool) if isinstance(tool, FunctionTool) else tool
    caller = tool_caller(origin, tool.name)
    if caller is None:
        return await run()
    if isinstance(tool, CustomTool):
        raise caller.refuse(ToolRefused(unheld_call(tool)))
    return await gated_tool(caller, tool).on_invoke_tool(ctx, input)


def _hold_invocation(kind: type) -> None:
    """Hold what a class has as `on_invoke_tool`: itself, or from a mixin, which is never visited."""
    owner = next((one for one in kind.__mro__ if _NAME in vars(one)), kind)
    own: Any = vars(owner).get(_NAME)
    is_elsewhere = owner is not kind and issubclass(owner, _INVOKED)
    if not (is_elsewhere or isinstance(own, _HeldInvocation | Field)):
        setattr(kind, _NAME, _HeldInvocation(own))


class _HeldInvocation:
    """`on_invoke_tool` of tools that the author constructed: their function, but behind the tool gate.

    A class of the author's may have its `own`: a method, a property, the default of a field.
    """

    def __init__(self, own: Any) -> None:
        self._own = own

    def __get__(self, tool: FunctionTool | CustomTool | None, kind: Any = None) -> Any:
        if tool is None:
            return self if self._own is None else _bound(self._own, None, kind)
        real = self._real(tool)
        if real is None or isinstance(real, _FailureHandlingFunctionToolInvoker):
            return real  # that has its own seam
        # The framework checks whether it is still the same object, and copies take it along.
        of, known, invoke = vars(tool).get(_HELD, (None, None, None))
        if of == id(tool) and known == real:
            return invoke

        @wraps(real)
        async def invoke(ctx: Any, input: str) -> Any:
            return await _invoked(tool, lambda: real(ctx, input), ctx, input)

        vars(tool)[_HELD] = (id(tool), real, invoke)
        return invoke

    def __set__(self, tool: FunctionTool | CustomTool, value: Any) -> None:
        if hasattr(self._own, "__set__"):
            self._own.__set__(tool, value)
        else:
            vars(tool)[_NAME] = value

    def _real(self, tool: FunctionTool | CustomTool) -> Any:
        """What the tool would have if nothing were held."""
        put: Any = vars(tool).get(_NAME)
        is_put = put is not None and not hasattr(self._own, "__set__")
        if is_put or self._own is None or isinstance(put, ToolGate):
            return put
        return _bound(self._own, tool, type(tool))


def _bound(held: Any, tool: Any, kind: type) -> Any:
    """What a class holds, as its object has it."""
    return held.__get__(tool, kind) if hasattr(held, "__get__") else held


def _trace_seam(real: Call) -> Call:
    """Stops traces, which the framework would send to their collector from its own thread."""

    def create_trace(self: Any, *args: Any, **given: Any) -> Any:
        if RUN.get() is not None or model_host() is not None:
            given["disabled"] = True
            args = args[:4]
        return real(self, *args, **given)

    return create_trace
