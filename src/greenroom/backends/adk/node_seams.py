"""Where google-adk runs the nodes of a graph: the author's work is put to the host of the case."""

import copy
import sys
from collections.abc import Callable
from typing import Any

from google.adk.agents import BaseAgent
from google.adk.tools.function_tool import FunctionTool

from greenroom.backends.adk.gates import run_tool
from greenroom.backends.adk.nodes import (
    Noted,
    function_of,
    gated_function,
    gated_node,
    is_gated_function,
)
from greenroom.backends.adk.routed import PASSED
from greenroom.backends.adk.run import InnerCaller
from greenroom.backends.adk.tool_seams import answered, is_held
from greenroom.backends.adk.versions import START, BaseNode, FunctionNode, NodeTool, ToolNode
from greenroom.backends.foreign import Origin
from greenroom.world.presence import tool_host


def node_seam(real: Callable[..., Any]) -> Callable[..., Any]:
    """For nodes of graphs: functions, nodes of the author's own kind, tools that no seam holds."""

    def run(self: Any, *, ctx: Any, node_input: Any) -> Any:
        return real(_held_node(self), ctx=ctx, node_input=node_input)

    return run


def _held_node(node: BaseNode) -> BaseNode:
    """The node, or a copy of it in which the author's work is put to the host."""
    own: Any = vars(node).get("_run_impl")
    if type(own) is Noted or node is START or isinstance(node, BaseAgent):
        return node
    is_plain = own is None and _is_the_frameworks(type(node))
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


def _is_the_frameworks(kind: type) -> bool:
    """Whether a class is the framework's own, found where it says that it was made."""
    module = sys.modules.get(kind.__module__)
    found = getattr(module, kind.__qualname__, None)
    return kind.__module__.startswith("google.adk.") and found is kind


def _with_held_tool(node: ToolNode) -> ToolNode:
    """A copy of a node whose tool, run by something of its own, asks first."""
    tool, twin = node.tool, copy.copy(node.tool)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return await answered(tool, args, tool_context, run_tool, False)

    object.__setattr__(twin, "run_async", run_async)
    return node.model_copy(update={"tool": twin})


def _is_part_of_passed(node: BaseNode) -> bool:
    """Whether a function node is how a tool that was asked about runs its function."""
    passed = PASSED.get()[0]
    if not isinstance(node, FunctionNode):
        return passed is node
    own: list[Any] = [passed]
    if isinstance(passed, NodeTool):
        own.append(passed.node)
    if isinstance(passed, FunctionTool):
        own.append((getattr(passed, "_generator_node_cache", None) or (None, None))[1])
    mine = function_of(node)
    return any(isinstance(one, FunctionNode) and function_of(one) is mine for one in own)
