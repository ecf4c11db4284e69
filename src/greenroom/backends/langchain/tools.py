"""The seam at LangChain's tools: the World of the case answers."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false

from functools import cache
from types import FunctionType
from typing import Any

from langchain_core.tools import BaseTool

from greenroom.backends.langchain import ACTING, MARK, gate_tool, watch_classes
from greenroom.backends.seams import Call, wrap, wrap_below

# Methods that call the seams: a class that replaces one of these would bypass them.
ABOVE = (
    *("invoke", "ainvoke", "run", "arun"),
    *("batch", "abatch", "batch_as_completed", "abatch_as_completed"),
    *("stream", "astream", "transform", "atransform"),
)


@cache
def install() -> None:
    """Install the seams, once, and a guard on every class that would bypass them."""
    wrap((BaseTool, name, _tool_seam) for name in ("run", "arun"))
    watch_classes(BaseTool, ABOVE)
    # The bodies themselves too: code may call them directly, or a `run` from before the seam.
    wrap_below(BaseTool, {"_run": _body_seam, "_arun": _body_seam})


def _tool_seam(real: Call) -> Call:
    def seam(self: BaseTool, tool_input: Any, *args: Any, **given: Any) -> Any:
        if MARK not in self.__dict__:
            self = gate_tool(self, tool_input, given.get("tool_call_id"))
        return real(self, tool_input, *args, **given)

    return seam


def _body_seam(real: Call) -> Call:
    def answer(tool: BaseTool, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        if MARK in tool.__dict__:  # a method that the gate did not replace leads back to the class
            return vars(tool)[real.__name__](*args, **given)
        if ACTING.here() is not tool:
            own = {key: value for key, value in given.items() if key not in _INJECTED}
            twin = gate_tool(tool, args[0] if args else own, None)
            if twin is not tool:
                return getattr(twin, real.__name__)(*args, **given)
        return real(tool, *args, **given)

    def seam(self: BaseTool, *args: Any, **given: Any) -> Any:
        return answer(self, args, given)

    # Annotations that are strings are resolved in the author's module.
    return FunctionType(seam.__code__, real.__globals__, real.__name__, None, seam.__closure__)


_INJECTED = ("config", "run_manager")
"""Parameters that the framework itself fills."""
