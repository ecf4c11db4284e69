"""Models, tools and graphs that a graph's nodes hold, found through their closures."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false

import functools
import inspect
from collections.abc import Iterator
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langgraph.prebuilt import ToolNode
from langgraph.pregel import Pregel

_DEPTH = 8
_MIDDLEWARE = "langchain.agents.middleware"


def parts_of(graph: Pregel[Any, Any, Any, Any]) -> Iterator[Any]:
    """Every model, tool, message, middleware and graph within reach, the graph itself first."""
    seen: set[int] = set()
    yield from _walk(graph, seen, _DEPTH)


def _walk(thing: Any, seen: set[int], depth: int) -> Iterator[Any]:
    if depth < 0 or id(thing) in seen or isinstance(thing, str | int | float | type | None):
        return
    seen.add(id(thing))
    if isinstance(thing, BaseChatModel | BaseTool | BaseMessage | Pregel) or _is_middleware(thing):
        yield thing
    for inner in _inside(thing):
        yield from _walk(inner, seen, depth - 1)


def _inside(thing: Any) -> Iterator[Any]:
    """What a thing holds that could be at work when it runs."""
    if isinstance(thing, Pregel):
        yield from (node.bound for node in thing.nodes.values())
    elif isinstance(thing, ToolNode):
        yield from thing.tools_by_name.values()
        yield from (
            getattr(thing, "_wrap_tool_call", None),
            getattr(thing, "_awrap_tool_call", None),
        )
    elif inspect.isfunction(thing):
        yield from _closure(thing)
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
        # A model may wrap others; what else it keeps is not at work in the graph.
        yield from (held for held in vars(thing).values() if isinstance(held, Runnable))
    elif isinstance(thing, Runnable) or _is_middleware(thing):
        yield from vars(thing).values()


def _closure(function: Any) -> Iterator[Any]:
    yield from function.__defaults__ or ()
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # not filled yet
            continue
    for name in function.__code__.co_names:
        found = function.__globals__.get(name)
        if isinstance(found, Runnable) or inspect.isfunction(found):
            yield found


def _is_middleware(thing: Any) -> bool:
    return any(cls.__module__.startswith(_MIDDLEWARE) for cls in type(thing).__mro__)
