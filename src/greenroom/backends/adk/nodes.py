"""Nodes of workflow graphs: their functions are gated, and entering and leaving them is recorded."""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import aclosing
from typing import Any, cast

from google.adk.agents import BaseAgent
from google.adk.events import Event

from greenroom.backends.adk.run import AdkCaller, FrameworkRun, run_passed
from greenroom.backends.adk.versions import (
    START,
    BaseNode,
    Context,
    Edge,
    FunctionNode,
    Graph,
    JoinNode,
    ParallelWorker,
    RequestInput,
    ToolNode,
    Workflow,
)
from greenroom.backends.callers import Run
from greenroom.backends.foreign import Origin, jsonable
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.plain import Json, as_object, plain
from greenroom.world.records import ToolError
from greenroom.world.world import Pending, ToolRequest

_KINDS = (Workflow, FunctionNode, JoinNode, ParallelWorker, ToolNode)


def check_node(node: BaseNode) -> BaseNode:
    """The node, if its work can be gated; BadAgent if it cannot."""
    if type(node) in _KINDS or node is START:
        return node
    raise BadAgent(
        f"node {node.name!r} is a {type(node).__name__}, whose work cannot go through the tool gate. "
        f"Rehearse it separately, or replace it with a function that has a mock."
    )


def children_of(node: BaseNode) -> Iterator[BaseNode]:
    """The nodes right below a workflow or a parallel worker."""
    if isinstance(node, ParallelWorker):
        yield node._node  # pyright: ignore[reportPrivateUsage]
    elif isinstance(node, Workflow) and node.graph is not None:
        yield from (child for child in node.graph.nodes if child is not START)


def function_of(node: FunctionNode) -> Callable[..., Any]:
    """The author's function in a node."""
    return node._func  # pyright: ignore[reportPrivateUsage]


def parameters_of(node: FunctionNode) -> tuple[str, ...]:
    """The arguments of a node's function, without the framework's own."""
    return tuple(
        name
        for name in inspect.signature(function_of(node)).parameters
        if name != node._context_param_name  # pyright: ignore[reportPrivateUsage]
    )


def copied_graph(graph: Graph, copied: Callable[[BaseNode], BaseNode]) -> Graph:
    """A copy of the graph: the edges are kept, the nodes are copied."""
    twins = {id(node): copied(node) for node in graph.nodes}
    edges = [
        Edge(from_node=twins[id(e.from_node)], to_node=twins[id(e.to_node)], route=e.route)
        for e in graph.edges
    ]
    twin = Graph(edges=edges)
    twin.validate_graph()
    return twin


