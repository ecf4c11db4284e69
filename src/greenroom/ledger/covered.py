"""What runs have exercised of an agent, and what none of them has."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from greenroom.errors import BadInput
from greenroom.ledger.events import (
    Event,
    ModelCalled,
    NodeStarted,
    OfferedTool,
    RunStarted,
    ToolCalled,
    ToolFailed,
)
from greenroom.ledger.plain import Json, is_object
from greenroom.ledger.snapshots import Facts, as_facts, parts_of, tools_of

_PLAIN_TYPES = frozenset(
    ("int", "str", "float", "bool", "list", "dict", "tuple", "set", "Any", "Literal")
)
"""For other types, the signature does not say whether the model or the run provides the argument."""
_BEGINS = "__start__"
"""What LangGraph calls the node before all others."""


class Coverage(Struct, frozen=True):
    """How often trials reached each part of an agent; a count of 0 means never tried.

    Nodes are counted by the trials that visited them, tools and arguments by calls. `failures` counts the
    calls of a tool that ended in an error, `personas` the trials of each simulated user.
    """

    trials: int
    nodes: Mapping[str, int]
    tools: Mapping[str, int]
    arguments: Mapping[str, int]
    failures: Mapping[str, int]
    personas: Mapping[str, int]

    def untried(self, what: str) -> list[str]:
        """The `nodes`, `tools`, `arguments` or `failures` that no trial has shown."""
        counts: Mapping[str, int] = getattr(self, what)
        return [name for name, count in counts.items() if not count]

    def __str__(self) -> str:
        lines = [f"{'trials':<10} {self.trials}"]
        for what, words in _WORDS.items():
            counts: Mapping[str, int] = getattr(self, what)
            missing = self.untried(what)
            more = f"   {words}: {', '.join(missing)}" if missing else ""
            lines.append(f"{what:<10} {len(counts) - len(missing)} of {len(counts)}{more}")
        return "\n".join([*lines, f"{'personas':<10} {len(self.personas)}"])

    def data(self) -> dict[str, Json]:
        """All of it as JSON; names and meanings of these fields stay as they are."""
        return {"version": 1, **{name: getattr(self, name) for name in self.__struct_fields__}}


_WORDS = {
    "nodes": "never visited",
    "tools": "never called",
    "arguments": "never given",
    "failures": "never seen to fail",
}


def coverage(ledgers: Iterable[Iterable[Event]]) -> Coverage:
    """Count which nodes, tools, arguments, tool failures and personas these trials have exercised."""
    counts = {name: Counter[str]() for name in (*_WORDS, "personas")}
    trials = 0
    _check_ledgers(ledgers)
    for ledger in ledgers:
        _check_ledgers(ledger)
        trials += 1
        events = [*ledger]
        # These calls never reached a tool: no tool has that name, or their arguments do not fit.
        refused = {
            one.call_id for one in events if isinstance(one, ToolFailed) and one.source == "refused"
        }
        made = (one for one in events if getattr(one, "call_id", "") not in refused)
        visited = {place for event in made if (place := _counted(event, counts))}
        counts["nodes"].update(visited & counts["nodes"].keys())
    return Coverage(trials, **{name: dict(found) for name, found in counts.items()})


def _check_ledgers(given: object) -> None:
    """BadInput if this is neither a ledger nor a list of them."""
    if not isinstance(given, Iterable) or isinstance(given, str | bytes):
        raise BadInput(
            f"coverage(...) needs ledgers, but got {type(given).__name__}. Give it a list of them, such as "
            f"[result.ledger for result in report]."
        )


def _counted(event: Event, counts: Mapping[str, Counter[str]]) -> str:
    """Count one of the agent's events; return the node that it visits, if any."""
    if event.voice != "agent":
        return ""
    match event:
        case RunStarted():
            _know(event, counts)
        case ModelCalled(question=asked) if asked is not None:
            for tool in asked.tools:
                for name in _arguments(tool):
                    counts["arguments"][f"{tool.name}.{name}"] += 0
        case NodeStarted():
            return event.node
        case ToolCalled():
            counts["tools"][event.tool] += 1
            counts["failures"][event.tool] += 0
            counts["arguments"].update(f"{event.tool}.{name}" for name in event.args)
        case ToolFailed():
            counts["failures"][event.tool] += 1
        case _:
            pass
    return ""


def _know(begun: RunStarted, counts: Mapping[str, Counter[str]]) -> None:
    """Register the parts of a trial's agent, and the persona that talks to it."""
    if is_object(begun.agent):
        for node in _leaves(begun.agent):
            counts["nodes"][node] += 0
        for tool in _tools(begun.agent):
            counts["tools"][tool] += 0
    match begun.case:
        case {"user": {"person": {"persona": str(persona)}} | {"persona": str(persona)}}:
            counts["personas"][persona] += 1
        case _:
            pass


def _arguments(tool: OfferedTool) -> Iterator[str]:
    """The arguments that a model may give, if they are recorded."""
    if is_object(tool.parameters):
        given = tool.parameters.get("properties")
        yield from given if is_object(given) else ()
        return
    try:
        body = ast.parse(f"def f{tool.takes}: ...").body[0] if tool.takes else None
    except SyntaxError:  # a default value whose repr is not an expression
        return
    if isinstance(body, ast.FunctionDef):
        for given in (*body.args.posonlyargs, *body.args.args, *body.args.kwonlyargs):
            words = {getattr(one, "id", "") for one in ast.walk(given.annotation or given)} - {""}
            if given.arg != "ctx" and words <= _PLAIN_TYPES:
                yield given.arg


def _within(facts: Facts) -> list[Facts]:
    match facts.get("agents"):
        case [*agents]:
            return [*parts_of(facts).values(), *map(as_facts, agents)]
        case _:
            return [*parts_of(facts).values()]


def _leaves(facts: Facts) -> Iterator[str]:
    """The nodes that do work themselves, by the names used in events."""
    match facts.get("nodes"):
        case {**nodes}:
            yield from (str(name) for name in nodes if name != _BEGINS)
            return
        case _:
            parts = _within(facts)
    for part in parts:
        yield from _leaves(part)
    if not parts and (name := facts.get("id") or facts.get("name")):
        yield str(name)


def _tools(facts: Facts) -> Iterator[str]:
    yield from tools_of(facts.get("tools"))
    for part in _within(facts):
        yield from _tools(part)
