"""Where google-adk calls tools: the host of the case answers, if there is one."""

from collections.abc import Callable
from inspect import signature
from typing import Any, cast

from google.adk.tools.tool_context import ToolContext

from greenroom.backends.adk.facts import is_delegation, is_steering, origin_of
from greenroom.backends.adk.gates import Delegation, RunTool, ToolGate, name_of_tool
from greenroom.backends.adk.routed import PASSED, has_passed, is_seam
from greenroom.backends.adk.run import InnerCaller
from greenroom.backends.adk.versions import request_input
from greenroom.world.presence import tool_host


def tool_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For `run_async` of a tool's class."""

    async def run_async(self: Any, *given: Any, **named: Any) -> Any:
        async def run(tool: Any, _args: Any, _context: Any) -> Any:
            return await real(tool, *given, **named)

        args, context = _arguments(given, named)
        return await answered(self, args, context, run, True)

    return run_async


def function_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For the call of a tool's function: a `run_async` kept from before the seam was there ends here."""
    given_as = signature(real)

    async def invoke(self: Any, *given: Any, **named: Any) -> Any:
        target, args = given_as.bind(self, *given, **named).args[1:3]
        if target is not getattr(self, "func", None) or PASSED.get()[0] is self:
            return await real(self, *given, **named)

        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(self, *given, **named)

        told = {key: value for key, value in args.items() if not isinstance(value, ToolContext)}
        context = next((value for value in args.values() if isinstance(value, ToolContext)), None)
        return await answered(self, told, context, run, False)

    return invoke


def caller_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For the code that calls tools: asks for those whose own method is no seam."""

    async def call_tool(*given: Any, **named: Any) -> Any:
        tool, *rest = given or (named.get("tool"),)
        if is_held(tool):
            return await real(*given, **named)

        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(*given, **named)

        return await answered(tool, *_arguments(tuple(rest), named), run, False)

    return call_tool


def pool_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For calls in a pool, where some versions call the function behind a tool, not the tool."""

    async def call_tool(*given: Any, **named: Any) -> Any:
        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(*given, **named)

        tool, *rest = given or (named.get("tool"),)
        return await answered(tool, *_arguments(tuple(rest), named), run, False)

    return call_tool


def _arguments(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Arguments and context of a call, however they were handed over."""
    args = named.get("args", given[0] if given else None)
    return args or {}, named.get("tool_context", given[1] if len(given) > 1 else None)


def is_held(tool: Any) -> bool:
    """Whether what runs when this tool is called is a seam, or a gate of an agent handed over."""
    kind = cast("type[Any]", type(tool))
    if kind.__getattribute__ is not object.__getattribute__:
        return False
    own = getattr(tool, "__dict__", {}).get("run_async")
    if own is not None:
        return type(own) in (ToolGate, Delegation)
    return is_seam(getattr(kind, "run_async", None))


async def answered(
    tool: Any, args: dict[str, Any], context: Any, run: RunTool, checks: bool
) -> Any:
    """What a call returns: the host's answer where there is one, else what the tool gives."""
    if has_passed(tool, context) or is_steering(tool):
        return await run(tool, args, context)
    origin = origin_of(tool)
    host = tool_host(origin, name_of_tool(tool))
    if host is None:
        return await run(tool, args, context)
    caller = InnerCaller(host, agent_of(context))
    if is_delegation(tool) and getattr(tool, "_defers_response", False):
        return await run(tool, args, context)  # it only tells the framework to run the agent
    # A question of the framework's own comes back to the code that runs the agent.
    if is_delegation(tool) or (tool is request_input and is_held(tool)):
        return await Delegation(caller, tool, run)(args=args, tool_context=context)
    gate = ToolGate(caller, tool, origin, run=run, checks=checks)
    return await gate(args=args, tool_context=context)


def agent_of(context: Any) -> str:
    """The agent whose call this is; "" if the framework does not say."""
    try:
        name = context.agent_name
    except AttributeError:
        return ""
    return name if isinstance(name, str) else ""
