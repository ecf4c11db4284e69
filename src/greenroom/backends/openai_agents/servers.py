"""The seam of MCP servers, for code that calls a server's tool itself instead of giving it to an agent."""

from contextvars import ContextVar
from functools import cache
from typing import Any

from agents.mcp.server import MCPServer
from mcp.types import CallToolResult

from greenroom.backends.callers import refuse_to_wait
from greenroom.backends.foreign import Origin, jsonable, result_as_json
from greenroom.backends.openai_agents.gates import passed_server_tool
from greenroom.backends.openai_agents.run import tool_caller
from greenroom.backends.seams import Call, wrap_below
from greenroom.ledger.plain import Json, as_text, is_object
from greenroom.world.call_context import ContextSetting
from greenroom.world.records import ToolError
from greenroom.world.world import ToolRequest

_RUNNING: ContextVar[str] = ContextVar("greenroom_openai_agents_server_tool", default="")
"""The tool that a server runs here, since the World allowed it."""


@cache
def install() -> None:
    """Install the seam, once."""
    wrap_below(MCPServer, {"call_tool": _call_seam})


def _call_seam(real: Call) -> Call:
    async def call_tool(
        self: MCPServer, tool_name: str, arguments: Any = None, *more: Any, **named: Any
    ) -> CallToolResult:
        # A server may hand a call on: to its base class, or to another server.
        if tool_name in (_RUNNING.get(), passed_server_tool()):
            return await real(self, tool_name, arguments, *more, **named)
        caller = tool_caller(self, tool_name)
        if caller is None:
            return await real(self, tool_name, arguments, *more, **named)

        async def run() -> Any:
            with ContextSetting(_RUNNING, tool_name):
                return await real(self, tool_name, arguments, *more, **named)

        args: Any = jsonable(arguments or {})
        request = ToolRequest("", tool_name, args, caller.agent, origin=Origin(self))
        outcome, kept = await caller.ask_tool(caller.place_tool(request), run, result_as_json)
        outcome = refuse_to_wait(caller, tool_name, outcome)
        if outcome.error:
            raise kept.error or ToolError(outcome.error)
        return kept.real if kept.matches(outcome.value) else _result(outcome.value)

    return call_tool


def _result(value: Json) -> CallToolResult:
    """An answer of the World in the form of a server's: as recorded, or a text."""
    is_whole = is_object(value) and isinstance(value.get("content"), list)
    text = {"type": "text", "text": as_text(value)}
    return CallToolResult.model_validate(value if is_whole else {"content": [text]})
