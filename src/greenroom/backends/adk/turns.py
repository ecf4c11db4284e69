"""One turn of the framework: its input, its outcome, and the pauses in which it waits for its user."""

import json
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any, cast

from google.adk.events import Event
from google.genai import types
from pydantic_core import from_json, to_json

from greenroom.backends.adk.run import FrameworkRun
from greenroom.backends.adk.state import place_of, state_changes
from greenroom.backends.adk.translation import attached_to, part_of
from greenroom.backends.adk.versions import output_of
from greenroom.backends.backend import Yield
from greenroom.backends.foreign import jsonable
from greenroom.backends.invocation import Invocation, Progress, approval
from greenroom.errors import AgentFailed, UserAgentFailed
from greenroom.ledger.attachments import Attachment, message_value
from greenroom.ledger.events import ArtifactSaved, Escalated, StateChanged, ToolReturned
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.questions import state_after

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_CONFIRM = "adk_request_confirmation"
_CREDENTIAL = "adk_request_credential"
# A node of a workflow asks for approval as for any other input, under an id that says so.
_NODE_APPROVAL = "wf_tool_confirmation:"


def message_for(invocation: Invocation, events: list[Event]) -> types.Content:
    """What the user said, or the answers to everything that waits."""
    waiting = _pending_calls(events) if invocation.resumed else []
    if not waiting:
        text = invocation.given or ""
        said = [types.Part(text=text)] if text or not invocation.attached else []
        return types.Content(role="user", parts=[*said, *map(part_of, invocation.attached)])
    return types.Content(role="user", parts=[_answer_to(invocation, call) for call in waiting])


def progress_of(
    run: FrameworkRun, events: list[Event], said: Event | None, is_data: bool
) -> Progress:
    """The progress that these events mean; `said` are the last words, which may be data."""
    # Through JSON: NaN becomes None there, and nothing is shared with the events.
    text = to_json(
        events, by_alias=True, exclude_none=True, inf_nan_mode="null", bytes_mode="base64"
    )
    history: list[Json] = from_json(text)
    waiting = tuple(_wait_for(run.invocation, call) for call in _pending_calls(events))
    if waiting:
        return Progress(history, yields=waiting, is_fresh=True)
    run.leave_all()
    if said is not None and said.error_code and not _text(said) and not attached_to(said.content):
        raise AgentFailed(f"the model gave no answer ({said.error_code}): {said.error_message}")
    output = None if said is None else _output(said, is_data)
    return Progress(history, output, is_fresh=True)


def is_last_word(event: Event) -> bool:
    """Whether a turn may end with this: words, data, or the model's failure to give any."""
    # A workflow node may have an output that is not text.
    gives = output_of(event) is not None and not event.partial
    said = _text(event) or event.error_code or gives or attached_to(event.content)
    return event.is_final_response() and bool(said)


def _output(said: Event, is_data: bool) -> Json:
    """The turn's output; the framework gives data as text, which it has validated."""
    text = _text(said)
    attached = attached_to(said.content)
    if not text and not attached and (output := output_of(said)) is not None:
        return jsonable(output)
    if not is_data or attached:
        return message_value(text, attached)
    try:
        return json.loads(text)
    except ValueError:
        return text


def record_state(run: FrameworkRun, event: Event, ignored: Collection[str] = ()) -> None:
    """Record what an event changes in the state; `ignored` keys are the framework's own."""
    delta = event.actions.state_delta
    if ignored:
        delta = {name: value for name, value in delta.items() if name not in ignored}
    if not delta:
        return
    invocation = run.invocation
    for name, value in _settled(invocation, delta).items():
        delta[name] = event.actions.state_delta[name] = value
    changes = state_changes(delta, invocation.ledger.fold(invocation.world.voice))
    if changes:
        invocation.world.record(StateChanged(path=run.last_of(event.author), changes=changes))


def record_actions(
    run: FrameworkRun, event: Event, saved: Mapping[str, Attachment | None] = _NOTHING
) -> None:
    """Record the files that an event says were saved, and that an agent left its loop."""
    world = run.invocation.world
    for name, version in event.actions.artifact_delta.items():
        path, file = run.last_of(event.author), saved.get(name)
        world.record(ArtifactSaved(path=path, name=name, version=version, attachment=file))
    if event.actions.escalate:
        world.record(Escalated(path=run.last_of(event.author), node=event.author))


def _settled(invocation: Invocation, delta: Mapping[str, Any]) -> dict[str, Any]:
    """The final state after several answers of one round changed it.

    The framework merges what each of them left; the ledger has applied them in their order.
    """
    ledger, voice, index = invocation.ledger, invocation.world.voice, invocation.index
    since = index.replied[-1].seq if index.replied else 0
    if index.changed_at < since:
        return {}
    ends = [e for e in ledger[since:] if isinstance(e, ToolReturned) and e.voice == voice]
    found: dict[str, Any] = {}
    for name, value in delta.items():
        scope, key = place_of(name)
        met = [e for e in ends if any((c.scope, c.path[0]) == (scope, key) for c in e.changes)]
        left = [state_after(ledger, e.seq, voice).get(scope, {}).get(key) for e in met]
        if len(met) > 1 and jsonable(value) in left:
            found[name] = plain(ledger.fold(voice).get(scope, {}).get(key))
    return found


def _text(event: Event) -> str:
    parts = (event.content.parts if event.content else None) or []
    return "".join(part.text for part in parts if part.text and not part.thought)


def _pending_calls(events: list[Event]) -> list[types.FunctionCall]:
    """Long-running calls without an answer so far, oldest first."""
    waiting: dict[str, types.FunctionCall] = {}
    for event in events:
        if known := event.long_running_tool_ids:
            calls = [call for call in event.get_function_calls() if call.id in known]
            waiting |= {call.id: call for call in calls if call.id}
        for response in event.get_function_responses():
            waiting.pop(response.id or "", None)
    return list(waiting.values())


def _wait_for(invocation: Invocation, call: types.FunctionCall) -> Yield:
    """What the user is asked: whether a tool may run, or what a tool answers."""
    args, call_id = call.args or {}, call.id or ""
    if call.name == _CREDENTIAL:
        raise AgentFailed(
            "the agent asks for a credential, which a rehearsal cannot give. Mock the "
            "tool that needs it."
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


def _answer_to(invocation: Invocation, call: types.FunctionCall) -> types.Part:
    """The user's answer in the framework's form."""
    call_id, answers = call.id or "", invocation.index.answers
    if call_id not in answers:
        raise UserAgentFailed(f"the call {call.name!r} ({call_id}) was not answered.")
    value = answers[call_id].value
    if call.name == _CONFIRM or call_id.startswith(_NODE_APPROVAL):
        response = approval(value)
    else:  # a long-running tool's result is what the user answered
        invocation.record_result(call_id, value)
        response = cast("dict[str, Json]", value if isinstance(value, dict) else {"result": value})
    return types.Part(
        function_response=types.FunctionResponse(id=call_id, name=call.name, response=response)
    )
