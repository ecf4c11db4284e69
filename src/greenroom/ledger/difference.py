"""Where two ledgers differ: per side and place, so that the order of branches does not count.

Times, ids of calls, what was spent and who answered are not differences; nor is a framework's
internal state.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec import Struct

from greenroom.ledger.attachments import named
from greenroom.ledger.events import (
    Event,
    ModelCalled,
    Noted,
    Remembered,
    RunResumed,
    RunStarted,
    ToolCalled,
    YieldOpened,
)
from greenroom.ledger.interactions import ModelInput, model_inputs
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import Message, ToolCall, Voice
from greenroom.ledger.plain import Json, short_repr
from greenroom.ledger.redaction import is_redacted, redactor

_NOT_COMPARED = (RunResumed, Remembered, Noted)
_TIMES = ("at", "seconds", "first")
_ACCIDENTS = (
    *_TIMES,
    "seq",
    "source",
    "in_place_of",
    "usage",
    "cost",
    "prices",
    "run_id",
    "trial",
    "digest",
    "n",
)

Place = tuple[Voice, str]


class Difference(Struct, frozen=True):
    """The first thing that differs at one place; later ones may only follow from it."""

    voice: Voice
    path: str
    says: str
    """What differs, in words."""
    one: int | None = None
    """The event of the first ledger, if it has one there."""
    other: int | None = None
    """The event of the second ledger, if it has one there."""

    def __str__(self) -> str:
        place = self.path or "the conversation"
        return f"{place if self.voice == 'agent' else f'{place} (user)'}: {self.says}"


def diff(
    one: Ledger, other: Ledger, was: str = "in the first", now: str = "in the second"
) -> list[Difference]:
    """Where two trials differ, at most once per side and path, in the order of the first; empty if nowhere.

    `was` and `now` are the words that name the two trials in a difference. If one of them was saved without
    its secrets, both are compared without: a secret that was removed is not a difference.
    """
    if any(is_redacted(list(ledger)) for ledger in (one, other)):
        one, other = (Ledger(redactor().value(list(ledger))) for ledger in (one, other))
    left, right = _by_place(one), _by_place(other)
    found: list[Difference] = []
    for place in [*left, *(place for place in right if place not in left)]:
        difference = _first(place, left.get(place, []), right.get(place, []), was, now)
        if difference is not None:
            found.append(difference)
    return sorted(found, key=lambda d: (d.one is None, d.one or 0, d.other or 0))


def input_difference(
    one: ModelInput, other: ModelInput, was: str = "in the first", now: str = "in the second"
) -> str:
    """The first difference between two questions to a model, in words; "" if there is none."""

    def differs(what: str, old: object, new: object) -> str:
        return f"{what}: {_short(old)} {was}, {_short(new)} {now}"

    if one.instructions != other.instructions:
        return differs("instructions", *_parting(one.instructions, other.instructions))
    for at, (old, new) in enumerate(zip(one.messages, other.messages, strict=False), start=1):
        if old.role != new.role or old.tool != new.tool:
            return differs(f"message {at} is from", old.tool or old.role, new.tool or new.role)
        if old.text != new.text:
            return differs(f"message {at} ({old.role})", *_parting(old.text, new.text))
        if old.attachments != new.attachments:
            files = [[str(one) for one in message.attachments] for message in (old, new)]
            return differs(f"message {at} has attached", *files)
        if _calls(old) != _calls(new):
            return differs(f"message {at} calls", _calls(old), _calls(new))
    short, long = sorted((one.messages, other.messages), key=len)
    if len(short) != len(long):
        more = long[len(short)]
        which = was if long is one.messages else now
        return f"only {which}: message {len(short) + 1} ({more.role}) {_short(more.text)}"
    old_tools, new_tools = ([tool.name for tool in tools] for tools in (one.tools, other.tools))
    if old_tools != new_tools:
        return differs("tools", old_tools, new_tools)
    for old, new in zip(one.tools, other.tools, strict=True):
        if old != new:
            return differs(
                f"tool {old.name!r}", old.description or old.takes, new.description or new.takes
            )
    if one.output_schema != other.output_schema:
        return differs("output schema", one.output_schema, other.output_schema)
    return ""


def _by_place(ledger: Ledger) -> dict[Place, list[tuple[Event, dict[str, Any]]]]:
    ids = _names_of_ids(ledger)
    inputs = {
        (voice, called.seq): request
        for voice in ledger.voices
        for called, request in model_inputs(ledger, voice)
    }
    found: dict[Place, list[tuple[Event, dict[str, Any]]]] = {}
    for event in ledger:
        if isinstance(event, _NOT_COMPARED):
            continue
        place = (event.voice, "/".join(_named(part, ids) for part in event.path.split("/")))
        line = found.setdefault(place, [])
        facts = _facts(event, ids, inputs.get((event.voice, event.seq)))
        # A question that was interrupted and asked again counts once.
        if isinstance(event, ModelCalled) and line and line[-1][1] == facts:
            continue
        line.append((event, facts))
    return found


def _named(part: str, ids: Mapping[str, str]) -> str:
    """A part of a path with the names of calls in place of their ids: `call:ID`, `ask@ID~2`."""
    for sign in (":", "@"):
        before, found, own = part.partition(sign)
        own, tilde, attempt = own.partition("~")
        if found and own in ids:
            return f"{before}{sign}{ids[own]}{tilde}{attempt}"
    return part


def _names_of_ids(ledger: Ledger) -> dict[str, str]:
    """A name for each call id, shared by two trials: the place of the call, and its number there."""
    names: dict[str, str] = {}
    counts: dict[tuple[str, str], int] = {}
    for event in ledger:
        if isinstance(event, ToolCalled | YieldOpened):
            own = [event.call_id] if isinstance(event, ToolCalled) else [event.yield_id]
            for one in own:
                if one and one not in names:
                    count = counts[event.voice, event.path] = (
                        counts.get((event.voice, event.path), 0) + 1
                    )
                    names[one] = f"call {count} at {event.path}"
    return names


def _facts(event: Event, ids: Mapping[str, str], request: ModelInput | None) -> dict[str, Json]:
    """An event's content, without what differs from trial to trial."""
    facts: dict[str, Any] = {"kind": event.kind}
    for name in event.__struct_fields__:
        if name in _ACCIDENTS or name in ("path", "voice"):
            continue
        facts[name] = getattr(event, name)
    if isinstance(event, RunStarted):
        facts = {"kind": event.kind, "agent": event.agent, "state": event.state}
    if isinstance(event, ModelCalled):
        facts["question"] = request
    return cast("dict[str, Any]", _renamed(msgspec.to_builtins(facts, enc_hook=str), ids))


