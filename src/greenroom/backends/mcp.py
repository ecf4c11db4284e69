"""The seams of MCP clients, which no framework owns: every call of a server's tool ends here.

A framework's gate has already decided the calls that its agents make, so they pass. What is left are calls by code: a
function, a tool's body, a hook, a simulated user.
"""

from functools import cache
from typing import Any, Final

import mcp
from mcp import ClientSession
from mcp.types import CallToolResult

from greenroom.backends.callers import Caller, Run, inner_tool_caller, refuse_to_wait
from greenroom.backends.foreign import Origin, jsonable, result_as_json
from greenroom.backends.seams import Call, original, stand_in, wrap_below
from greenroom.ledger.plain import Json, as_text, is_object
from greenroom.world.call_context import is_decided
from greenroom.world.records import ToolError
from greenroom.world.world import ToolRequest

_CALLING: Final = "tools/call"
"""The protocol's name for the request that runs a tool."""


@cache
def install() -> None:
    """Install the seams, once; FenceNotHeld if this version lacks what they wrap."""
    original(ClientSession, "call_tool")
    if "send_request" not in vars(ClientSession):
        # Older versions have it from a class that a server's side shares.
        shared = ClientSession.send_request
        ClientSession.send_request = stand_in(shared, _request_seam(shared))
    wrap_below(ClientSession, {"call_tool": _call_seam, "send_request": _request_seam})
    client = getattr(mcp, "Client", None)
    if client is not None:  # only newer versions have it
        # It may send several requests for one call, to answer what the server asks back.
        wrap_below(client, {"call_tool": _call_seam})


def _call_seam(real: Call) -> Call:
    async def call_tool(self: Any, *args: Any, **given: Any) -> Any:
        asked = dict(zip(("name", "arguments"), args, strict=False)) | given
        name, arguments = asked.get("name", ""), asked.get("arguments")
        return await _answer(self, name, arguments, lambda: real(self, *args, **given))

    return call_tool


def _request_seam(real: Call) -> Call:
    """For code that sends the request itself, and for tasks of older versions."""

    async def send_request(self: Any, request: Any, *args: Any, **given: Any) -> Any:
        def run() -> Any:
            return real(self, request, *args, **given)

        asked = getattr(request, "root", request)  # older versions wrap each request in their union
        if getattr(asked, "method", "") != _CALLING:
            return await run()
        return await _answer(self, asked.params.name, asked.params.arguments, run)

    return send_request


async def _answer(session: object, name: str, arguments: Any, run: Run) -> Any:
    caller = None if is_decided(name) else inner_tool_caller(Origin(session), name)
    return await (run() if caller is None else answer_call(caller, session, name, arguments, run))


async def answer_call(caller: Caller, server: object, name: str, arguments: Any, run: Run) -> Any:
    """The World's answer to the call of a server's tool, in the form of a server's answer."""
    args: Any = jsonable(arguments or {})
    request = ToolRequest("", name, args, caller.agent, origin=Origin(server))
    outcome, kept = await caller.ask_tool(caller.place_tool(request), run, result_as_json)
    outcome = refuse_to_wait(caller, name, outcome)
    if outcome.error:
        if outcome.source == "live":
            raise kept.error or ToolError(outcome.error)
        return _result(outcome.error, is_error=True)
    return kept.real if kept.matches(outcome.value) else _result(outcome.value)


def _result(value: Json, *, is_error: bool = False) -> CallToolResult:
    """An answer of the World as a server gives it: as recorded, or as a text, with its fields if it has some."""
    if is_object(value) and isinstance(value.get("content"), list):
        return CallToolResult.model_validate(value)
    given: dict[str, Any] = {"content": [{"type": "text", "text": as_text(value)}]}
    if is_object(value):
        given["structuredContent"] = value
    return CallToolResult.model_validate(given | {"isError": is_error})
