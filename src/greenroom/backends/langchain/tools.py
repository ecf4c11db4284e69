"""Where LangChain runs a tool: the World of the case answers."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false

from functools import cache
from typing import Any

from langchain_core.tools import BaseTool

from greenroom.backends.langchain import MARK, gate_tool, watch_classes
from greenroom.backends.seams import Call, wrap

# What stands above the seams: a class that replaces one of these does its work out of their sight.
ABOVE = ("invoke", "ainvoke", "run", "arun")


@cache
def install() -> None:
    """Put the seams in, once, and a guard on every class that would go around them."""
    wrap((BaseTool, name, _tool_seam) for name in ("run", "arun"))
    watch_classes(BaseTool, ABOVE)


def _tool_seam(real: Call) -> Call:
    def seam(self: BaseTool, tool_input: Any, *args: Any, **given: Any) -> Any:
        if MARK not in self.__dict__:
            self = gate_tool(self, tool_input, given.get("tool_call_id"))
        return real(self, tool_input, *args, **given)

    return seam
