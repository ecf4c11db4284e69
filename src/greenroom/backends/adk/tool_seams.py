"""The seams where google-adk calls tools and runs graph nodes: the case's host answers, if there is one."""

import copy
import sys
from functools import partial
from inspect import signature
from typing import Any, cast

from google.adk.agents import BaseAgent
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext

from greenroom.backends.adk.facts import is_delegation, is_steering, origin_of
from greenroom.backends.adk.gates import Delegation, RunTool, ToolGate, name_of_tool, run_tool
from greenroom.backends.adk.nodes import (
    NodeNote,
    function_of,
    gated_function,
    gated_node,
    is_gated_function,
)
from greenroom.backends.adk.run import InnerCaller, has_passed, passed_here
from greenroom.backends.adk.versions import (
    START,
    BaseNode,
    FunctionNode,
    NodeTool,
    ToolNode,
    request_input,
)
from greenroom.backends.foreign import Origin
from greenroom.backends.seams import Call, is_seam, real_of
from greenroom.world.call_context import tool_host


def tool_seam(real: Call) -> Call:
    """For `run_async` of a tool's class."""

    async def run_async(self: Any, *given: Any, **named: Any) -> Any:
        async def run(tool: Any, _args: Any, _context: Any) -> Any:
            return await real(tool, *given, **named)

        args, context = _arguments(given, named)
        return await answer(self, args, context, run, True)

    return run_async


def function_seam(real: Call) -> Call:
    """For the call of a tool's function: a `run_async` that was kept from before the seam ends up here."""
    given_as = signature(real)

    async def invoke(self: Any, *given: Any, **named: Any) -> Any:
        target, args = given_as.bind(self, *given, **named).args[1:3]
        if target is not getattr(self, "func", None) or passed_here() is self:
            return await real(self, *given, **named)

        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(self, *given, **named)

        shown = {key: value for key, value in args.items() if not isinstance(value, ToolContext)}
        context = next((value for value in args.values() if isinstance(value, ToolContext)), None)
        return await answer(self, shown, context, run, False)

    return invoke


def caller_seam(real: Call, *, in_pool: bool = False) -> Call:
    """For the code that calls tools: asks for those whose own method is not a seam.

    In a pool it asks for all: there some versions call the function behind a tool, not the tool.
    """

    async def call_tool(*given: Any, **named: Any) -> Any:
        async def run(_tool: Any, _args: Any, _context: Any) -> Any:
            return await real(*given, **named)

        tool, *rest = given or (named.get("tool"),)
        if not in_pool and is_held(tool):
            return await real(*given, **named)
        return await answer(tool, *_arguments(tuple(rest), named), run, False)

    return call_tool


def _arguments(given: tuple[Any, ...], named: dict[str, Any]) -> tuple[dict[str, Any], Any]:
    """Arguments and context of a call, however they were passed."""
    args = named.get("args", given[0] if given else None)
    return args or {}, named.get("tool_context", given[1] if len(given) > 1 else None)


def is_held(tool: Any) -> bool:
    """Whether calling this tool runs a seam, or a gate of the agent under test."""
    kind = cast("type[Any]", type(tool))
    if kind.__getattribute__ is not object.__getattribute__:
        return False
    own = getattr(tool, "__dict__", {}).get("run_async")
    if own is not None:
        return type(own) in (ToolGate, Delegation)
    return is_seam(getattr(kind, "run_async", None))


async def answer(tool: Any, args: dict[str, Any], context: Any, run: RunTool, checks: bool) -> Any:
    """What a call returns: the host's answer if there is a host, else the tool's own result."""
    if has_passed(tool, context) or is_steering(tool):
        return await run(tool, args, context)
    origin = origin_of(tool)
    host = tool_host(origin, name_of_tool(tool))
    if host is None:
        return await run(tool, args, context)
    caller = InnerCaller(host, agent_of(context))
    if is_delegation(tool) and getattr(tool, "_defers_response", False):
        return await run(tool, args, context)  # such a tool only makes the framework run an agent
    # The framework's own questions go back to the code that runs the agent.
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


def node_seam(real: Call) -> Call:
    """For graph nodes: functions, nodes of the author's own classes, tools without a seam."""

    def run(self: Any, *, ctx: Any, node_input: Any) -> Any:
        return real(_held_node(self), ctx=ctx, node_input=node_input)

    return run


def own_run_seam(real: Call) -> Call:
    """For graph nodes of a class that replaces the framework's own `run`, which leads to its parts."""

    def run(self: Any, *given: Any, **named: Any) -> Any:
        host = None
        if not (isinstance(self, BaseAgent) or _is_part_of_passed(self)):
            host = tool_host(self, self.name)
        if host is None:
            return real(self, *given, **named)
        twin = gated_node(self, InnerCaller(host, self.name), partial(real, self))
        return real_of(BaseNode.run)(twin, *given, **named)

    return run


def _held_node(node: BaseNode) -> BaseNode:
    """The node, or a copy of it that asks the host before the author's code runs."""
    own: Any = vars(node).get("_run_impl")
    if type(own) is NodeNote or node is START or isinstance(node, BaseAgent):
        return node
    # A class is the framework's own if its module really contains it under its name.
    kind = type(node)
    found = getattr(sys.modules.get(kind.__module__), kind.__qualname__, None)
    is_plain = own is None and kind.__module__.startswith("google.adk.") and found is kind
    if is_plain and isinstance(node, ToolNode):
        return node if is_held(node.tool) else _with_held_tool(node)
    if is_plain and not isinstance(node, FunctionNode):
        return node
    if is_gated_function(node) or _is_part_of_passed(node):
        return node
    function = function_of(node) if is_plain and isinstance(node, FunctionNode) else None
    origin = node if function is None else Origin(function, node)
    host = tool_host(origin, node.name)
    if host is None:
        return node
    caller = InnerCaller(host, node.name)
    if function is None:
        return gated_node(node, caller)
    assert isinstance(node, FunctionNode)
    return gated_function(node, caller)


def _with_held_tool(node: ToolNode) -> ToolNode:
    """A copy of a node whose tool has its own way to run, and now asks first."""
    tool, twin = node.tool, copy.copy(node.tool)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return await answer(tool, args, tool_context, run_tool, False)

    object.__setattr__(twin, "run_async", run_async)
    return node.model_copy(update={"tool": twin})


def _is_part_of_passed(node: BaseNode) -> bool:
    """Whether a function node only runs the function of a tool that was already asked about."""
    passed = passed_here()
    if not isinstance(node, FunctionNode):
        return passed is node
    own: list[Any] = [passed]
    if isinstance(passed, NodeTool):
        own.append(passed.node)
    if isinstance(passed, FunctionTool):
        own.append((getattr(passed, "_generator_node_cache", None) or (None, None))[1])
    mine = function_of(node)
    return any(isinstance(one, FunctionNode) and function_of(one) is mine for one in own)
