"""What one version of the framework has and another lacks: graphs came with version 2.

If a version lacks a class, its name is bound to a class without instances, so that `isinstance` gives the
right answer. A version that has graphs but lacks one of these names is unknown to us and refused, because
the gate would miss what it has instead.
"""

import inspect
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from google.adk.tools.function_tool import FunctionTool

HAS_GRAPHS = find_spec("google.adk.workflow") is not None

if TYPE_CHECKING or HAS_GRAPHS:
    from google.adk.agents.context import Context
    from google.adk.agents.llm.task._finish_task_tool import FinishTaskTool
    from google.adk.events.request_input import RequestInput
    from google.adk.tools._node_tool import NodeTool
    from google.adk.tools._request_input_tool import request_input
    from google.adk.workflow import FunctionNode, JoinNode, Workflow
    from google.adk.workflow._base_node import START, BaseNode
    from google.adk.workflow._graph import Edge, Graph
    from google.adk.workflow._parallel_worker import (
        _ParallelWorker as ParallelWorker,  # pyright: ignore[reportPrivateUsage]
    )
    from google.adk.workflow._tool_node import (
        _ToolNode as ToolNode,  # pyright: ignore[reportPrivateUsage]
    )
else:

    def _lacking(name: str) -> type:
        return type(name, (), {"__doc__": "This version has none."})

    Context, FinishTaskTool = _lacking("Context"), _lacking("FinishTaskTool")
    RequestInput, NodeTool = _lacking("RequestInput"), _lacking("NodeTool")
    FunctionNode, JoinNode = _lacking("FunctionNode"), _lacking("JoinNode")
    Workflow, BaseNode = _lacking("Workflow"), _lacking("BaseNode")
    Edge, Graph = _lacking("Edge"), _lacking("Graph")
    ParallelWorker, ToolNode = _lacking("ParallelWorker"), _lacking("ToolNode")
    START = request_input = None

__all__ = [
    "HAS_GRAPHS",
    "START",
    "BaseNode",
    "Context",
    "Edge",
    "FinishTaskTool",
    "FunctionNode",
    "Graph",
    "JoinNode",
    "NodeTool",
    "ParallelWorker",
    "RequestInput",
    "ToolNode",
    "Workflow",
    "output_of",
    "request_input",
    "signed_like",
]


def output_of(event: Any) -> Any:
    """The output of a graph node, in versions that have graphs."""
    return getattr(event, "output", None)


def signed_like(gate: Any, function: Callable[..., Any]) -> Any:
    """The gate with the function's signature, for versions that choose arguments by the signature."""
    if not hasattr(FunctionTool, "_prepare_invocation_args"):
        gate.__signature__ = inspect.signature(function)
    return gate
