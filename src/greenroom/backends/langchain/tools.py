"""Where LangChain runs a tool: the World of the case answers."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportUnknownMemberType=false

import functools
from collections.abc import Callable
from typing import Any

from langchain_core.tools import BaseTool

from greenroom.backends.langchain.callers import MARK, gate_tool
from greenroom.backends.langchain.subclasses import watch_classes
from greenroom.backends.seams import original

Call = Callable[..., Any]

# What stands above the seams: a class that replaces one of these does its work out of their sight.
ABOVE = ("invoke", "ainvoke", "run", "arun")
_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once, and a guard on every class that would go around them."""
    if _installed:
        return
    seams = {name: _tool_seam(original(BaseTool, name)) for name in ("run", "arun")}
    for name, seam in seams.items():
        setattr(BaseTool, name, seam)
    watch_classes(BaseTool, ABOVE)
    _installed.append(True)


def _tool_seam(real: Call) -> Call:
    @functools.wraps(real)
    def seam(self: BaseTool, tool_input: Any, *args: Any, **given: Any) -> Any:
        if MARK not in self.__dict__:
            self = gate_tool(self, tool_input, given.get("tool_call_id"))
        return real(self, tool_input, *args, **given)

    return seam
