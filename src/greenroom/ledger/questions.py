"""Questions to a ledger. Each answer is computed from the events, none is stored.

They are about the agent's voice unless `voice` says otherwise; `user_view(ledger)` is the other side.
"""

import re
from bisect import bisect_left
from collections.abc import Iterable
from copy import deepcopy
from itertools import pairwise
from operator import attrgetter
from typing import TypeGuard

from msgspec import Struct, structs

from greenroom.ledger.attachments import Attachment, attachments_in, text_and_attachments
from greenroom.ledger.changes import Change, State, apply_changes, state_in, value_in
from greenroom.ledger.events import (
    IMPORTED,
    AgentSaid,
    Answered,
    ArtifactSaved,
    Event,
    InvocationEnded,
    InvocationStarted,
    ModelReplied,
    RunEnded,
    RunResumed,
    RunStarted,
    ToolCalled,
    ToolFailed,
    ToolReturned,
    Unseen,
    UserSaid,
    changes_by,
)
from greenroom.ledger.index import VoiceIndex
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message, Usage, Voice, is_blank
from greenroom.ledger.paths import branch_of
from greenroom.ledger.plain import Json, as_object, is_array, is_object, plain

TRACE = "greenroom:trace"
"""The name of the note that says which trace a trial was exported to."""
_HEX = re.compile("[0-9a-f]{32}-[0-9a-f]{16}")


class Trace(Struct, frozen=True, omit_defaults=True):
    """Where a trial was exported as spans: the ids in hexadecimal, and a link to view it."""

    trace_id: str
    span_id: str
    link: str = ""


class CallRecord(Struct, frozen=True, omit_defaults=True):
    """A tool call and how it ended."""

    tool: str
    args: dict[str, Json]
    id: str = ""
    result: Json = None
    error: str = ""
    source: str = ""
    seconds: float = 0.0
    turn: int = 0

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool


class StateStep(Struct, frozen=True, omit_defaults=True):
    """One leaf of the state, before and after."""

    scope: str
    key: str
    old: Json
    new: Json
    seq: int


def state(ledger: Ledger, voice: Voice = "agent") -> State:
    """The state by scope after the last event."""
    return deepcopy(ledger.fold(voice))


def state_after(ledger: Ledger, seq: int, voice: Voice = "agent") -> State:
    """The state by scope as it was after event `seq`."""
    return state(Ledger(ledger[: seq + 1]), voice)


def is_between_invocations(ledger: Ledger, end: int | None = None) -> bool:
    """Whether the agent's last invocation before event `end` had ended: then nothing is left in `temp`."""
    for event in reversed(ledger[: len(ledger) if end is None else end]):
        if event.voice == "agent" and isinstance(event, InvocationStarted | InvocationEnded):
            return isinstance(event, InvocationEnded)
    return False


def state_changes(ledger: Ledger, voice: Voice = "agent") -> list[StateStep]:
    """Every change of the state, with the old and the new value of its leaf."""
    found: list[StateStep] = []
    held: State = {}
    for event in ledger:
        if event.voice != voice:
            continue
        if isinstance(event, RunStarted) and event.state:
            held = state_in(event.state)
        elif isinstance(event, InvocationEnded):
            held.pop("temp", None)
        for change in () if branch_of(event.path) else changes_by(event):
            old = _leaf(held, change)
            apply_changes(held, (change,))
            found.append(StateStep(change.scope, change.key, old, _leaf(held, change), event.seq))
    return found


def _leaf(held: State, change: Change) -> Json:
    return deepcopy(value_in(held, change.scope, change.path))


def turns(ledger: Ledger) -> int:
    """How many times the user spoke: the first message is turn 1."""
    return len(ledger.index_of().rounds)


def messages(
    ledger: Ledger, voice: Voice = "agent", *, beside_calls: bool = False
) -> list[Message]:
    """The conversation as its two sides heard it; with `beside_calls` also what models said beside tool calls."""
    found: list[Message] = []
    on_the_way: Message | None = None
    for event in ledger:
        if event.voice != voice:
            continue
        if isinstance(event, UserSaid):
            found.append(Message("user", event.text, attachments=event.attachments))
        elif isinstance(event, AgentSaid):
            if on_the_way is not None and found[-1] is on_the_way and on_the_way.text == event.text:
                found.pop()  # it is the response itself
            found.append(Message("assistant", event.text, attachments=event.attachments))
        elif isinstance(event, Answered):
            found += [_answer(a.value) for a in event.answers if not a.tool]
        elif beside_calls and _is_beside_a_call(event):
            on_the_way = Message("assistant", event.text, attachments=event.attachments)
            found.append(on_the_way)
    return found


