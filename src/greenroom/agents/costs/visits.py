"""How often the parts of a node are visited for each visit of the node: one rule for each kind of flow."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, Literal

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.approvals import Approved
from greenroom.agents.boundaries import Apart
from greenroom.agents.costs.traffic import Assumed
from greenroom.agents.flow import Fallback, Flow, Parallel, Step
from greenroom.agents.flow import Sequence as InOrder
from greenroom.agents.forks import MapOver, Race
from greenroom.agents.graph import Graph, Node
from greenroom.agents.guards import Timeout
from greenroom.agents.handoffs import Team
from greenroom.agents.remote import Remote
from greenroom.agents.routes import Loop, Route
from greenroom.agents.transforms import Transform

Visits = Mapping[str, float]
"""How often each part is visited for each visit of the whole, by the part's key."""


Counts = Literal["share", "rounds"]


class Rule(Struct, frozen=True):
    """How one kind of flow visits its parts.

    `given` is what the author of the traffic says about this very node, None if nothing; `usual` is the
    default if no trial has shown it either. `guess` says in words what `usual` assumes, if it is a guess.
    """

    given: Callable[[Node, Assumed], Visits | None]
    usual: Callable[[Node, Assumed], Visits]
    guess: Callable[[Node, Assumed], str]
    counts: Counts = "share"
    """"share": parts are visited once, not at all, or side by side; "rounds": again and again."""
    least: Callable[[Node, Sequence[int]], int] = lambda _, calls: sum(calls)
    """How many calls there are at least, from how many there are at least in each part."""


class Reach(Struct, frozen=True):
    """How often a node is reached in a conversation: `outside` times a series of `rounds`, in each `inside` times.

    What is said in one round is sent again in the next ones, by agents that remember.
    """

    outside: float
    rounds: float
    inside: float = 1.0

    @property
    def visits(self) -> float:
        """Visits in a conversation."""
        return self.outside * self.rounds * self.inside

    def further(self, times: float, counts: Counts) -> "Reach":
        """How often a part is reached that is visited this many times in each visit of this one."""
        if counts == "rounds":
            return Reach(self.outside, self.rounds * times, self.inside)
        if self.rounds == 1:
            return Reach(self.outside * times, 1.0, self.inside)
        return Reach(self.outside, self.rounds, self.inside * times)


def reaches(graph: Graph, assumed: Assumed) -> tuple[dict[str, Reach], list[str]]:
    """How often every node of a graph is reached in a conversation, and what had to be guessed for it."""
    traffic, seen = assumed.traffic, assumed.traffic.learnt
    turns = traffic.turns
    if turns is None:
        turns = 1.0 if seen is None else seen.visits.get(graph.root.id, seen.turns) / seen.trials
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


def least_calls(node: Node) -> int:
    """How often models are asked at least in a visit that does not fail."""
    parts = [least_calls(part) for part in node.children.values()]
    return VISITS[type(node.flow)].least(node, parts)


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


Spread = Callable[[Node, float], Visits]
"""How often each part is visited, by the one number that a kind of flow has in the traffic."""


def _by_number(
    field: str,
    spread: Spread,
    otherwise: float,
    guess: str,
    *,
    counts: Counts = "share",
    fixed: Callable[[Flow], float | None] = lambda _: None,
    least: Callable[[Node, Sequence[int]], int],
) -> Rule:
    """The rule of a kind whose visits follow from one number of the traffic, or from the flow itself."""

    def given(node: Node, assumed: Assumed) -> Visits | None:
        number = assumed.named(field, node)
        return None if number is None else spread(node, number)

    def known(node: Node, assumed: Assumed) -> float | None:
        number = fixed(node.flow)
        return assumed.usual(field) if number is None else number

    def usual(node: Node, assumed: Assumed) -> Visits:
        number = known(node, assumed)
        return spread(node, otherwise if number is None else number)

    def guessed(node: Node, assumed: Assumed) -> str:
        return "" if known(node, assumed) is not None else f"{node.id!r} {guess} ({field}=)"

    return Rule(given, usual, guessed, counts, least)


def _so_often(node: Node, number: float) -> Visits:
    return dict.fromkeys(node.children, number)


def _one_after_another(node: Node, failing: float) -> Visits:
    """Each part is tried as often as the one before it fails; failed tries are paid for too."""
    return {key: failing**tries for tries, key in enumerate(node.children)}


def _approved(node: Node, share: float) -> Visits:
    return {key: share if key == "body" else 1 - share for key in node.children}


def _fixed_rounds(flow: Flow) -> float | None:
    """The rounds of a loop that only their number ends."""
    if isinstance(flow, Loop) and flow.until is None and not flow.awaits_input:
        return flow.max_rounds
    return None


# Routes and handoffs: one of several


def _given_routes(node: Node, assumed: Assumed) -> Visits | None:
    return assumed.ways("routes", node, node.children)


def _evenly(node: Node, _: Assumed) -> Visits:
    return dict.fromkeys(node.children, 1 / len(node.children))


def _guessed_ways(node: Node, _: Assumed) -> str:
    return f"{node.id!r} goes each of its {len(node.children)} ways equally often (routes=)"


def _given_handoffs(node: Node, assumed: Assumed) -> Visits | None:
    others = [name for name in node.children if name != node.segment]
    given = assumed.ways("handoffs", node, others, all_gone=False)
    return None if given is None else {node.segment: 1.0, **given}


def _no_handoff(node: Node, _: Assumed) -> Visits:
    return {name: float(name == node.segment) for name in node.children}


def _guessed_handoffs(node: Node, _: Assumed) -> str:
    return f"{node.id!r} never hands over (handoffs=)"


_EVERY_PART: Final = Rule(_nothing, _each, _certain)

VISITS: Final[Mapping[type[Flow], Rule]] = {
    Step: _EVERY_PART,
    Transform: _EVERY_PART,
    Remote: _EVERY_PART,
    Agent: Rule(_nothing, _each, _certain, least=lambda _, __: 1),
    Team: Rule(_given_handoffs, _no_handoff, _guessed_handoffs, least=lambda _, __: 1),
    InOrder: _EVERY_PART,
    Parallel: _EVERY_PART,
    # The losers are paid for too, if they have got as far as asking.
    Race: Rule(_nothing, _each, _certain, least=lambda _, calls: min(calls)),
    Timeout: _EVERY_PART,
    Apart: _EVERY_PART,
    Loop: _by_number(
        "rounds",
        _so_often,
        1.0,
        "goes one round",
        counts="rounds",
        fixed=_fixed_rounds,
        least=lambda node, calls: int(_fixed_rounds(node.flow) or 1) * calls[0],
    ),
    MapOver: _by_number("items", _so_often, 1.0, "goes over one item", least=lambda _, __: 0),
    Fallback: _by_number(
        "fallbacks",
        _one_after_another,
        0.0,
        "never falls back",
        least=lambda _, calls: min(calls),
    ),
    Approved: _by_number(
        "approvals",
        _approved,
        1.0,
        "is always approved",
        least=lambda _, calls: min(calls) if len(calls) > 1 else 0,
    ),
    Route: Rule(
        _given_routes,
        _evenly,
        _guessed_ways,
        least=lambda _, calls: min(calls),
    ),
}
"""Every kind of flow, and how often its parts are visited."""
