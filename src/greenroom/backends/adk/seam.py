"""Where google-adk runs tools, asks models, runs nodes and lists tools: who answers is asked there.

A class's own method is wrapped once, for the classes there are and those to come. Whoever calls
a tool that has no such method, because it was replaced on the object or the class, is asked instead.
An agent that was handed over has gates of its own above; what passes those passes here.
"""

import sys
from collections.abc import Callable
from functools import wraps
from inspect import signature
from types import FunctionType
from typing import Any

from google.adk.code_executors.base_code_executor import BaseCodeExecutor
from google.adk.flows.llm_flows import functions
from google.adk.models.base_llm import BaseLlm
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.function_tool import FunctionTool

from greenroom.backends.adk.model_seams import code_seam, line_seam, listing_seam, model_seam
from greenroom.backends.adk.node_seams import node_seam
from greenroom.backends.adk.quiet import quiet
from greenroom.backends.adk.routed import is_seam, stands_for
from greenroom.backends.adk.tool_seams import caller_seam, function_seam, pool_seam, tool_seam
from greenroom.backends.adk.versions import HAS_GRAPHS, BaseNode
from greenroom.backends.seams import original

# By version: the function through which the framework calls a tool.
_CALLERS = ("_call_tool_async", "__call_tool_async")

Wrap = Callable[[Callable[..., Any]], Callable[..., Any]]


def install() -> None:
    """Put the seam in; a version that lacks one of the names is refused."""
    quiet()
    caller = next((name for name in _CALLERS if hasattr(functions, name)), _CALLERS[0])
    calls, pooled = original(functions, caller), original(functions, "_call_tool_in_thread_pool")
    for owner, name in ((BaseLlm, "connect"), (BaseToolset, "get_tools_with_prefix")):
        original(owner, name)
    _follow(BaseTool, {"run_async": tool_seam})
    _follow(FunctionTool, {"_invoke_callable": function_seam})
    _follow(BaseLlm, {"generate_content_async": model_seam, "connect": line_seam})
    _follow(BaseCodeExecutor, {"execute_code": code_seam})
    _follow(BaseToolset, {"get_tools_with_prefix": listing_seam, "get_tools": listing_seam})
    _replace_everywhere(calls, caller_seam(calls))
    _replace_everywhere(pooled, pool_seam(pooled))
    if HAS_GRAPHS:
        _wrap_method(BaseNode, "run", node_seam, original(BaseNode, "run"))


def _follow(base: type, methods: dict[str, Wrap]) -> None:
    """Wrap these methods of a class, of all classes below it, and of those to come."""
    for name in methods:
        original(base, name)

    def wrap_all(kind: type) -> None:
        for name, seam in methods.items():
            method = vars(kind).get(name)
            if isinstance(method, FunctionType):
                _wrap_method(kind, name, seam, method)

    waiting, known = [base], {base}
    while waiting:
        kind = waiting.pop()
        wrap_all(kind)
        fresh = [below for below in kind.__subclasses__() if below not in known]
        known.update(fresh)
        waiting += fresh
    before: Any = vars(base).get("__init_subclass__")

    def follow(cls: type, **options: Any) -> None:
        if before is None:
            super(base, cls).__init_subclass__(**options)
        else:
            before.__get__(None, cls)(**options)
        wrap_all(cls)

    base.__init_subclass__ = classmethod(follow)  # pyright: ignore[reportAttributeAccessIssue]


def _wrap_method(kind: type, name: str, seam: Wrap, method: Callable[..., Any]) -> None:
    if is_seam(method) or getattr(method, "__isabstractmethod__", False):
        return
    setattr(kind, name, _in_place_of(method, seam(method)))


def _in_place_of(real: Callable[..., Any], seam: Callable[..., Any]) -> Callable[..., Any]:
    """The seam, looking like what it stands for, but without a way past it."""
    wrapped: Any = wraps(real)(seam)
    wrapped.__signature__ = signature(real)
    del wrapped.__wrapped__
    stands_for(wrapped, real)
    return wrapped


def _replace_everywhere(real: Callable[..., Any], seam: Callable[..., Any]) -> None:
    """Put a module's function into every module of the framework that has taken it by name."""
    wrapped = _in_place_of(real, seam)
    for name, module in list(sys.modules.items()):
        if name.startswith("google.adk."):
            for taken in [key for key, value in vars(module).items() if value is real]:
                setattr(module, taken, wrapped)