def _renamed(value: object, ids: Mapping[str, str]) -> object:
    if isinstance(value, str):
        return ids.get(value, value)
    if isinstance(value, list | tuple):
        return [_renamed(item, ids) for item in cast("Sequence[Any]", value)]
    if isinstance(value, dict):
        items = cast("dict[str, Any]", value).items()
        return {key: _renamed(item, ids) for key, item in items}
    return value


def _first(
    place: Place,
    left: Sequence[tuple[Event, dict[str, Any]]],
    right: Sequence[tuple[Event, dict[str, Any]]],
    was: str,
    now: str,
) -> Difference | None:
    voice, path = place
    for (a, old), (b, new) in zip(left, right, strict=False):
        if old != new:
            return Difference(voice, path, _in_words((a, old), (b, new), was, now), a.seq, b.seq)
    if len(left) > len(right):
        event = left[len(right)][0]
        return Difference(voice, path, f"{event.kind} is missing {now}", event.seq, None)
    if len(right) > len(left):
        event = right[len(left)][0]
        return Difference(voice, path, f"{event.kind} is only {now}", None, event.seq)
    return None


def _in_words(
    one: tuple[Event, Mapping[str, object]],
    other: tuple[Event, Mapping[str, object]],
    was: str,
    now: str,
) -> str:
    (a, old), (b, new) = one, other
    if old["kind"] != new["kind"]:
        return f"{old['kind']} {was}, {new['kind']} {now}"
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if isinstance(a, ModelCalled) and isinstance(b, ModelCalled) and "question" in names:
        asked = [msgspec.convert(q["question"] or {}, ModelInput) for q in (old, new)]
        return f"{a.kind}: {input_difference(asked[0], asked[1], was, now)}"
    name = names[0]
    return f"{a.kind}.{name} is {_short(old.get(name))} {was}, {_short(new.get(name))} {now}"


def _calls(message: Message) -> list[ToolCall]:
    return [ToolCall(call.tool, call.args) for call in message.calls]


def _parting(old: str, new: str) -> tuple[str, str]:
    """Two strings, each from shortly before their first difference."""
    same = next(
        (at for at, pair in enumerate(zip(old, new, strict=False)) if pair[0] != pair[1]),
        min(len(old), len(new)),
    )
    start = max(0, same - 20)
    dots = "…" if start else ""
    return dots + old[start:], dots + new[start:]


def _short(value: object) -> str:
    return short_repr(named(cast("Json", value)))
