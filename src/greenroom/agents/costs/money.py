"""Amounts of money of which a part may be unknown, and what a call of a model costs."""

from collections.abc import Iterable, Mapping
from functools import cached_property
from math import floor, inf, log10
from typing import Any

from msgspec import Struct

from greenroom.agents.agent import Agent
from greenroom.agents.costs.model_calls import Asking
from greenroom.models.candidates import Candidate
from greenroom.models.choice import Choice
from greenroom.models.model import Model, model_name
from greenroom.models.prices import Price, own_prices, price_of


class Amount(Struct, frozen=True):
    """USD as far as they are known, and what is missing to know the rest."""

    at_least: float = 0.0
    unknown: tuple[str, ...] = ()

    @property
    def usd(self) -> float | None:
        """All of it; None if a part is unknown."""
        return None if self.unknown else self.at_least

    def data(self) -> dict[str, Any]:
        """As JSON."""
        return {"usd": self.usd, "usd_at_least": self.at_least, "unknown": list(self.unknown)}

    def __str__(self) -> str:
        if not self.unknown:
            return significant_dollars(self.at_least)
        return (
            f"unknown, at least {significant_dollars(self.at_least)}"
            if self.at_least
            else "unknown"
        )


def significant_dollars(usd: float) -> str:
    """An amount below a dollar with four digits that matter: estimates add up fractions of a cent."""
    if usd >= 1 or usd == 0:
        return f"${usd:,.2f}"
    places = 3 - floor(log10(usd))
    whole, _, digits = f"{usd:.{places}f}".partition(".")
    return f"${whole}.{digits.rstrip('0').ljust(2, '0')}"


def total(amounts: Iterable[Amount]) -> Amount:
    """The sum of the amounts; what is missing is named once."""
    known, unknown = 0.0, dict[str, None]()
    for amount in amounts:
        known += amount.at_least
        unknown |= dict.fromkeys(amount.unknown)
    return Amount(known, tuple(unknown))


class Rate(Struct, frozen=True):
    """The rate of one model that answers this share of a node's calls: by the call, or by tokens."""

    model: str
    share: float = 1.0
    price: Price | None = None
    usd_per_call: float | None = None

    def cost(self, calls: float, tokens: tuple[float, float] | None, node: str) -> Amount:
        """The cost of this model's part of `calls` calls, each with these tokens."""
        calls *= self.share
        if not calls:
            return Amount()
        if self.price is None:
            if self.usd_per_call is None:
                return Amount(unknown=(f"the price of {self.model}",))
            return Amount(calls * self.usd_per_call)
        if not self.price.input and not self.price.output:
            return Amount()
        if tokens is None:
            return Amount(unknown=(f"the tokens of {node}",))
        return Amount(calls * (tokens[0] * self.price.input + tokens[1] * self.price.output))


class PriceList:
    """The prices of one estimate: those given by name, else those that are configured or listed."""

    def __init__(self, given: Mapping[str, Price]) -> None:
        self.given = given
        self._known: dict[int, Price | None] = {}

    def known(self, asked: Model | Candidate) -> Price | None:
        """The price of a model; each is looked up once, because many nodes ask the same one."""
        if id(asked) not in self._known:
            is_candidate = isinstance(asked, Candidate)
            self._known[id(asked)] = asked.price if is_candidate else price_of(asked, self._own)
        return self._known[id(asked)]

    @cached_property
    def _own(self) -> Mapping[str, Price]:
        return own_prices()


def rates_of(agent: Agent, prices: PriceList, asking: Asking) -> tuple[list[Rate], str]:
    """The rates of an agent's models, and what had to be guessed for them, if anything.

    Prices count as given, as seen, as configured or listed, in this order. A choice of models has a
    rate for each that answers: as often as given or seen, else always the one that it would begin with.
    """
    model: Any = agent.model
    if not isinstance(model, Choice):
        return [_rate(model_name(model), 1.0, model, prices, asking)], ""
    known = {each.name: each for each in (*model.candidates, *filter(None, [model.otherwise]))}
    shares, guess = _shares(model, known, asking)
    return [
        _rate(name, share, known[name], prices, asking) for name, share in shares.items()
    ], guess


def _shares(
    choice: Choice, known: Mapping[str, Candidate], asking: Asking
) -> tuple[Mapping[str, float], str]:
    """How often each model of a choice answers."""
    if given := asking.models(known):
        return given, ""
    seen = {} if asking.seen is None else asking.seen.models
    asked = {name: used.calls for name, used in seen.items() if name in known}
    if whole := sum(asked.values()):
        return {name: calls / whole for name, calls in asked.items()}, ""
    first = _usual(choice)
    return {first.name: 1.0}, f"{asking.node!r} always asks {first.name} of its models (models=)"


def _usual(choice: Choice) -> Candidate:
    """The candidate that a choice would begin with, if none is meant for special requests only."""
    meant = [each for each in choice.candidates if each.when is None] or [*choice.candidates]

    def cost(each: Candidate) -> float:
        price = each.price
        return inf if price is None else price.blended

    if choice.by == "quality":
        return min(meant, key=lambda each: (-(each.quality or 0.0), cost(each)))
    if choice.by == "adaptive":
        return min(meant, key=lambda each: (each.quality or 0.0, cost(each)))
    return min(meant, key=cost)


def _rate(
    name: str, share: float, asked: Model | Candidate, prices: PriceList, asking: Asking
) -> Rate:
    used = None if asking.seen is None else asking.seen.models.get(name)
    paid, likeness = None if used is None else used.usd_per_call, asking.likeness
    if name in prices.given:
        return Rate(name, share, prices.given[name])
    if paid is not None and likeness == 1.0:
        # What was actually paid, with whatever a cache has saved.
        return Rate(name, share, usd_per_call=paid)
    price = prices.known(asked)
    if price is None and paid is not None and likeness is not None:
        return Rate(name, share, usd_per_call=paid * likeness)
    return Rate(name, share, price)