class NodeNote:
    """Replaces a copied node's `_run_impl`: records when the node is entered and left."""

    __slots__ = ("_node", "_real", "_run")

    def __init__(self, node: BaseNode, run: FrameworkRun) -> None:
        self._node = node
        self._real = node._run_impl  # pyright: ignore[reportPrivateUsage]
        self._run = run

    async def __call__(self, *, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        """What the node itself yields."""
        name = self._node.name
        self._run.enter(name, plain(jsonable(_as_text(node_input)), f"input of {name!r}"))
        waits = False
        async with aclosing(self._real(ctx=ctx, node_input=node_input)) as items:
            async for item in items:
                is_pause = isinstance(item, RequestInput)
                waits = waits or is_pause or bool(getattr(item, "long_running_tool_ids", None))
                yield item
        if not waits and not ctx.interrupt_ids:
            self._run.leave(name)


def note_node(node: BaseNode, run: FrameworkRun) -> BaseNode:
    """Make a copied node record when it is entered and left."""
    # Pydantic refuses attributes that are not fields, and the node must stay of its own type.
    object.__setattr__(node, "_run_impl", NodeNote(node, run))
    return node


def gated_function(node: FunctionNode, caller: AdkCaller) -> FunctionNode:
    """A copy of a function node whose function asks the World."""
    twin: Any = node.model_copy()
    twin._func = twin._unwrapped_func = FunctionGate(caller, node).answer
    return cast(FunctionNode, twin)


def is_gated_function(node: BaseNode) -> bool:
    """Whether the function of this node is a gate of ours."""
    function = function_of(node) if isinstance(node, FunctionNode) else None
    return getattr(function, "__func__", None) is FunctionGate.answer


def gated_node(
    node: BaseNode, caller: AdkCaller, real: Callable[..., Any] | None = None
) -> BaseNode:
    """A copy of a node of the author's own class, whose whole work is one call to the World.

    `real` is what the work is, if not what the framework lets a class override.
    """
    real = real or node._run_impl  # pyright: ignore[reportPrivateUsage]

    async def run(*, ctx: Context, node_input: Any) -> AsyncGenerator[Any, None]:
        async def work() -> list[Any]:
            return await _all_of(real(ctx=ctx, node_input=node_input))

        for item in await node_items(caller, node, node, {"node_input": node_input}, work):
            yield item

    twin = node.model_copy()
    object.__setattr__(twin, "_run_impl", run)
    return twin


class FunctionGate:
    """Replaces a node's function; a case mocks or allows it like a tool."""

    __slots__ = ("_caller", "_node")

    def __init__(self, caller: AdkCaller, node: FunctionNode) -> None:
        self._caller = caller
        self._node = node

    async def answer(self, **given: Any) -> AsyncGenerator[Any, None]:
        """What the node yields: the mock's value, or everything that the real function gave."""
        node = self._node
        function, names = function_of(node), parameters_of(node)

        async def run() -> list[Any]:
            return await _all_of(function(**given))

        args = {name: given[name] for name in names if name in given}
        for item in await node_items(self._caller, node, Origin(function, node), args, run):
            yield item


async def node_items(
    caller: AdkCaller, node: BaseNode, origin: Any, given: dict[str, Any], run: Run
) -> list[Any]:
    """What a node yields: the mock's value, or everything that its real work gave."""
    name = node.name
    args = as_object(jsonable({key: _as_text(value) for key, value in given.items()}))
    request = caller.place_tool(ToolRequest("", name, args, caller.agent, origin=origin))
    outcome, kept = await caller.ask_tool(request, lambda: run_passed(node, None, run), _output)
    if isinstance(outcome, Pending):
        raise caller.refuse(AgentFailed(f"node {name!r} cannot wait for a tool's user."))
    if outcome.error:
        raise kept.error or ToolError(outcome.error)
    return kept.real if kept.matches(outcome.value) else [outcome.value]


async def _all_of(result: Any) -> list[Any]:
    """Everything a function yields or returns."""
    if inspect.isasyncgen(result):
        return [item async for item in result]
    if inspect.isgenerator(result):
        return list(result)
    return [await result if inspect.isawaitable(result) else result]


def _output(items: list[Any]) -> Json:
    """The item of a node that is recorded: the last."""
    last = items[-1] if items else None
    if isinstance(last, Event):
        last = {"output": last.output, "route": last.actions.route}
    return jsonable(last)


def _as_text(value: Any) -> Any:
    """The framework's content as text; other values unchanged."""
    parts = getattr(value, "parts", None)
    return value if parts is None else "".join(part.text or "" for part in parts)


def described_node(node: BaseNode, agent: Callable[[BaseAgent], Json]) -> dict[str, Json]:
    """A workflow and its nodes as JSON; `agent` describes the agents among them."""
    facts: dict[str, Json] = {"name": node.name, "kind": type(node).__name__.lstrip("_")}
    children = list(children_of(node))
    if children:
        facts["nodes"] = [
            agent(child) if isinstance(child, BaseAgent) else described_node(child, agent)
            for child in children
        ]
    if isinstance(node, Workflow) and node.graph is not None:
        facts["edges"] = [
            [edge.from_node.name, edge.to_node.name, jsonable(edge.route)]
            for edge in node.graph.edges
        ]
    return facts
