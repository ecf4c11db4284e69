"""One turn of the framework: what it is told, and what it came to."""

import json
from collections.abc import Collection, Mapping
from typing import Any

from google.adk.events import Event
from google.genai import types
from pydantic_core import from_json, to_json

from greenroom.backends.adk.pauses import answer_to, pending_calls, wait_for
from greenroom.backends.adk.run import FrameworkRun
from greenroom.backends.adk.state import place_of, state_changes
from greenroom.backends.adk.versions import output_of
from greenroom.backends.foreign import Invocation, Played, jsonable
from greenroom.errors import AgentFailed
from greenroom.ledger.events import StateChanged, ToolReturned
from greenroom.ledger.plain import Json, plain
from greenroom.ledger.questions import state_after


def message_for(invocation: Invocation, events: list[Event]) -> types.Content:
    """What the user said, or the answers to everything that waits."""
    waiting = pending_calls(events) if invocation.resumed else []
    if not waiting:
        text = invocation.given or ""
        return types.Content(role="user", parts=[types.Part(text=text)])
    return types.Content(role="user", parts=[answer_to(invocation, call) for call in waiting])


def played(stage: FrameworkRun, events: list[Event], said: Event | None, is_data: bool) -> Played:
    """How far the framework came by these events; `said` are its last words."""
    # Through JSON: what it has no number for is None there, and nothing is shared with the events.
    told = to_json(
        events, by_alias=True, exclude_none=True, inf_nan_mode="null", bytes_mode="base64"
    )
    history: list[Json] = from_json(told)
    waiting = tuple(wait_for(stage.invocation, call) for call in pending_calls(events))
    if waiting:
        return Played(history, yields=waiting, is_fresh=True)
    stage.leave_all()
    if said is not None and said.error_code and not _text(said):
        raise AgentFailed(f"the model gave no answer ({said.error_code}): {said.error_message}")
    output = None if said is None else _output(said, is_data)
    return Played(history, output, is_fresh=True)


def is_last_word(event: Event) -> bool:
    """Whether a turn may end with this: words, data, or the model's failure to give any."""
    return event.is_final_response() and bool(_text(event) or event.error_code or _gives(event))


def _gives(event: Event) -> bool:
    """Whether a node of a workflow came to something that was not put into words."""
    return output_of(event) is not None and not event.partial


def _output(said: Event, is_data: bool) -> Json:
    """What the turn came to; the framework gives data as text, which it has checked."""
    text = _text(said)
    if not text and (output := output_of(said)) is not None:
        return jsonable(output)
    if not is_data:
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def record_state(stage: FrameworkRun, event: Event, ignored: Collection[str] = ()) -> None:
    """Write down what an event changes in the state; `ignored` keys are the framework's own."""
    delta = event.actions.state_delta
    if ignored:
        delta = {name: value for name, value in delta.items() if name not in ignored}
    if not delta:
        return
    invocation = stage.invocation
    for name, value in _settled(invocation, delta).items():
        delta[name] = event.actions.state_delta[name] = value
    changes = state_changes(delta, invocation.ledger.fold(invocation.world.voice))
    if changes:
        invocation.world.record(StateChanged(path=stage.last_of(event.author), changes=changes))


def _settled(invocation: Invocation, delta: Mapping[str, Any]) -> dict[str, Any]:
    """What stands of state that several answers of one round changed.

    The framework merges what each of them left behind; the ledger has applied them in their order.
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