def _is_beside_a_call(event: Event) -> TypeGuard[ModelReplied]:
    return isinstance(event, ModelReplied) and bool(event.calls and not is_blank(event.text))


def _answer(value: Json) -> Message:
    text, attached = text_and_attachments(value) if is_array(value) else (str(value), ())
    return Message("user", text, attachments=attached)


def attachments(ledger: Ledger, voice: Voice | None = None) -> list[Attachment]:
    """Every attachment that a trial mentions, each once: said, given by models and tools, or saved."""
    found: dict[Attachment, None] = {}
    for event in ledger:
        if voice is None or event.voice == voice:
            found |= dict.fromkeys(_attached(event))
    return list(found)


def _attached(event: Event) -> tuple[Attachment, ...]:
    match event:
        case UserSaid() | AgentSaid() | ModelReplied():
            return event.attachments
        case ToolReturned():
            return attachments_in(event.value)
        case ArtifactSaved(attachment=Attachment() as saved):
            return (saved,)
        case _:
            return ()


def responses(ledger: Ledger) -> list[str]:
    """The agent's answers to the user, in order; what it said on the way to them is in `said`."""
    return [event.text for event in ledger.of(AgentSaid)]


def said(ledger: Ledger) -> list[str]:
    """Everything the agent said, in order: its responses, and what its models said beside tool calls.

    Chats and frameworks show both to the user.
    """
    spoken = messages(ledger, beside_calls=True)
    return [message.text for message in spoken if message.role == "assistant"]


def response(ledger: Ledger) -> str | None:
    """The agent's last words, or None if it never spoke."""
    said = ledger.of(AgentSaid)
    return said[-1].text if said else None


def tool_calls(ledger: Ledger, voice: Voice = "agent") -> list[CallRecord]:
    """The tool calls in the order they were made, each with its end."""
    index = ledger.index_of(voice)
    return [_call(called, index) for called in index.issued]


def asked_calls(ledger: Ledger, voice: Voice = "agent") -> list[CallRecord]:
    """The tool calls as in `tool_calls`, plus those that the gate refused, with the reason as their error."""
    index = ledger.index_of(voice)
    whys = {blocked.seq: blocked.why for blocked in index.blocked}
    found: list[CallRecord] = []
    for called in index.asked:
        call = _call(called, index)
        why = whys.get(called.seq)
        found.append(call if why is None else structs.replace(call, error=why, source="refused"))
    return found


def _call(called: ToolCalled, index: VoiceIndex) -> CallRecord:
    end = index.end_of(called)
    # Copies: a metric that changes its record must not change the ledger.
    return CallRecord(
        tool=called.tool,
        args=as_object(plain(called.args)),
        id=called.call_id,
        result=plain(end.value) if isinstance(end, ToolReturned) else None,
        error=end.error if isinstance(end, ToolFailed) else "",
        source="" if end is None else end.source,
        seconds=0.0 if end is None else end.seconds,
        turn=bisect_left(index.rounds, called.seq, key=attrgetter("seq")),
    )


class Spending(Struct, frozen=True, omit_defaults=True):
    """What one side's models used and cost; None where a reply did not say."""

    usage: Usage | None
    cost: float | None
    models: dict[str, int]
    """Which models answered and how often, labelled with their source unless live."""
    known_cost: float = 0.0
    """The cost of the replies with a price: equal to `cost` if that is known, else a lower bound."""

    @property
    def calls(self) -> int:
        """How often models answered."""
        return sum(self.models.values())

    def __add__(self, other: "Spending") -> "Spending":
        usages, costs = (self.usage, other.usage), (self.cost, other.cost)
        models = {**self.models}
        for name, count in other.models.items():
            models[name] = models.get(name, 0) + count
        return Spending(
            None if usages[0] is None or usages[1] is None else usages[0] + usages[1],
            None if costs[0] is None or costs[1] is None else costs[0] + costs[1],
            models,
            self.known_cost + other.known_cost,
        )


def spending_by_node(ledger: Ledger, voice: Voice = "agent") -> dict[str, Spending]:
    """What the models of each node used and cost, by the node's static id, in order of their first replies.

    They add up to `spending(ledger, voice)`: what belongs to no known node (a framework did not say,
    or calls went unseen) is under "".
    """
    models_seen = voice == "user" or "models" not in unseen(ledger)
    found: dict[str, list[ModelReplied]] = {}
    for event in ledger.index_of(voice).replied:
        found.setdefault(event.node, []).append(event)
    if not models_seen:
        found.setdefault("", [])
    return {
        node: spending_on(replies, is_whole=models_seen or node != "")
        for node, replies in found.items()
    }


