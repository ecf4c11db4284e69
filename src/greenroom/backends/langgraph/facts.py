"""What is known about a graph before it runs, and what in it cannot be rehearsed."""

# The framework is only partly typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import functools
import inspect
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.graph import MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

from greenroom.backends.backend import ToolFacts
from greenroom.backends.foreign import jsonable
from greenroom.backends.langchain import origin_of
from greenroom.backends.langgraph.seam import overrides
from greenroom.backends.langgraph.translation import model_name
from greenroom.backends.tool_facts import by_name, facts_by_schema
from greenroom.errors import BadAgent, NotFound
from greenroom.ledger.identity import code_identity
from greenroom.ledger.plain import Json, as_text

Graph = Pregel[Any, Any, Any, Any]
_OWN = ("langchain.", "langchain_core.", "langgraph.")
_RELIED_ON = ("ainvoke", "astream", "copy")
_DEPTH = 8
_MIDDLEWARE = "langchain.agents.middleware"


def check_agent(given: Any, has_input: bool = False) -> Graph:
    """The graph, if all its work can go through the tool gate; BadAgent naming what cannot."""
    graph = _graph_of(given)
    for name in _RELIED_ON:
        owner = next(cls for cls in type(graph).__mro__ if name in vars(cls))
        if not f"{owner.__module__}.".startswith(_OWN):
            raise BadAgent(
                f"graph {name_of(graph)!r} is a {type(graph).__name__}, which has its own "
                f"{name}(), and that would bypass the tool gate."
            )
    if not has_input and "messages" not in graph.channels:
        keys = [k for k in graph.channels if not k.startswith(("__", "branch:", "join:"))]
        raise BadAgent(
            f"graph {name_of(graph)!r} has no messages in its state ({', '.join(keys)}). Say "
            f"what its input is: LangGraphBackend(graph, input=lambda text: {{...}})."
        )
    for part in parts_of(graph):
        _check_part(part, name_of(graph))
    return graph


def part_of(graph: Graph, name: str) -> Graph:
    """The graph in a node, or a graph of this one node with the same state."""
    first, _, rest = name.partition("/")
    node, builder = graph.nodes.get(first), getattr(graph, "builder", None)
    if node is None or first.startswith("__"):
        names = ", ".join(key for key in graph.nodes if not key.startswith("__"))
        raise NotFound(
            f"there is no node {first!r} in graph {name_of(graph)!r}; there are {names}."
        )
    if isinstance(node.bound, Pregel):
        inner = cast(Graph, node.bound)
        return part_of(inner, rest) if rest else inner
    if rest or builder is None:
        raise NotFound(f"node {first!r} of graph {name_of(graph)!r} holds no graph.")
    alone: Any = StateGraph(builder.state_schema, builder.context_schema)
    alone.add_node(first, node.bound, input_schema=builder.nodes[first].input_schema)
    alone.set_entry_point(first)
    return alone.compile(name=first)


def name_of(graph: Graph) -> str:
    """The graph's name in ledgers."""
    return graph.name or "graph"


def tool_facts(graph: Graph) -> dict[str, ToolFacts] | None:
    """Every tool by name; None if the author's own nodes may call tools that cannot be listed."""
    if not all(_is_known(graph, name) for name in graph.nodes):
        return None
    found = (part for part in parts_of(graph) if isinstance(part, BaseTool))
    return by_name(facts_by_schema(tool.name, _schema(tool), origin_of(tool)) for tool in found)


def described_graph(graph: Graph) -> dict[str, Json]:
    """The graph as JSON."""
    parts = list(parts_of(graph))
    models = {model_name(part) for part in parts if isinstance(part, BaseChatModel)}
    inner = {name_of(part) for part in parts if isinstance(part, Pregel) and part is not graph}
    return {
        "name": name_of(graph),
        "nodes": {name: _describe(node.bound) for name, node in graph.nodes.items()},
        "prompts": [str(part.text) for part in parts if isinstance(part, BaseMessage)],
        "models": [*sorted(models)],
        "tools": [_described_tool(part) for part in parts if isinstance(part, BaseTool)],
        "subgraphs": [*sorted(inner)],
    }


def _graph_of(given: Any) -> Graph:
    if isinstance(given, Pregel):
        return cast(Graph, given)
    if isinstance(given, StateGraph):
        raise BadAgent("this StateGraph is not compiled. Pass graph.compile().")
    if isinstance(given, Runnable) and not isinstance(given, BaseTool | ToolNode):
        if "remote" in type(given).__module__:
            raise BadAgent(
                f"a {type(given).__name__} runs elsewhere, where the tool gate cannot intercept it. "
                f"Pass the graph itself."
            )
        return _alone(cast("Runnable[Any, Any]", given))
    raise BadAgent(f"a {type(given).__name__} is not an agent. Pass a compiled graph or a chain.")


def _alone(runnable: Runnable[Any, Any]) -> Graph:
    """A model or chain as the only node of a graph, which remembers the conversation for it."""
    takes = _takes(runnable)

    async def answer(state: MessagesState) -> dict[str, Any]:
        messages = state["messages"]
        said: Any = messages[-1].text if messages else ""
        given = {"messages": messages} if takes == "messages" else {takes: str(said)}
        out: Any = await runnable.ainvoke(given if takes else messages)
        return {
            "messages": [out if isinstance(out, BaseMessage) else AIMessage(as_text(jsonable(out)))]
        }

    graph: Any = StateGraph(MessagesState)
    graph.add_node("answer", answer)
    graph.set_entry_point("answer")
    return graph.compile(name=runnable.get_name())


