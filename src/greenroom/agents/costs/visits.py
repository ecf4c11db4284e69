"""How often the parts of a node are visited for each visit of the node: one rule for each kind of flow."""

from collections.abc import Callable, Mapping
from typing import Final, Literal

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.costs.traffic import Assumed
from greenroom.agents.flow import Flow, Loop, Parallel, Route, Sequence, Step
from greenroom.agents.graph import Graph, Node

Visits = Mapping[str, float]
"""How often each part is visited for each visit of the whole, by the part's key."""


Counts = Literal["share", "rounds"]


class Rule(Struct, frozen=True):
    """How one kind of flow visits its parts.

    `given` is what the author of the traffic says of this very node, None if nothing; `usual` is what
    holds if no run has shown it either. `guess` says in words what `usual` assumes, if it is a guess.
    """

    given: Callable[[Node, Assumed], Visits | None]
    usual: Callable[[Node, Assumed], Visits]
    guess: Callable[[Node, Assumed], str]
    counts: Counts = "share"
    """Whether the parts are visited once or not at all (or side by side), or again and again."""


class Reach(Struct, frozen=True):
    """How often a node is reached in a run: `outside` times a series of `rounds`, in each `inside` times.

    What is said in one round is sent again in the next ones, by agents that remember.
    """

    outside: float
    rounds: float
    inside: float = 1.0

    @property
    def visits(self) -> float:
        """Visits in a run."""
        return self.outside * self.rounds * self.inside

    def further(self, times: float, counts: Counts) -> "Reach":
        """How often a part is reached that is visited so many times in each visit of this one."""
        if counts == "rounds":
            return Reach(self.outside, self.rounds * times, self.inside)
        if self.rounds == 1:
            return Reach(self.outside * times, 1.0, self.inside)
        return Reach(self.outside, self.rounds, self.inside * times)


def reaches(graph: Graph, assumed: Assumed) -> tuple[dict[str, Reach], list[str]]:
    """How often every node of a graph is reached in a run, and what had to be guessed for it."""
    traffic, seen = assumed.traffic, assumed.traffic.learnt
    turns = traffic.turns
    if turns is None:
        turns = 1.0 if seen is None else seen.visits.get(graph.root.id, seen.turns) / seen.runs
    found, guesses = {graph.root.id: Reach(1.0, turns)}, list[str]()
    for node in graph.nodes():
        if not node.children:
            continue
        visits, guess = visits_of(node, assumed)
        if guess and found[node.id].visits and _asks_models(node):
            guesses.append(guess)
        counts = VISITS[type(node.flow)].counts
        for key, part in node.children.items():
            found[part.id] = found[node.id].further(visits[key], counts)
    return found, guesses


def _asks_models(node: Node) -> bool:
    return any(isinstance(one.flow, Agent) for one in Graph(node).nodes() if one is not node)


def visits_of(node: Node, assumed: Assumed) -> tuple[Visits, str]:
    """How often each part of a node is visited, and what had to be guessed for it, if anything."""
    rule = VISITS[type(node.flow)]
    if (given := rule.given(node, assumed)) is not None:
        return given, ""
    learnt = assumed.traffic.learnt
    if learnt is not None and learnt.visits.get(node.id):
        shares = {key: learnt.share(node.id, part.id) for key, part in node.children.items()}
        return {key: share or 0.0 for key, share in shares.items()}, ""
    return rule.usual(node, assumed), rule.guess(node, assumed)


def _nothing(_: Node, __: Assumed) -> None:
    return None


def _certain(_: Node, __: Assumed) -> str:
    return ""


def _each(node: Node, _: Assumed) -> Visits:
    return dict.fromkeys(node.children, 1.0)


# Loops and maps: a number of visits of the one part


def _given_number(field: str) -> Callable[[Node, Assumed], Visits | None]:
    def given(node: Node, assumed: Assumed) -> Visits | None:
        number = assumed.named(field, node)
        return None if number is None else dict.fromkeys(node.children, number)

    return given


def _usual_rounds(node: Node, assumed: Assumed) -> Visits:
    rounds = _fixed_rounds(node.flow)
    if rounds is None:
        rounds = assumed.usual("rounds")
    return dict.fromkeys(node.children, 1.0 if rounds is None else rounds)


def _fixed_rounds(flow: Flow) -> float | None:
    """The rounds of a loop that nothing ends but their number."""
    if isinstance(flow, Loop) and flow.until is None and not flow.awaits_input:
        return flow.max_rounds
    return None


def _guessed_rounds(node: Node, assumed: Assumed) -> str:
    is_known = _fixed_rounds(node.flow) is not None or assumed.usual("rounds") is not None
    return "" if is_known else f"{node.id!r} goes one round (rounds=)"


# Routes and handoffs: one of several


def _given_ways(field: str, *, all_gone: bool) -> Callable[[Node, Assumed], Visits | None]:
    def given(node: Node, assumed: Assumed) -> Visits | None:
        return assumed.ways(field, node, node.children, all_gone=all_gone)

    return given


def _evenly(node: Node, _: Assumed) -> Visits:
    return dict.fromkeys(node.children, 1 / len(node.children))


def _guessed_ways(node: Node, _: Assumed) -> str:
    return f"{node.id!r} goes each of its {len(node.children)} ways equally often (routes=)"


def _no_handoff(node: Node, _: Assumed) -> Visits:
    return dict.fromkeys(node.children, 0.0)


def _guessed_handoffs(node: Node, _: Assumed) -> str:
    return f"{node.id!r} never hands over (handoffs=)" if node.children else ""


_EVERY_PART: Final = Rule(_nothing, _each, _certain)

VISITS: Final[Mapping[type[Flow], Rule]] = {
    Step: _EVERY_PART,
    Agent: Rule(_given_ways("handoffs", all_gone=False), _no_handoff, _guessed_handoffs),
    Sequence: _EVERY_PART,
    Parallel: _EVERY_PART,
    Loop: Rule(_given_number("rounds"), _usual_rounds, _guessed_rounds, "rounds"),
    Route: Rule(_given_ways("routes", all_gone=True), _evenly, _guessed_ways),
}
