"""Amounts of money of which a part may be unknown, and what a call of a model costs."""

from collections.abc import Iterable, Mapping
from math import floor, log10
from typing import Any

from msgspec import Struct

from greenroom.agents.costs.seen import SeenNode
from greenroom.models.model import Model, model_name
from greenroom.models.prices import Price, price_of


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
            return dollars(self.at_least)
        return f"unknown, at least {dollars(self.at_least)}" if self.at_least else "unknown"


def dollars(usd: float) -> str:
    """An amount to read: cents from a dollar on, below it the digits that matter."""
    if usd >= 1 or usd == 0:
        return f"${usd:,.2f}"
    places = 2 - floor(log10(usd))
    return "$" + f"{usd:.{places}f}".rstrip("0")


def total(amounts: Iterable[Amount]) -> Amount:
    """All amounts together; what is missing is named once."""
    known, unknown = 0.0, dict[str, None]()
    for amount in amounts:
        known += amount.at_least
        unknown |= dict.fromkeys(amount.unknown)
    return Amount(known, tuple(unknown))


class Rate(Struct, frozen=True):
    """What one model costs that answers this share of a node's calls: by the call, or by tokens."""

    model: str
    share: float = 1.0
    price: Price | None = None
    usd_per_call: float | None = None

    def cost(self, calls: float, tokens: tuple[float, float] | None, node: str) -> Amount:
        """The cost of this model's part of so many calls, each with so many tokens."""
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


def rates_of(
    model: Model, prices: Mapping[str, Price], seen: SeenNode | None, likeness: float | None
) -> list[Rate]:
    """What a node's model costs: as given, as seen, as configured or listed, in this order.

    `likeness` is how many tokens a call takes for each that was seen, 1 if it is as it was; None if
    that is not known.
    """
    return [_rate(model, 1.0, prices, seen, likeness)]


def _rate(
    model: Model,
    share: float,
    prices: Mapping[str, Price],
    seen: SeenNode | None,
    likeness: float | None,
) -> Rate:
    name = model_name(model)
    used = None if seen is None else seen.models.get(name)
    paid = None if used is None else used.usd_per_call
    if name in prices:
        return Rate(name, share, prices[name])
    if paid is not None and likeness == 1.0:
        # What was really paid, with whatever a cache has saved.
        return Rate(name, share, usd_per_call=paid)
    price = price_of(model)
    if price is None and paid is not None and likeness is not None:
        return Rate(name, share, usd_per_call=paid * likeness)
    return Rate(name, share, price)