def _takes(runnable: Runnable[Any, Any]) -> str:
    """The name of the chain's input for what was said; "" if it takes the messages as they are."""
    if isinstance(runnable, BaseChatModel) or isinstance(
        getattr(runnable, "bound", None), BaseChatModel
    ):
        return ""
    names = list(runnable.get_input_jsonschema().get("properties", ()))
    if "messages" in names:
        return "messages"
    if len(names) > 1:
        raise BadAgent(
            f"the chain {runnable.get_name()!r} needs {names}, but only one of them can be what "
            f"the user says. Put it into a graph whose state has these keys."
        )
    return names[0] if names else ""


def _check_part(part: Any, graph: str) -> None:
    if isinstance(part, BaseChatModel | BaseTool):
        name = overrides(type(part))
        if name is not None:
            raise BadAgent(
                f"graph {graph!r} uses a {type(part).__name__}, which has its own {name}(), "
                f"and that would bypass the tool gate."
            )
    if isinstance(part, Pregel):
        if part.interrupt_before_nodes or part.interrupt_after_nodes:
            raise BadAgent(
                f"graph {graph!r} was compiled with interrupt_before or interrupt_after, which stop "
                f"it without asking its user anything. Call interrupt(...) in the node instead."
            )
        for key, channel in cast(Graph, part).channels.items():
            if type(channel).__name__ == "DeltaChannel":
                raise BadAgent(
                    f"graph {graph!r} keeps {key!r} in a DeltaChannel, whose history cannot be "
                    f"kept in a ledger. Rehearse it with an ordinary channel."
                )
    if type(part).__name__ in ("ShellToolMiddleware", "CodexSandboxExecutionPolicy"):
        raise BadAgent(
            f"graph {graph!r} has a {type(part).__name__}, which starts a process as soon as it "
            f"runs. Rehearse the agent without it, or with a tool of that name."
        )


def _is_known(graph: Graph, name: str) -> bool:
    """Whether a node is the framework's own, so that all its tools are known."""
    bound = graph.nodes[name].bound
    if isinstance(bound, ToolNode):
        return True
    if isinstance(bound, Pregel):
        inner = cast(Graph, bound)
        return all(_is_known(inner, each) for each in inner.nodes)
    function = getattr(bound, "afunc", None) or getattr(bound, "func", None)
    return f"{getattr(function, '__module__', '')}.".startswith(_OWN)


def _schema(tool: BaseTool) -> dict[str, Json]:
    schema: Any = tool.tool_call_schema
    return schema if isinstance(schema, dict) else schema.model_json_schema()


def _described_tool(tool: BaseTool) -> Json:
    behind = origin_of(tool).fn
    code = behind if inspect.isroutine(behind) else type(tool)
    return {
        "name": tool.name,
        "description": tool.description,
        "parameters": _schema(tool),
        "code": code_identity(code),
    }


def _describe(bound: Any) -> str:
    function = getattr(bound, "afunc", None) or getattr(bound, "func", None)
    return code_identity(function) if inspect.isfunction(function) else type(bound).__name__


def parts_of(graph: Graph) -> Iterator[Any]:
    """Every model, tool, message, middleware and graph within reach, the graph itself first.

    Nodes hold them in closures, so they are looked for there.
    """
    yield from _walk(graph, set(), _DEPTH)


def _walk(thing: Any, seen: set[int], depth: int) -> Iterator[Any]:
    if depth < 0 or id(thing) in seen or isinstance(thing, str | int | float | type | None):
        return
    seen.add(id(thing))
    if isinstance(thing, BaseChatModel | BaseTool | BaseMessage | Pregel) or _is_middleware(thing):
        yield thing
    for inner in _inside(thing):
        yield from _walk(inner, seen, depth - 1)


def _inside(thing: Any) -> Iterator[Any]:
    """The parts of an object that could run when it runs."""
    if isinstance(thing, Pregel):
        yield from (node.bound for node in thing.nodes.values())
    elif isinstance(thing, ToolNode):
        yield from thing.tools_by_name.values()
        yield from (
            getattr(thing, "_wrap_tool_call", None),
            getattr(thing, "_awrap_tool_call", None),
        )
    elif inspect.isfunction(thing):
        yield from thing.__defaults__ or ()
        for cell in thing.__closure__ or ():
            with suppress(ValueError):  # the closure cell is still empty
                yield cell.cell_contents
        found = (thing.__globals__.get(name) for name in thing.__code__.co_names)
        yield from (one for one in found if isinstance(one, Runnable) or inspect.isfunction(one))
    elif inspect.ismethod(thing):
        yield thing.__self__
        yield thing.__func__
    elif isinstance(thing, functools.partial):
        partial = cast("functools.partial[Any]", thing)
        yield from (partial.func, *partial.args, *partial.keywords.values())
    elif isinstance(thing, dict):
        yield from cast("dict[Any, Any]", thing).values()
    elif isinstance(thing, list | tuple | set | frozenset):
        yield from cast("list[Any]", thing)
    elif isinstance(thing, BaseTool):
        yield from (getattr(thing, "func", None), getattr(thing, "coroutine", None))
    elif isinstance(thing, BaseChatModel):
        # A model may wrap others; its other attributes do not run in the graph.
        yield from (held for held in vars(thing).values() if isinstance(held, Runnable))
    elif isinstance(thing, Runnable) or _is_middleware(thing):
        yield from vars(thing).values()


def _is_middleware(thing: Any) -> bool:
    return any(cls.__module__.startswith(_MIDDLEWARE) for cls in type(thing).__mro__)
