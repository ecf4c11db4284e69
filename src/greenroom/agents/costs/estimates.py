"""What an agent will cost before it runs: visits × calls × tokens × price, node by node."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.costs.model_calls import Asking
from greenroom.agents.costs.money import Amount, PriceList, Rate, rates_of, total
from greenroom.agents.costs.seen import Seen
from greenroom.agents.costs.tables import Beside, beside, estimate_table
from greenroom.agents.costs.traffic import Assumed, Traffic
from greenroom.agents.costs.visits import reaches
from greenroom.agents.flow import Flow
from greenroom.agents.graph import Graph, Node, compile_flow
from greenroom.agents.remote import Remote
from greenroom.errors import BadAgent
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json
from greenroom.models.prices import Price

_NO_TRAFFIC: Final = Traffic()


class NodeEstimate(Struct, frozen=True, kw_only=True):
    """The expected model calls of one node in a conversation, and their cost."""

    node: str
    agent: str
    visits: float
    calls: float
    models: Mapping[str, float]
    """The calls by model."""
    tokens_in: float | None
    tokens_out: float | None
    cost: Amount

    @property
    def usd(self) -> float | None:
        """What a conversation costs here; None if that is unknown."""
        return self.cost.usd

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is missing to know the cost."""
        return self.cost.unknown


class Estimate(Struct, frozen=True, kw_only=True):
    """The expected cost of an agent: in total and by node, for one conversation and, if `conversations_per_day` is known, for a day."""

    nodes: Mapping[str, NodeEstimate]
    """By static id, in the order of the graph; only those that ask models, here or elsewhere."""
    conversations_per_day: float | None = None
    trials_seen: int = 0
    """How many earlier trials it is based on."""
    guesses: tuple[str, ...] = ()
    """The assumptions, where nothing was given or seen."""

    @property
    def cost(self) -> Amount:
        """The cost of a conversation, and which parts of it are unknown."""
        return total(node.cost for node in self.nodes.values())

    @property
    def usd(self) -> float | None:
        """What a conversation costs; None if a part of it is unknown."""
        return self.cost.usd

    @property
    def at_least(self) -> float:
        """What the known part of a conversation costs."""
        return self.cost.at_least

    @property
    def unknown(self) -> tuple[str, ...]:
        """What is missing to know the cost, such as prices, each named once."""
        return self.cost.unknown

    @property
    def usd_per_day(self) -> float | None:
        """What a day costs; None if that is unknown."""
        usd, many = self.usd, self.conversations_per_day
        return None if usd is None or many is None else usd * many

    @property
    def calls(self) -> float:
        """Calls of models in a conversation."""
        return sum(node.calls for node in self.nodes.values())

    @property
    def tokens_in(self) -> float | None:
        """Tokens that models read in a conversation; None if unknown."""
        return _sum(node.tokens_in for node in self.nodes.values())

    @property
    def tokens_out(self) -> float | None:
        """Tokens that models write in a conversation; None if unknown."""
        return _sum(node.tokens_out for node in self.nodes.values())

    def beside(self, ledgers: Iterable[Ledger]) -> Beside:
        """The estimate compared with what these trials really cost, by node and in total."""
        return beside(self.nodes, ledgers)

    def data(self) -> dict[str, Any]:
        """All of it as JSON."""
        return {
            "per_conversation": self._figures(),
            "conversations_per_day": self.conversations_per_day,
            "usd_per_day": self.usd_per_day,
            "trials_seen": self.trials_seen,
            "guesses": list(self.guesses),
            "nodes": [
                {
                    "node": node.node,
                    "agent": node.agent,
                    "models": dict(node.models),
                    "visits": node.visits,
                    "calls": node.calls,
                    "tokens_in": node.tokens_in,
                    "tokens_out": node.tokens_out,
                    **node.cost.data(),
                }
                for node in self.nodes.values()
            ],
        }

    def _figures(self) -> dict[str, Json]:
        return {
            "calls": self.calls,
            "tokens_in": self.tokens_in,
            "tokens_out": self.tokens_out,
            **self.cost.data(),
        }

    def __str__(self) -> str:
        return estimate_table(self)


def _sum(numbers: Iterable[float | None]) -> float | None:
    known = list(numbers)
    return None if None in known else sum(number or 0.0 for number in known)


