"""Ledgers with parts removed, as a recorder that could not see those parts would have written them."""

from collections.abc import Collection
from typing import get_args

from msgspec import structs

from greenroom.ledger.events import (
    AgentSaid,
    Answered,
    Decided,
    Event,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelFailed,
    ModelReplied,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    RunStarted,
    StateChanged,
    ToolBlocked,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Unseen,
    UserSaid,
    changes_by,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall

_GONE: dict[Unseen, tuple[type[Event], ...]] = {
    "models": (ModelCalled, ModelReplied, ModelFailed),
    "tools": (ToolCalled, ToolReturned, ToolFailed, ToolBlocked),
    "words": (AgentSaid,),
    "state": (StateChanged,),
    "nodes": (NodeStarted, NodeEnded, NodeFailed, Decided),
}
"""The events that are missing altogether."""


def unseen_in(ledger: Ledger, unseen: Collection[Unseen]) -> Ledger:
    """The ledger without the parts that could not be seen."""
    lacks = set(unseen)
    gone = tuple(kind for name in lacks for kind in _GONE.get(name, ()))
    found: list[Event] = []
    for event in ledger:
        kept = event
        if isinstance(event, gone):
            # A recorder that does not see the part that changed the state may still see the state.
            changes = changes_by(event)
            if not changes or "state" in lacks:
                continue
            kept = StateChanged(changes=changes, at=event.at)
        kept = _without(kept, lacks)
        found.append(structs.replace(kept, seq=-1, at=0.0 if "times" in lacks else kept.at))
    return Ledger(found)


def _without(event: Event, lacks: set[Unseen]) -> Event:
    """An event without the parts that could not be seen."""
    match event:
        case RunStarted():
            known = tuple(name for name in get_args(Unseen) if name in lacks)
            return structs.replace(
                event, opaque=known, state=None if "state" in lacks else event.state
            )
        case ModelCalled():
            is_whole = lacks.isdisjoint(("words", "user", "args", "results"))
            event = structs.replace(event, question=event.question if is_whole else None)
            return structs.replace(event, node="") if "nodes" in lacks else event
        case ModelReplied():
            return _reply(event, lacks)
        case ToolCalled() | ToolBlocked() if "args" in lacks:
            return structs.replace(event, args={})
        case ToolReturned():
            event = structs.replace(event, value=None) if "results" in lacks else event
            event = structs.replace(event, seconds=0.0) if "times" in lacks else event
            lost = structs.replace(event, changes=(), settled=(), asks=())
            return lost if "state" in lacks else event
        case ToolFailed() if "results" in lacks:
            return structs.replace(event, error="", error_type="")
        case UserSaid() | Answered():
            event = structs.replace(event, changes=()) if "state" in lacks else event
            said = isinstance(event, UserSaid) and "user" in lacks
            return structs.replace(event, text="", attachments=()) if said else event
        case NodeEnded():
            output = None if lacks & {"words", "results"} else event.output
            changes = () if "state" in lacks else event.changes
            return structs.replace(event, output=output, changes=changes)
        case InvocationStarted() if "user" in lacks:
            return structs.replace(event, input=None)
        case InvocationEnded() if "words" in lacks:
            return structs.replace(event, output=None)
        case _:
            return event


def _reply(event: ModelReplied, lacks: set[Unseen]) -> ModelReplied:
    calls = () if "tools" in lacks else event.calls
    if "args" in lacks:
        calls = tuple(ToolCall(call.tool, {}, call.id) for call in calls)
    event = structs.replace(event, calls=calls)
    if "words" in lacks:
        event = structs.replace(event, text="")
    if "nodes" in lacks:
        event = structs.replace(event, node="")
    return structs.replace(event, seconds=0.0, first=None) if "times" in lacks else event
