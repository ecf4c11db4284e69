"""Pauses of the framework: calls that wait for the user, and the answers that resume them."""

from typing import Any

from google.adk.events import Event
from google.genai import types

from greenroom.backends.backend import Yield
from greenroom.backends.foreign import Invocation, approval
from greenroom.errors import AgentFailed, UserAgentFailed
from greenroom.ledger.plain import Json

_CONFIRM = "adk_request_confirmation"
_CREDENTIAL = "adk_request_credential"
# A node of a workflow asks for approval as for any other input, under an id that says so.
_NODE_APPROVAL = "wf_tool_confirmation:"


def pending_calls(events: list[Event]) -> list[types.FunctionCall]:
    """Long-running calls without an answer so far, oldest first."""
    waiting: dict[str, types.FunctionCall] = {}
    for event in events:
        # Of most events there is nothing to ask.
        if known := event.long_running_tool_ids:
            calls = [call for call in event.get_function_calls() if call.id in known]
            waiting |= {call.id: call for call in calls if call.id}
        if waiting:
            for response in event.get_function_responses():
                waiting.pop(response.id or "", None)
    return list(waiting.values())


def wait_for(invocation: Invocation, call: types.FunctionCall) -> Yield:
    """What the user is asked: whether a tool may run, or what a tool answers."""
    args, call_id = call.args or {}, call.id or ""
    if call.name == _CREDENTIAL:
        raise AgentFailed(
            "the agent asks for a credential, which nobody can give in a rehearsal. Mock the tool "
            "that needs it."
        )
    if call.name == _CONFIRM:
        wanted = args["originalFunctionCall"]
        return invocation.approval_wanted(
            call_id, wanted["id"], wanted["name"], wanted.get("args") or {}
        )
    if call_id.startswith(_NODE_APPROVAL):
        wanted = args["payload"]
        return invocation.approval_wanted(call_id, "", wanted["tool_name"], wanted["args"])
    return invocation.result_wanted(call_id, call.name or "", args)


def answer_to(invocation: Invocation, call: types.FunctionCall) -> types.Part:
    """The user's answer as the framework wants to hear it."""
    call_id, answers = call.id or "", invocation.index.answers
    if call_id not in answers:
        raise UserAgentFailed(f"the call {call.name!r} ({call_id}) was not answered.")
    value = answers[call_id].value
    asks = call.name == _CONFIRM or call_id.startswith(_NODE_APPROVAL)
    response = approval(value) if asks else _result(invocation, call_id, value)
    return types.Part(
        function_response=types.FunctionResponse(id=call_id, name=call.name, response=response)
    )


def _result(invocation: Invocation, call_id: str, value: Json) -> dict[str, Any]:
    """A long-running tool's result is what the user answered."""
    invocation.take_result(call_id, value)
    return value if isinstance(value, dict) else {"result": value}  # pyright: ignore[reportUnknownVariableType]
