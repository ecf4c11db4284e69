"""The seam of MCP servers, for code that calls a server's tool itself instead of giving it to an agent."""

from functools import cache
from typing import Any

from agents.mcp.server import MCPServer

from greenroom.backends.mcp import answer_call
from greenroom.backends.openai_agents.run import tool_caller
from greenroom.backends.seams import Call, wrap_below
from greenroom.world.call_context import is_decided


@cache
def install() -> None:
    """Install the seam, once."""
    wrap_below(MCPServer, {"call_tool": _call_seam})


def _call_seam(real: Call) -> Call:
    async def call_tool(
        self: MCPServer, tool_name: str, arguments: Any = None, *more: Any, **named: Any
    ) -> Any:
        def run() -> Any:
            return real(self, tool_name, arguments, *more, **named)

        # A server may hand a call on: to its base class, or to another server.
        caller = None if is_decided(tool_name) else tool_caller(self, tool_name)
        if caller is None:
            return await run()
        return await answer_call(caller, self, tool_name, arguments, run)

    return call_tool