def estimate(
    agent: object, traffic: Traffic = _NO_TRAFFIC, *, prices: Mapping[str, Price] | None = None
) -> Estimate:
    """Estimate what `agent` will cost, without running it.

    A flow, or its graph, is walked node by node. For any other agent only what earlier trials have shown is
    known (`Traffic.seen`). `prices`, by the model's name, take precedence over those that are recorded,
    configured or listed. What is not known is named, never zero.
    """
    given, seen = prices or {}, traffic.learnt
    if isinstance(agent, Flow | Graph):
        graph = compile_flow(agent) if isinstance(agent, Flow) else agent
        nodes, guesses = _walked(graph, Assumed(traffic, graph), given)
    elif seen is not None:
        nodes, guesses = _flat(seen, given), []
    else:
        raise BadAgent(
            f"{type(agent).__name__} is not a flow of Agent and step: its model calls are known "
            f"only from earlier trials. Give Traffic.seen(ledgers)."
        )
    return Estimate(
        nodes={node.node: node for node in nodes},
        conversations_per_day=traffic.conversations_per_day,
        trials_seen=0 if seen is None else seen.trials,
        guesses=tuple(guesses),
    )


def _flat(seen: Seen, prices: Mapping[str, Price]) -> list[NodeEstimate]:
    """The nodes of an agent whose graph is not known, each as often as it was seen."""
    found: list[NodeEstimate] = []
    for name, node in seen.nodes.items():
        rates = [
            Rate(model, used.calls / node.calls, prices.get(model), used.usd_per_call)
            for model, used in node.models.items()
        ]
        calls, visits = node.calls / seen.trials, seen.visits.get(name, node.calls) / seen.trials
        found.append(_priced(name, node.agent, visits, calls, node.tokens_per_call, rates))
    return found


def _walked(
    graph: Graph, assumed: Assumed, prices: Mapping[str, Price]
) -> tuple[list[NodeEstimate], list[str]]:
    """Every agent of a graph with its expected calls, and what had to be guessed for them."""
    reached, guesses = reaches(graph, assumed)
    seen, listed = assumed.traffic.learnt, PriceList(prices)
    as_seen = {} if seen is None else reaches(graph, Assumed(Traffic(learnt=seen), graph))[0]
    found: list[NodeEstimate] = []
    for node in graph.nodes():
        if isinstance(node.flow, Remote):
            found.append(_elsewhere(node, node.flow, reached[node.id].visits))
        elif isinstance(node.flow, Agent):
            asking = Asking(node, node.flow, assumed, reached[node.id], as_seen.get(node.id))
            visits, calls = reached[node.id].visits, asking.calls
            rates, guess = rates_of(node.flow, listed, asking)
            tokens, name = asking.tokens, node.flow.name
            found.append(_priced(node.id, name, visits, visits * calls, tokens, rates))
            if asking.is_guess and visits:
                guesses.append(f"{node.id!r} asks its model once in each visit (calls=)")
            if guess and visits:
                guesses.append(guess)
    return found, guesses


def _elsewhere(node: Node, remote: Remote, visits: float) -> NodeEstimate:
    """The estimate of a remote agent: what it asks which models is not known here."""
    unknown = (f"what {remote.name} costs elsewhere",) if visits else ()
    tokens = None if visits else 0.0
    return NodeEstimate(
        node=node.id,
        agent=remote.name,
        visits=visits,
        calls=0.0,
        models={},
        tokens_in=tokens,
        tokens_out=tokens,
        cost=Amount(unknown=unknown),
    )


def _priced(
    node: str,
    agent: str,
    visits: float,
    calls: float,
    tokens: tuple[float, float] | None,
    rates: list[Rate],
) -> NodeEstimate:
    """The estimate of a node with this many calls of this many tokens each."""
    if not calls:
        tokens = (0.0, 0.0)
    return NodeEstimate(
        node=node,
        agent=agent,
        visits=visits,
        calls=calls,
        models={rate.model: calls * rate.share for rate in rates},
        tokens_in=None if tokens is None else calls * tokens[0],
        tokens_out=None if tokens is None else calls * tokens[1],
        cost=total(rate.cost(calls, tokens, node) for rate in rates),
    )
