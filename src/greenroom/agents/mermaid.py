"""An agent's graph as a Mermaid flowchart, drawn from its snapshot.

A graph in an old ledger is drawn as it was then. In addition to the order of its parts the chart can
show the data that passes from node to node, the expected cost of each node, and the path of a recorded
trial.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count
from typing import Protocol

from msgspec import Struct

from greenroom.agents.costs.money import significant_dollars
from greenroom.agents.data_links import data_links
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.ledger.recorded_way import RecordedWay
from greenroom.ledger.snapshots import (
    Facts,
    as_facts,
    members_in,
    parts_of,
    purpose_of,
    texts_in,
    tools_of,
)

_ESCAPES = str.maketrans(
    {"&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;", "#": "&num;", "`": "&#96;", "\n": " "}
)
_ROUND, _BOX, _STEP, _FORK, _ASK = ("([", "])"), ("[", "]"), ("[[", "]]"), ("{{", "}}"), ("{", "}")
_TOOL, _TRY, _CLOCK, _TAP = ("(", ")"), ("[/", "\\]"), (">", "]"), ("[\\", "\\]")
_FAR = ("[/", "/]")
_SHAPES = {"step": _STEP, "transform": _STEP, "remote": _FAR}

Shape = tuple[str, str]


class NodeCost(Protocol):
    """The expected cost of a node."""

    @property
    def cost(self) -> object:
        """The amount, in words when it is printed."""
        ...


class Costs(Protocol):
    """The expected cost of an agent, from `estimate(...)`."""

    @property
    def nodes(self) -> Mapping[str, NodeCost]:
        """By the static ids of its nodes."""
        ...


class Exit(Struct, frozen=True):
    """An exit of a part: from which box, the word on the arrow, and which node has ended then."""

    box: str
    word: str = ""
    node: str = ""


Ends = tuple[str, list[Exit]]
"""The box at which a part is entered, and its exits."""
Taken = Callable[[Exit], bool]


def mermaid(
    snapshot: Json,
    *,
    data: bool = False,
    costs: Costs | None = None,
    trial: Ledger | None = None,
) -> str:
    """A chart of the graph in a backend's `snapshot`; for another framework, of the agents and tools.

    `data` adds dotted arrows from nodes that write to nodes that read a place in the state, `costs` an
    estimate for each node. The path of a recorded `trial` is thick, and each node shows how often it was
    visited, for how long, and what that cost.
    """
    facts = as_facts(snapshot)
    way = None if trial is None else RecordedWay(trial, set(members_in(facts)))
    drawing = _Drawing(way, {} if costs is None else costs.nodes)
    begin = drawing.box("start", _ROUND)
    entry, exits = drawing.part(facts)
    is_ours = "id" in facts
    if not is_ours:
        drawing.unlisted(entry)
    end = drawing.box("end", _ROUND)
    root = drawing.name_of(facts)

    def comes_to_an_end(out: Exit) -> bool:
        if way is None or not is_ours:
            return way is not None and way.ended
        return way.left(out.node, root)

    drawing.link([Exit(begin)], entry, lambda _: way is not None and way.began)
    drawing.link(exits, end, comes_to_an_end)
    if data:
        drawing.data(facts)
    return "\n".join(["flowchart TD", *(f"    {line}" for line in drawing.finished())]) + "\n"


class _Drawing:
    """A chart in progress: every box gets its own name, and words from outside are only labels."""

    def __init__(self, way: RecordedWay | None, costs: Mapping[str, NodeCost]) -> None:
        self.lines: list[str] = []
        self._way = way
        self._costs = costs
        self._numbers = count()
        self._boxes: dict[str, str] = {}
        self._visited: list[str] = []

    def box(self, label: str, shape: Shape = _BOX, more: Iterable[str] = ()) -> str:
        name, (opened, closed) = f"n{next(self._numbers)}", shape
        words = "<br/>".join(_label(line) for line in (label, *more) if line)
        self.lines.append(f'{name}{opened}"{words}"{closed}')
        return name

    def link(self, sources: Sequence[Exit], target: str, taken: Taken) -> None:
        for source in sources:
            arrow = "==>" if self._way is not None and taken(source) else "-->"
            label = f'|"{_label(source.word)}"|' if source.word else ""
            self.lines.append(f"{source.box} {arrow}{label} {target}")

    def finished(self) -> list[str]:
        """The lines, with the visited boxes marked."""
        if not self._visited:
            return self.lines
        marked = f"class {','.join(self._visited)} visited"
        return [*self.lines, "classDef visited stroke-width:3px", marked]

    def name_of(self, facts: Facts) -> str:
        """The name of a node in a ledger and an estimate."""
        return str(facts.get("id") or facts.get("name") or "")

    def part(self, facts: Facts) -> Ends:
        """Draw a part of the graph; one of an unknown kind is a box with its parts below it."""
        parts = parts_of(facts)
        match facts.get("kind"):
            case "sequence" if parts:
                return self._sequence(facts, parts)
            case "parallel" if parts:
                return self._forked(facts, parts, "fork", "join")
            case "race" if parts:
                return self._forked(facts, parts, "race", "the first answer")
            case "map_over" if parts:
                return self._forked(facts, parts, purpose_of(facts), "the list")
            case "fallback" if parts:
                return self._fallback(facts, parts)
            case "route" if parts:
                return self._route(facts, parts)
            case "loop" if "body" in parts:
                return self._loop(facts, parts["body"])
            case "timeout" if "body" in parts:
                return self._around(facts, _CLOCK, parts["body"])
            case "apart" if "body" in parts:
                return self._around(facts, _FAR, parts["body"])
            case "approved" if "body" in parts:
                return self._approved(facts, parts)
            case "team" if parts:
                return self._team(facts, parts)
            case _:
                return self._leaf(facts, parts)

    def _began(self, facts: Facts) -> Taken:
        """Whether a part was begun; arrows from a fork into it are taken then."""
        return lambda _: self._way is not None and bool(self._way.runs(self.name_of(facts)))

    def _left(self, whole: Facts) -> Taken:
        """Whether a part was left while the whole came to its end."""
        name = self.name_of(whole)
        return lambda out: self._way is not None and self._way.left(out.node, name)

    def _sequence(self, facts: Facts, parts: Mapping[str, Facts]) -> Ends:
        (_, first), *others = parts.items()
        entry, exits = self.part(first)
        whole, cuts = self.name_of(facts), as_facts(facts.get("cuts") or {})
        for key, part in others:
            inner, out = self.part(part)
            following = self.name_of(part)
            if cut := as_facts(cuts.get(key) or {}):
                exits = [Exit(e.box, e.word or f"by {cut.get('by')}", e.node) for e in exits]

            def goes_on(before: Exit, following: str = following) -> bool:
                return self._way is not None and self._way.went_on(before.node, following, whole)

            self.link(exits, inner, goes_on)
            exits = out
        return entry, exits

    def _forked(self, facts: Facts, parts: Mapping[str, Facts], fork: str, join: str) -> Ends:
        name, begin = self.name_of(facts), self._structure(facts, fork, _FORK)
        ends = [(part, *self.part(part)) for part in parts.values()]
        over = self.box(join, _FORK)
        for part, entry, exits in ends:
            self.link([Exit(begin)], entry, self._began(part))
            counts = facts.get("kind") != "race" or self._wins(part, name)
            left = self._left(facts)
            self.link(exits, over, left if counts else _never)
            if facts.get("kind") == "map_over":
                empty = self._way is not None and self._way.had_nothing(self.name_of(part), name)
                self.link([Exit(begin, "none")], over, lambda _, empty=empty: empty)
        return begin, [Exit(over, node=name)]

    def _wins(self, part: Facts, race: str) -> bool:
        return self._way is not None and self._way.won(self.name_of(part), race)

    def _fallback(self, facts: Facts, parts: Mapping[str, Facts]) -> Ends:
        begin, exits = self._structure(facts, "try", _TRY), list[Exit]()
        for number, part in enumerate(parts.values()):
            entry, out = self.part(part)
            word = "if that fails" if number else "first"
            self.link([Exit(begin, word)], entry, self._began(part))
            exits += out
        return begin, exits

    def _around(self, facts: Facts, shape: Shape, body: Facts) -> Ends:
        """Draw the frame of one part: how long it may work, or where it runs."""
        begin = self._structure(facts, purpose_of(facts), shape)
        entry, exits = self.part(body)
        self.link([Exit(begin)], entry, self._began(body))
        return begin, exits

    def _approved(self, facts: Facts, parts: Mapping[str, Facts]) -> Ends:
        called = str(facts.get("name") or "")
        begin = self._structure(facts, called, _ASK, [purpose_of(facts)])
        exits: list[Exit] = []
        yes = "yes, or not asked" if facts.get("when") is not None else "yes"
        for key, part in parts.items():
            entry, out = self.part(part)
            self.link([Exit(begin, yes if key == "body" else "no")], entry, self._began(part))
            exits += out
        return begin, exits

    def _loop(self, facts: Facts, body: Facts) -> Ends:
        name, (entry, exits) = self.name_of(facts), self.part(body)
        inner, way = self.name_of(body), self._way
        went = {out: way is not None and bool(way.finished(out.node)) for out in exits}
        again = self._structure(facts, purpose_of(facts), _ASK, visited=any(went.values()))
        self.link(exits, again, went.__getitem__)
        waits = "the user answers" if facts.get("awaits_input") else "again"
        self.link(
            [Exit(again, waits)], entry, lambda _: way is not None and way.went_again(inner, name)
        )
        return entry, [Exit(again, "done", name)]

    def _route(self, facts: Facts, parts: Mapping[str, Facts]) -> Ends:
        fork = self._structure(facts, purpose_of(facts), _ASK)
        exits: list[Exit] = []
        for key, part in parts.items():
            entry, out = self.part(part)
            self.link([Exit(fork, key)], entry, self._began(part))
            exits += out
        return fork, exits

    def _structure(
        self,
        facts: Facts,
        label: str,
        shape: Shape,
        more: Iterable[str] = (),
        *,
        visited: bool = True,
    ) -> str:
        """The box of a node that only leads to others."""
        box, name = self.box(label, shape, more), self.name_of(facts)
        self._boxes.setdefault(name, box)
        if visited and self._way is not None and self._way.runs(name):
            self._visited.append(box)
        return box

    def _leaf(self, facts: Facts, below: Mapping[str, Facts]) -> Ends:
        here = self._box_of(facts)
        exits = [Exit(here, node=self.name_of(facts))]
        for part in below.values():
            entry, _ = self.part(part)
            self.link([Exit(here)], entry, self._began(part))
        return here, exits

    def _box_of(self, facts: Facts) -> str:
        """An agent or a step, with its tools next to it."""
        name, kind = self.name_of(facts), facts.get("kind")
        shape = _TAP if facts.get("passes") else _SHAPES.get(str(kind), _BOX)
        called, model = facts.get("name") or facts.get("framework") or "agent", facts.get("model")
        title = f"{called} · {model}" if isinstance(model, str) and model else str(called)
        where = [str(facts.get("url"))] if kind == "remote" else []
        here = self.box(title, shape, [*where, *self._figures(name)])
        self._boxes.setdefault(name, here)
        if self._way is not None and self._way.runs(name):
            self._visited.append(here)
        for tool in tools_of(facts.get("tools")):
            calls = 0 if self._way is None else self._way.calls(name, tool)
            held = self.box(tool, _TOOL, [_counted(calls, "call")] if calls else ())
            self.lines.append(f"{here} -.- {held}")
        return here

    def _team(self, facts: Facts, parts: Mapping[str, Facts]) -> Ends:
        """Draw agents that may hand the conversation to each other; each may answer."""
        boxes = {key: self._box_of(part) for key, part in parts.items()}
        for key, part in parts.items():
            name = self.name_of(part)
            for to in texts_in(part.get("handoffs")):
                if to in boxes:
                    hands = self._way is not None and self._way.handed_over(name, to)
                    self.link(
                        [Exit(boxes[key], "hands over")], boxes[to], lambda _, hands=hands: hands
                    )
        leader = str(facts.get("name"))
        exits = [Exit(boxes[key], node=self.name_of(part)) for key, part in parts.items()]
        return boxes.get(leader, next(iter(boxes.values()))), exits

    def _figures(self, name: str) -> Iterator[str]:
        """The expected cost of a node, and what happened in it."""
        if name in self._costs:
            yield f"≈ {self._costs[name].cost}"
        if self._way is None:
            return
        visits = self._way.runs(name)
        if not visits:
            return
        found = [_counted(len(visits), "visit")]
        for number, word in (
            (self._way.failures(name), "failed"),
            (self._way.unfinished(name), "not finished"),
        ):
            found += [f"{number} {word}"] if number else []
        found.append(_seconds(self._way.seconds(name)))
        spent = self._way.spending(name)
        if spent is not None:
            found.append("cost unknown" if spent.cost is None else significant_dollars(spent.cost))
        yield " · ".join(found)

    def unlisted(self, entry: str) -> None:
        """Nodes that a trial visited and the snapshot does not list, as some frameworks' do."""
        for name in [] if self._way is None else self._way.nodes:
            if name not in self._boxes:
                self._boxes[name] = box = self.box(name, _BOX, self._figures(name))
                self._visited.append(box)
                self.link([Exit(entry)], box, lambda _: True)

    def data(self, facts: Facts) -> None:
        """Add the data links, dotted."""
        for link in data_links(facts):
            writer, reader = self._boxes.get(link.writer), self._boxes.get(link.reader)
            if writer is not None and reader is not None:
                place = link.place.removeprefix("session.")
                words = f"{place}, next turn" if link.later else place
                self.lines.append(f'{writer} -.->|"{_label(words)}"| {reader}')


def _never(_: Exit) -> bool:
    return False


def _seconds(seconds: float) -> str:
    if seconds >= 1:
        return f"{seconds:.3g} s" if seconds < 1000 else f"{seconds:.0f} s"
    return f"{seconds * 1000:.2f}".rstrip("0").rstrip(".") + " ms"


def _counted(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _label(text: str) -> str:
    return "".join(char for char in text.translate(_ESCAPES) if char.isprintable())