def spending(ledger: Ledger, voice: Voice = "agent") -> Spending:
    """What the models of one side used and cost, and which they were."""
    models_seen = voice == "user" or "models" not in unseen(ledger)
    return spending_on(ledger.index_of(voice).replied, is_whole=models_seen)


def spending_on(replies: Iterable[ModelReplied], *, is_whole: bool) -> Spending:
    """What these replies used and cost; unknown if some replies may be missing."""
    usage: Usage | None = Usage() if is_whole else None
    cost: float | None = 0.0 if is_whole else None
    models: dict[str, int] = {}
    known = 0.0
    for event in replies:
        name = event.model if event.source == "live" else f"{event.model} ({event.source})"
        models[name] = models.get(name, 0) + 1
        price = event.paid
        known += price or 0.0
        cost = None if cost is None or price is None else cost + price
        usage = None if usage is None or event.usage is None else usage + event.usage
    return Spending(usage, cost, models, known)


def usage(ledger: Ledger, voice: Voice = "agent") -> Usage | None:
    """Tokens of all model replies, or None if a reply did not say."""
    return spending(ledger, voice).usage


def cost(ledger: Ledger, voice: Voice = "agent") -> float | None:
    """What the models cost in USD, or None if one reply's price is unknown."""
    return spending(ledger, voice).cost


def models(ledger: Ledger, voice: Voice = "agent") -> dict[str, int]:
    """Which models answered, and how often, labelled with their source unless live."""
    return spending(ledger, voice).models


def seconds(ledger: Ledger) -> float:
    """How long the trial took; time between an interruption and its resumption does not count."""
    first, last = ledger.first, ledger.last
    if first is None or last is None:
        return 0.0
    if ledger.index_of().resumed_at < 0:
        return span(first, last)
    pairs = pairwise(ledger)
    worked = (b.at - a.at for a, b in pairs if not isinstance(b, RunResumed))
    return sum(max(0.0, span) for span in worked)


def span(first: Event, last: Event) -> float:
    """Seconds from one event to another; 0 if the clock was set back."""
    return last.at - first.at if last.at > first.at else 0.0


def unseen(ledger: Ledger) -> tuple[Unseen, ...]:
    """The kinds of calls that could not be observed, so their absence here means nothing."""
    first = ledger.first
    if not isinstance(first, RunStarted):
        return ()
    if "models" in first.observed and not ledger.indexes["agent"].replied:
        return (*first.opaque, "models")
    return first.opaque


def started(ledger: Ledger) -> RunStarted | None:
    """The first event, if the ledger has the start of its trial."""
    first = ledger.first
    return first if isinstance(first, RunStarted) else None


def time_of_recording(first: Event | None) -> float | None:
    """When the answers in a ledger with this first event were given: a replay is as old as what it repeats."""
    if not isinstance(first, RunStarted):
        return None
    return first.at if first.recorded_at is None else first.recorded_at


def ended(ledger: Ledger) -> RunEnded | None:
    """The last event, if the trial has ended."""
    last = ledger.last
    return last if isinstance(last, RunEnded) else None


def is_complete(ledger: Ledger) -> bool:
    """Whether the record can be measured: the trial has ended, or a live conversation rests between two turns."""
    first, last = started(ledger), ledger.last
    if isinstance(last, RunEnded):
        return True
    if first is None or first.case is not None:
        return False
    if isinstance(last, InvocationEnded):
        return last.outcome != "failed"
    return isinstance(last, AgentSaid) and any(
        opened.type == "message" for opened in ledger.index_of().pending
    )


def is_imported(ledger: Ledger) -> bool:
    """Whether another tool recorded it, so that its times may be from several clocks."""
    return any(note.name == IMPORTED for note in ledger.index_of().noted)


def user_view(ledger: Ledger) -> list[Event]:
    """The events of the user's side."""
    return [event for event in ledger if event.voice == "user"]


def traces(ledger: Ledger) -> list[Trace]:
    """The traces that a trial was exported to: one, and one more each time it was resumed."""
    found: list[Trace] = []
    for note in ledger.index_of().noted:
        if note.name == TRACE and is_object(note.data):
            known = Trace(*[str(note.data.get(name, "")) for name in Trace.__struct_fields__])
            if _HEX.fullmatch(f"{known.trace_id}-{known.span_id}"):
                found.append(known)
    return found
