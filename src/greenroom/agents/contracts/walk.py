"""The walk over a graph: what is known about the state wherever a node reads it."""

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from msgspec import Struct

from greenroom.agents.contracts.access import Read
from greenroom.agents.contracts.effects import Effect, Known, Outcome
from greenroom.agents.contracts.places import Places
from greenroom.agents.contracts.rules import RULES, Rules, Site, rule_for
from greenroom.agents.graph import Graph, Node
from greenroom.ledger.plain import Json, is_object


class Given(Struct, frozen=True):
    """What a run begins with: its state by scope, and what outside the graph may change it."""

    state: Mapping[str, Mapping[str, Json]] = {}
    others: tuple[str, ...] = ()
    modalities: tuple[str, ...] = ()
    """What the user says and sends: text, images, ..."""

    @property
    def places(self) -> frozenset[str]:
        """The places that hold a value."""
        return frozenset(_places(self.state))


class Visit(Struct, frozen=True):
    """A node that reads a place of the state, and what is known about that place."""

    node: Node
    read: Read
    known: Known


class DataFlow(Struct, frozen=True):
    """The findings of a walk."""

    visits: tuple[Visit, ...]
    outcomes: Mapping[str, Outcome]
    """What each node does to the state, by its static id."""
    end: Effect
    """What one turn does to the state."""
    begins: Known
    """What is known where a turn begins."""


def data_flow(graph: Graph, given: Given | None = None) -> DataFlow:
    """The walk over a graph that begins with this state."""
    begun = given or Given()
    return _walked(graph, begun.places, begun.others)


@lru_cache(maxsize=64)
def _walked(graph: Graph, places: frozenset[str], others: tuple[str, ...]) -> DataFlow:
    return walk(graph, places, others)


def walk(
    graph: Graph,
    given: frozenset[str],
    others: tuple[str, ...] = (),
    rules: Rules = RULES,
    forgotten: tuple[str, ...] = ("temp",),
) -> DataFlow:
    """The walk over a graph by these rules, one for each kind of node.

    `forgotten` are the scopes that are empty again when a turn begins.
    """
    # Every place that a node of the graph looks at.
    nowhere, found = Places(frozenset()), set[str]()
    for node in graph.nodes():
        at = Site(node, dict.fromkeys(node.children, Outcome()), nowhere)
        found |= {read.place for read, _ in rule_for(node.flow, rules).reads(at, Known())}
    places = Places(given | frozenset(found))
    outcomes: dict[str, Outcome] = {}
    end = _outcome(graph.root, places, rules, outcomes).done
    begins = Known(given, dict.fromkeys(given, frozenset()), frozenset(others))
    if not graph.awaits_input:
        # A turn may be the first or come after others.
        gone = frozenset(place for scope in forgotten for place in places.in_scope(scope))
        begins = begins.repeated(end.then(Effect(drops=gone, may_drop=gone)))
    visits = tuple(_visits(graph.root, begins, outcomes, places, rules))
    return DataFlow(visits, outcomes, end, begins)


def _outcome(node: Node, places: Places, rules: Rules, outcomes: dict[str, Outcome]) -> Outcome:
    """What a node and all nodes below it do to the state, each computed once."""
    parts = {k: _outcome(child, places, rules, outcomes) for k, child in node.children.items()}
    found = outcomes[node.id] = rule_for(node.flow, rules).outcome(Site(node, parts, places))
    return found


def _visits(
    node: Node, known: Known, outcomes: Mapping[str, Outcome], places: Places, rules: Rules
) -> Iterator[Visit]:
    """What is read below a node, in the order of the graph."""
    parts = {key: outcomes[child.id] for key, child in node.children.items()}
    rule, at = rule_for(node.flow, rules), Site(node, parts, places)
    for read, there in rule.reads(at, known):
        yield Visit(node, read, there)
    for key, entry in rule.entries(at, known).items():
        yield from _visits(node.children[key], entry, outcomes, places, rules)


def _places(state: Mapping[str, Any]) -> Iterable[str]:
    """The places of a state, including those inside objects."""
    waiting = [(scope, held) for scope, held in state.items() if is_object(held)]
    while waiting:
        base, held = waiting.pop()
        for key, value in held.items():
            here = f"{base}.{key}"
            yield here
            if is_object(value):
                waiting.append((here, value))
