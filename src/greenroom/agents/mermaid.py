"""An agent's graph as a Mermaid flowchart, drawn from its snapshot."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import Any, cast

from greenroom.ledger.plain import Json

_ESCAPES = str.maketrans(
    {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "#": "&num;", "`": "&#96;", "\n": " "}
)
_PARTS = ("parts", "sub_agents")

Ends = tuple[list[str], list[tuple[str, str]]]
"""Where a part is entered, and where it is left, with a word for each way out."""


def mermaid(snapshot: Json) -> str:
    """The graph that a backend's `snapshot` describes; of a foreign one, the agents and tools."""
    drawing = _Drawing()
    begin = drawing.node("start", "([", "])")
    entries, exits = drawing.part(_mapping(snapshot))
    end = drawing.node("end", "([", "])")
    drawing.link([(begin, "")], entries)
    drawing.link(exits, [end])
    return "\n".join(["flowchart TD", *(f"    {line}" for line in drawing.lines)]) + "\n"


class _Drawing:
    """A chart under way: every node gets a name of its own, and words from outside are only labels."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._numbers = count()

    def node(self, label: str, opened: str = "[", closed: str = "]") -> str:
        name = f"n{next(self._numbers)}"
        self.lines.append(f'{name}{opened}"{_label(label)}"{closed}')
        return name

    def link(self, sources: Sequence[tuple[str, str]], targets: Sequence[str]) -> None:
        for source, word in sources:
            for target in targets:
                label = f'|"{_label(word)}"|' if word else ""
                self.lines.append(f"{source} -->{label} {target}")

    def part(self, facts: Mapping[str, Any]) -> Ends:
        parts = _parts(facts)
        match facts.get("kind"):
            case "sequence" if parts:
                return self._sequence(list(parts.values()))
            case "parallel" if parts:
                return self._parallel(list(parts.values()))
            case "loop" if parts:
                return self._loop(facts, parts["body"])
            case "route" if parts:
                return self._route(facts, parts)
            case "approved" if parts:
                return self._approved(facts, parts)
            case _:
                return self._leaf(facts, list(parts.values()))

    def _sequence(self, parts: list[Mapping[str, Any]]) -> Ends:
        entries, exits = self.part(parts[0])
        for part in parts[1:]:
            inner, out = self.part(part)
            self.link(exits, inner)
            exits = out
        return entries, exits

    def _parallel(self, parts: list[Mapping[str, Any]]) -> Ends:
        fork, ends = self.node("fork", "{{", "}}"), [self.part(part) for part in parts]
        join = self.node("join", "{{", "}}")
        for entries, exits in ends:
            self.link([(fork, "")], entries)
            self.link(exits, [join])
        return [fork], [(join, "")]

    def _loop(self, facts: Mapping[str, Any], body: Mapping[str, Any]) -> Ends:
        entries, exits = self.part(body)
        limit, until = facts.get("max_rounds"), facts.get("until")
        label = f"until {_decider(until)}" if until is not None else "loop"
        if limit is not None:
            label = f"{label}, at most {limit} rounds"
        again = self.node(label, "{", "}")
        self.link(exits, [again])
        waits = "the user answers" if facts.get("awaits_input") else "again"
        self.link([(again, waits)], entries)
        return entries, [(again, "done")]

    def _route(self, facts: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> Ends:
        fork = self.node(f"route on {_decider(facts.get('on'))}", "{", "}")
        exits: list[tuple[str, str]] = []
        for key, part in parts.items():
            entries, out = self.part(part)
            self.link([(fork, key)], entries)
            exits += out
        return [fork], exits

    def _approved(self, facts: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> Ends:
        fork = self.node(str(facts.get("name")), "{", "}")
        exits: list[tuple[str, str]] = []
        for key, part in parts.items():
            entries, out = self.part(part)
            self.link([(fork, "yes" if key == "body" else "no")], entries)
            exits += out
        return [fork], exits

    def _leaf(self, facts: Mapping[str, Any], below: list[Mapping[str, Any]]) -> Ends:
        brackets = ("[[", "]]") if facts.get("kind") == "step" else ("[", "]")
        name, model = facts.get("name") or facts.get("framework") or "agent", facts.get("model")
        title = f"{name} · {model}" if isinstance(model, str) and model else str(name)
        here = self.node(title, *brackets)
        for tool in _tools(facts.get("tools")):
            held = self.node(tool, "(", ")")
            self.lines.append(f"{here} -.- {held}")
        for part in below:
            self.link([(here, "")], self.part(part)[0])
        return [here], [(here, "")]


def _parts(facts: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    for name in _PARTS:
        match facts.get(name):
            case {**parts}:
                return {str(key): _mapping(part) for key, part in parts.items()}
            case [*parts]:
                return {str(key): _mapping(part) for key, part in enumerate(parts)}
            case _:
                continue
    return {}


def _tools(given: Any) -> Iterator[str]:
    """The names of tools, which some snapshots group by toolset."""
    match given:
        case str():
            yield given
        case {"name": name} | {"kind": name}:
            yield str(name)
        case [*tools]:
            for tool in tools:
                yield from _tools(tool)
        case _:
            return


def _decider(given: Any) -> str:
    """A place in the state or a query as it is; a function by its name."""
    if not isinstance(given, str):
        return str(given)
    name, _, _ = given.rpartition(":")
    return name.rpartition(".")[2] if name else given


def _mapping(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {"name": str(value)}


def _label(text: str) -> str:
    return "".join(char for char in text.translate(_ESCAPES) if char.isprintable())
