"""Tools answered by a model: the calls, its answers, and the state it kept."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NoReturn

from msgspec import Struct

from greenroom.errors import NotFound
from greenroom.ledger.events import Event, ModelCalled, ModelFailed, ModelReplied, ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, as_object, is_object
from greenroom.ledger.questions import started

SIMULATED = "tools simulated by "
"""The first words of the note on a result that depends on simulated tools."""
_NODE = "simulated:"
_FENCED = re.compile(r"```(?:json)?\s*(\{.*\})\s*```", re.DOTALL | re.IGNORECASE)
_WRONG = (
    'it must be one JSON object with "state" and either "result" or "error", with no other keys'
)


class ToolAnswer(Struct, frozen=True):
    """What a simulated tool returns or fails with, and the state of its world from then on."""

    state: dict[str, Json]
    result: Json = None
    error: str = ""


class SimulatedCall(Struct, frozen=True):
    """A call that a model answered, and its answer, unparsed."""

    called: ToolCalled
    reply: ModelReplied


def node_of(name: str) -> str:
    """The node under which the model of a simulated world is asked."""
    return f"{_NODE}{name}"


def place_of(path: str, call_id: str) -> str:
    """Where the model is asked about a call."""
    return f"{path}/call:{call_id}/simulated"


def is_simulation(event: Event) -> bool:
    """Whether an event is about asking a model for the answer of a tool."""
    is_asking = isinstance(event, ModelCalled | ModelReplied | ModelFailed)
    return is_asking and event.node.startswith(_NODE)


def read_answer(text: str) -> ToolAnswer:
    """The answer that a model gave for a tool; ValueError says what is wrong with it."""
    fenced = _FENCED.fullmatch(text.strip())
    try:
        found: Any = json.loads(fenced[1] if fenced else text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError(_WRONG) from None
    if not is_object(found) or "state" not in found:
        raise ValueError(_WRONG)
    if not is_object(state := found["state"]):
        raise ValueError('"state" must be an object')
    error = found.get("error")
    # Models like to fill in every key that the prompt mentions.
    answers = [key for key in ("result", "error") if found.get(key) is not None] or ["result"]
    if len(answers) > 1 or found.keys() - {"state", "result", "error"} or answers[0] not in found:
        raise ValueError(_WRONG)
    if answers == ["error"] and not (isinstance(error, str) and error.strip()):
        raise ValueError('"error" must be a string')
    return ToolAnswer(state, found.get("result"), error if isinstance(error, str) else "")


def _no_number(_: str) -> NoReturn:
    raise ValueError("NaN and Infinity are not JSON")


def simulated_calls(ledger: Ledger, name: str = "") -> list[SimulatedCall]:
    """The calls that models answered, in the order of the answers; with a name, only those of one world.

    If a call was asked about again, the last answer counts.
    """
    found: dict[int, SimulatedCall] = {}
    for one in _replies(ledger):
        if not name or one.reply.node == node_of(name):
            found.pop(one.called.seq, None)
            found[one.called.seq] = one
    return list(found.values())


def simulated_tools(ledger: Ledger) -> dict[str, list[str]]:
    """The tools that models answered for, each with the names of these models."""
    found: dict[str, list[str]] = {}
    for one in _replies(ledger) if "user" in ledger.indexes else ():
        models = found.setdefault(one.called.tool, [])
        if one.reply.model not in models:
            models.append(one.reply.model)
    return found


def unanswered(ledger: Ledger) -> list[str]:
    """The tools that a model has yet to answer for, without calls that the agent did not wait for."""
    tools: dict[str, str] = {}
    asked: dict[str, str] = {}
    for event in ledger:
        if isinstance(event, ToolCalled):
            tools[place_of(event.path, event.call_id)] = event.tool
        elif is_simulation(event):
            if isinstance(event, ModelCalled):
                asked[event.path] = tools.get(event.path, "a tool")
            else:
                asked.pop(event.path, None)
        elif isinstance(event, ModelCalled) and asked:
            asked = {p: t for p, t in asked.items() if not p.startswith(f"{event.path}/call:")}
    is_closed = ledger.index_of().is_closed
    return [tool for path, tool in asked.items() if not is_closed(path)]


def _replies(ledger: Iterable[Event]) -> Iterator[SimulatedCall]:
    calls: dict[str, ToolCalled] = {}
    for event in ledger:
        if isinstance(event, ToolCalled):
            calls[place_of(event.path, event.call_id)] = event
        elif isinstance(event, ModelReplied) and is_simulation(event) and event.path in calls:
            yield SimulatedCall(calls[event.path], event)


def simulated_state(ledger: Ledger, *, after: str = "", name: str = "") -> dict[str, Json]:
    """The state of a simulated world at the end of a trial, or after the call with the id `after`.

    `name` is needed only where a case has several worlds.
    """
    worlds = _worlds(ledger)
    if name not in worlds and (name or len(worlds) != 1):
        known = f"it has {sorted(worlds)}" if worlds else "no tool of its case is simulated"
        raise NotFound(f"the ledger has no simulated world {name!r}: {known}.")
    name = name or next(iter(worlds))
    state = as_object(worlds[name].get("state", {}))
    calls = simulated_calls(ledger, name)
    last = [i for i, one in enumerate(calls) if one.called.call_id == after]
    if after and not last:
        raise NotFound(f"no call {after!r} was answered in the simulated world {name!r}.")
    for one in calls[: last[-1] + 1] if last else calls:
        state = state_after_call(one, state)
    return state


def state_after_call(one: SimulatedCall, before: dict[str, Json]) -> dict[str, Json]:
    """The state that an answer leaves; one that cannot be read changes nothing."""
    try:
        return read_answer(one.reply.text).state
    except ValueError:
        return before


def _worlds(ledger: Ledger) -> dict[str, Mapping[str, Json]]:
    first = started(ledger)
    case: object = first.case if first is not None else None
    found: dict[str, Mapping[str, Json]] = {}
    for world in _simulated_in(case.get("mocks") if is_object(case) else None):
        found[str(world.get("name", WORLD))] = world
    return found


WORLD = "world"
"""The name of a simulated world that was given none."""


def _simulated_in(data: Json) -> Iterator[Mapping[str, Json]]:
    """Every simulated world in the data of mocks, which may hold others."""
    if is_object(data):
        if is_object(world := data.get("simulated")):
            yield world
        for key, part in data.items():
            if key != "value":
                yield from _simulated_in(part)
    elif isinstance(data, list):
        for part in data:
            yield from _simulated_in(part)
