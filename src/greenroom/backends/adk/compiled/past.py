"""The ledger of a compiled flow, kept in a session of google-adk.

Each event that a compiled node yields carries what happened there, as ledger events, in its
`custom_metadata`. So the session is all that is kept: a conversation can continue in another process, and
a node remembers, sees and decides by the same facts as in a native run.

The state of the session is google-adk's own. Inside a fork each branch has its own state, which is recorded
as part of what happened there until the fork merges it.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

from google.adk.events import Event
from google.adk.sessions import Session
from google.genai import types
from msgspec.structs import replace

from greenroom.backends.adk.state import name_of
from greenroom.backends.adk.translation import said_in
from greenroom.backends.foreign import jsonable
from greenroom.ledger import events as ours
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.changes import Change, State
from greenroom.ledger.codec import decode, event_data
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, plain

FACTS = "greenroom"
"""The key under which an event keeps ledger events."""
DELETED = "greenroom_deleted"
"""The key under which an event lists the state keys that it removed; google-adk keeps them as None."""
_NOTHING: Json = {"greenroom": "nothing"}
"""Represents an output of None, which google-adk would treat as no output."""


def boxed(value: Json) -> Json:
    """An output in the form that google-adk passes on."""
    return _NOTHING if value is None else value


def given_of(node_input: Any) -> Json:
    """A node's input in the flow's form: a message of the user, or the previous output."""
    if isinstance(node_input, types.Content):
        return said_in(node_input)
    return None if node_input == _NOTHING else plain(jsonable(node_input), "what a node was given")


def metadata_of(facts: list[ours.Event], deleted: list[str]) -> dict[str, Any] | None:
    """Ledger events in the form that an event carries."""
    kept = [event_data(replace(fact, seq=-1)) for fact in facts]
    found: dict[str, Any] = {FACTS: kept} if kept else {}
    return {**found, **({DELETED: deleted} if deleted else {})} or None


def ledger_of(session: Session) -> Ledger:
    """What happened in the session so far, and the state it is in."""
    ledger = Ledger()
    state = scopes_of(session.state, _deleted(session.events))
    temporary = state.pop("temp", {})
    ledger.append(ours.RunStarted(run_id=session.id, state=plain(state)), 0.0)
    last = next((e.invocation_id for e in reversed(session.events) if _starts(e)), "")
    for event in session.events:
        for fact in _facts_of(event, ledger):
            ledger.append(fact, fact.at)
        if _starts(event) and event.invocation_id == last:
            path = f"@{len(ledger.index_of().invocations)}"
            changes = tuple(Change("temp", (key,), "set", v) for key, v in temporary.items())
            ledger.append(ours.StateChanged(path=path, changes=changes), 0.0)
    ledger.loaded_count = len(ledger)
    return ledger


def _facts_of(event: Event, ledger: Ledger) -> Iterator[ours.Event]:
    index = ledger.index_of()
    if _starts(event):
        if index.open_invocation is not None:
            yield ours.InvocationEnded(path=index.open_invocation.path, outcome="failed")
        path, given = f"@{len(index.invocations) + 1}", given_of(event.content)
        text, attachments = text_and_attachments(given)
        yield ours.UserSaid(text=text, attachments=attachments)
        yield ours.InvocationStarted(path=path, input=given)
    elif event.author == "user" and not event.node_info.path:
        answers = [
            ours.Answer(yield_id=one.id or "", value=answer_of(one.response))
            for one in event.get_function_responses()
        ]
        yield ours.Answered(answers=tuple(answers))
    facts: list[Any] = (event.custom_metadata or {}).get(FACTS, [])
    if facts:
        yield from decode([*map(json.dumps, facts), ""], "the session")


def _starts(event: Event) -> bool:
    """Whether this message of the user begins an invocation, rather than answering a wait."""
    is_said = event.author == "user" and event.content is not None and not event.node_info.path
    return is_said and not event.get_function_responses()


def answer_of(response: Mapping[str, Any] | None) -> Json:
    """The value in a function's response, which the framework wraps in a mapping."""
    given = plain(jsonable(dict(response or {})), "an answer")
    return given["result"] if isinstance(given, dict) and set(given) == {"result"} else given


def scopes_of(state: Mapping[str, Any], deleted: set[str]) -> State:
    """The state of a session by scope; a prefix that google-adk does not know is a scope too."""
    found: State = {}
    for name, value in state.items():
        if value is None and name in deleted:
            continue
        scope, colon, key = name.partition(":")
        scope, key = (scope, key) if colon and scope.isidentifier() else ("session", name)
        found.setdefault(scope, {})[key] = plain(jsonable(value), f"state {name!r}")
    return found


def _deleted(events: list[Event]) -> set[str]:
    """The names that are None in the session because they were removed."""
    found: set[str] = set()
    for event in events:
        found -= set(event.actions.state_delta)
        found |= set((event.custom_metadata or {}).get(DELETED, ()))
    return found


def delta_of(facts: list[ours.Event], state: State) -> tuple[dict[str, Any], list[str]]:
    """What `facts` changed outside of forks, as the session sees it: new values, and removed names."""
    changed = [
        change
        for fact in facts
        if not branch_of(fact.path)
        for change in getattr(fact, "changes", ())
    ]
    delta: dict[str, Any] = {}
    deleted: list[str] = []
    for change in changed:
        key = change.path[0]
        name = name_of(change.scope, key) or f"{change.scope}:{key}"
        held = state.get(change.scope, {})
        delta[name] = deepcopy(held.get(key))
        if key not in held and name not in deleted:
            deleted.append(name)
    return delta, deleted


def without_changes(fact: ours.Event) -> ours.Event:
    """The fact without its changes if the session already has them, that is, outside of forks."""
    if branch_of(fact.path) or not getattr(fact, "changes", ()):
        return fact
    return replace(fact, changes=())  # pyright: ignore[reportCallIssue]
