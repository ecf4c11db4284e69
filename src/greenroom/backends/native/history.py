"""What an agent node remembers, read from the ledger: its own exchanges and those of others."""

import json
from collections.abc import Callable
from typing import Any

from greenroom.agents.agent import Agent
from greenroom.agents.context import Exchange, Scene, history
from greenroom.ledger.events import Corrected, ModelReplied, ToolFailed, ToolReturned
from greenroom.ledger.index import Step, VoiceIndex
from greenroom.ledger.messages import Message
from greenroom.ledger.paths import branch_of, root_of
from greenroom.ledger.plain import Json
from greenroom.world.world import World

# What comes from a ledger has no rings.
_WRITER = json.JSONEncoder(ensure_ascii=False, check_circular=False)
_REMEMBER_ALL = (history(),)


def conversation(
    agent: Agent, world: World, index: VoiceIndex, node: str, path: str
) -> tuple[Message, ...]:
    """All messages the agent's model is to see now: context rules first, the present last."""
    present = _exchange(index, path)
    # Most agents are asked once: then there is nothing to look for, and nothing to look through.
    is_first = len(index.invocations) == 1 and len(index.runs[node]) == 1 and not index.answers
    earlier = [] if is_first else _earlier(index, node, path)
    if not earlier and agent.context == _REMEMBER_ALL:
        return present
    state = world.ledger.fold(world.voice, branch_of(path))
    scene = Scene(earlier, state)
    return (*(message for rule in agent.context for message in rule(scene)), *present)


def as_text(value: Json) -> str:
    """A value as a model reads it."""
    return value if isinstance(value, str) else _encode(value)


def _writing() -> Callable[[Json], str]:
    """What `json.dumps` does; its inner part, which it makes for every text, is made once."""
    make: Any = getattr(json.encoder, "c_make_encoder", None)
    if make is None:
        return _WRITER.encode
    letters = json.encoder.encode_basestring  # pyright: ignore[reportAttributeAccessIssue]
    parts = make(None, _WRITER.default, letters, None, ": ", ", ", False, False, True)
    return lambda value: "".join(parts(value, 0))


_encode = _writing()


def _exchange(index: VoiceIndex, path: str) -> tuple[Message, ...]:
    """What one run of a node said and heard, beginning with its input.

    What was told once is kept: with each step only its own messages are added.
    """
    steps = index.steps.get(path, ())
    messages, told = index.told.get(path) or (_opening(index.started[path].input), 0)
    is_over = True
    if told < len(steps):
        heard = list(messages)
        for step in steps[told:]:
            is_over = _tell(heard, index, step)
        messages = tuple(heard)
    if is_over:
        index.told[path] = messages, len(steps)
    return messages


def _opening(given: Json) -> tuple[Message, ...]:
    return () if given is None or given == "" else (Message("user", as_text(given)),)


def _tell(heard: list[Message], index: VoiceIndex, step: Step) -> bool:
    """Add what a step said and heard; False if more is to come: a call under way has no result."""
    if not isinstance(step, ModelReplied):
        if isinstance(step, Corrected):
            heard.append(Message("user", step.text))
        return True
    heard.append(Message("assistant", step.text, step.calls))
    is_over = True
    for call in step.calls:
        end = index.results.get(call.id)
        if end is None:
            is_over = False
        else:
            heard.append(Message("tool", _result(end), (), call.id, call.tool))
    return is_over


def _result(end: ToolReturned | ToolFailed) -> str:
    return as_text(end.value) if isinstance(end, ToolReturned) else f"Error: {end.error}"


def _earlier(index: VoiceIndex, node: str, path: str) -> list[Exchange]:
    """Exchanges that were over before this run began, oldest first.

    A node remembers its own in full. Of exchanges it took no part in (another branch of a route
    answered, another user agent spoke) it knows what was heard: the question and the answer.
    """
    own = [run for run in index.earlier_runs(node, path) if run.path in index.ended]
    mine = [run.path for run in own]
    found: list[tuple[int, Exchange]] = [(run.seq, _exchange(index, run.path)) for run in own]
    found += [
        (seq, pair) for seq, pair, place in _heard(index, path) if not _took_part(mine, place)
    ]
    return [exchange for _, exchange in sorted(found, key=lambda entry: entry[0])]


def _took_part(mine: list[str], place: str) -> bool:
    return any(path.startswith(f"{place}/") for path in mine)


def _heard(index: VoiceIndex, path: str) -> list[tuple[int, Exchange, str]]:
    """Whole exchanges between a user and this voice: ended invocations, and rounds of a loop."""
    mine = index.started[path]
    found: list[tuple[int, Exchange, str]] = []
    for invocation in index.invocations.values():
        if not index.is_over_before(invocation.path, path):
            continue
        end = index.invocations_ended[invocation.path]
        if end.outcome != "failed":
            pair = _pair(invocation.input, end.output)
            found.append((invocation.seq, pair, invocation.path))
    for place, spoken in index.spoken.items():
        if "#" in place and spoken.seq < mine.seq and not _ended_with(index, place):
            asked = _first_input(index, place)
            found.append((spoken.seq, _pair(asked, spoken.text), place))
    return found


def _ended_with(index: VoiceIndex, place: str) -> bool:
    """Whether a loop's round lies in an invocation that is already told as a whole."""
    return root_of(place) in index.invocations_ended


def _first_input(index: VoiceIndex, place: str) -> Json:
    inside = (s for p, s in index.started.items() if p.startswith(f"{place}/"))
    first = min(inside, key=lambda s: s.seq, default=None)
    return first.input if first else None


def _pair(asked: Json, answered: Json) -> Exchange:
    question = (Message("user", as_text(asked)),) if asked not in (None, "") else ()
    return (*question, Message("assistant", as_text(answered)))
