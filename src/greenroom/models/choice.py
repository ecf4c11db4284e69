"""A choice of models: the request, and what the run shows so far, decide which one answers.

    brain = choose(
        candidate("google:gemini-2.5-flash", quality=1),
        candidate("google:gemini-2.5-pro", quality=2),
        by="adaptive",
    )
    agent = Agent("clerk", model=brain)

The same ledger gives the same choice, so an interrupted run continues with the same models.
"""

from collections.abc import Mapping
from math import inf, isfinite
from typing import Any, Final, Literal, get_args

from greenroom.errors import BadAgent, NoCandidate
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.money import money
from greenroom.ledger.places import by_scope
from greenroom.ledger.plain import Json
from greenroom.ledger.query import Query, check_query, matches_state, plain_query
from greenroom.models.candidates import Candidate, Chosen, candidate
from greenroom.models.chooser import ChoiceContext, Chooser
from greenroom.models.model import Model, ModelReply, ModelRequest, OnDelta
from greenroom.models.prices import Price

By = Literal["cost", "quality", "budget", "adaptive"]
UnknownPrices = Literal["refuse", "allow"]

# A rest of a budget as small as this comes from rounding alone.
_ROUNDING: Final = 1e-9


class Choice(Chooser):
    """Several models of which one answers each request, as `choose(...)` makes it."""

    def __init__(
        self,
        candidates: tuple[Candidate, ...],
        *,
        by: By,
        budget: float | None,
        otherwise: Candidate | None,
        promote: Mapping[str, Query] | None,
        unknown_prices: UnknownPrices,
    ) -> None:
        self.candidates = candidates
        self.by: By = by
        self.budget = budget
        self.otherwise = otherwise
        self.promote = promote
        self.unknown_prices: UnknownPrices = unknown_prices
        compares = by != "quality" or budget is not None
        # Looked up once: a choice must not depend on a price list that changes during the run.
        self._prices: dict[str, Price | None] = {
            each.name: each.price if compares else each.own_price for each in candidates
        }

    @property
    def name(self) -> str:
        """All models of the choice; the ledger names the one that was chosen."""
        names = ", ".join(each.name for each in self.candidates)
        return f"choose({names}, by={self.by!r})"

    @property
    def adapts(self) -> bool:
        """Whether it follows corrections and failures of a node, which only agents have."""
        return self.by == "adaptive"

    @property
    def usual_price(self) -> Price | None:
        """The price of the model it begins with, of those that are meant for any request."""
        meant = [each for each in self.candidates if each.when is None] or [*self.candidates]
        return self._first(meant, ChoiceContext()).price

    def price(self, name: str) -> Price | None:
        """The price that a candidate is compared by; None if it is not known or does not matter."""
        return self._prices.get(name)

    def pick(self, request: ModelRequest, context: ChoiceContext) -> Chosen:
        """The candidate that should answer; the same for the same request and context."""
        picked = self._picked(request, context)
        return Chosen(picked, context.asked.get(picked.name, 0))

    def _picked(self, request: ModelRequest, context: ChoiceContext) -> Candidate:
        if self.budget is not None and self._is_spent(self.budget, context):
            spent = money(context.spent, 4)
            return self._other(f"the budget of ${money(self.budget)} is spent (${spent})")
        meant = [each for each in self.candidates if each.holds(request)]
        if not meant:
            return self._other("none of its candidates is meant for this request")
        return self._first(meant, context)

    def _first(self, meant: list[Candidate], context: ChoiceContext) -> Candidate:
        """The first of these candidates for this context."""
        if self.by == "quality":
            best = max(each.quality or 0.0 for each in meant)
        elif self.by == "adaptive":
            best = self._tier(meant, context)
        else:
            return min(meant, key=self._cost)
        return min((each for each in meant if each.quality == best), key=self._cost)

    def _tier(self, meant: list[Candidate], context: ChoiceContext) -> float:
        """The quality that is needed: the lowest first, one more for each correction or failure."""
        promotions = context.corrections + context.failures
        if self.promote is not None and matches_state(context.state, self.promote):
            promotions += 1
        tiers = sorted({each.quality or 0.0 for each in self.candidates})
        due = tiers[min(promotions, len(tiers) - 1)]
        reachable = sorted(each.quality or 0.0 for each in meant)
        return next((quality for quality in reachable if quality >= due), reachable[-1])

    def _cost(self, each: Candidate) -> float:
        price = self._prices[each.name]
        return inf if price is None else price.blended

    def _is_spent(self, budget: float, context: ChoiceContext) -> bool:
        if context.left(budget) <= budget * _ROUNDING:
            return True
        known = frozenset((self.otherwise.name,)) if self.otherwise else frozenset[str]()
        unpriced = sorted(context.unpriced - known)
        if unpriced and self.unknown_prices == "refuse":
            raise NoCandidate(
                f"the price of {', '.join(unpriced)} is unknown, so the budget of {self.name} cannot "
                f"be enforced. Give candidate(..., price=Price.per_million(...)), name the price in "
                f"pyproject.toml below [tool.greenroom.prices], or allow it with "
                f"unknown_prices='allow'."
            )
        return False

    def _other(self, why: str) -> Candidate:
        if self.otherwise is None:
            raise NoCandidate(
                f"{self.name} has no model to ask: {why}. Give otherwise=..., a model for that case."
            )
        return self.otherwise

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer of the model that is picked for a request outside of a run."""
        if self.budget is not None or self.by == "adaptive":
            raise BadAgent(
                f"{self.name} follows the run it is part of, but was asked without one. Give it as "
                f"the model itself, not inside another model."
            )
        return await super().respond(request, on_delta)

    def facts(self) -> dict[str, Json]:
        """The choice as the snapshot of an agent shows it."""
        shown = [each.facts(self._prices[each.name]) for each in self.candidates]
        found: dict[str, Json] = {"by": self.by, "candidates": [*shown]}
        if self.budget is not None:
            found["budget"] = self.budget
        if self.otherwise is not None:
            found["otherwise"] = self.otherwise.facts(self.otherwise.own_price)
        if self.promote is not None:
            found["promote"] = plain_query(self.promote, "promote")
        if self.unknown_prices != "refuse":
            found["unknown_prices"] = self.unknown_prices
        return found

    @property
    def identity(self) -> str:
        """Changes with the answers of scripted candidates, as far as they can be known."""
        asked = [*self.candidates, *filter(None, [self.otherwise])]
        return repr([str(getattr(each.model, "identity", "")) for each in asked])

    @property
    def options(self) -> dict[str, Json]:
        """What makes it answer differently, in addition to its name."""
        return {**self.facts(), "models": [repr(each.model) for each in self.candidates]}

    def __repr__(self) -> str:
        shown = [*map(repr, self.candidates), f"by={self.by!r}"]
        shown += [f"budget={self.budget:g}"] if self.budget is not None else []
        shown += [f"otherwise={self.otherwise!r}"] if self.otherwise is not None else []
        return f"choose({', '.join(shown)})"


def choose(
    *candidates: Candidate | Model | str,
    by: By = "cost",
    budget: float | None = None,
    otherwise: Candidate | Model | str | None = None,
    promote: Mapping[Any, Any] | None = None,
    unknown_prices: UnknownPrices = "refuse",
) -> Choice:
    """A model that is one of several, chosen for each request among those whose `when` holds.

    "cost": the cheapest. "quality": the best. "budget": the cheapest, as long as the run has spent
    less than `budget` USD. "adaptive": first the least good; after every correction, after every failed
    attempt and while the query `promote` matches the state, the next better one.

    `otherwise` answers when the budget is spent, which any choice may have, or when no candidate is
    meant for the request; without it that is an error. To compare costs every price must be known,
    unless `unknown_prices="allow"`.
    """
    known = tuple(_as_candidate(each) for each in candidates)
    if not known:
        raise BadAgent("choose(...) has no candidates; give models, or candidate(model, ...).")
    other = None if otherwise is None else _as_candidate(otherwise)
    _check_names([*known, *filter(None, [other])])
    for option, given, words in (
        ("by", by, get_args(By)),
        ("unknown_prices", unknown_prices, get_args(UnknownPrices)),
    ):
        if problem := choice_problem(given, words):
            raise BadAgent(f"choose(...): {option}={problem}")
    _check_budget(by, budget)
    if promote is not None:
        if by != "adaptive":
            raise BadAgent(f"choose(by={by!r}) is never promoted; give promote= to by='adaptive'.")
        promote = by_scope(promote)
        check_query(promote, "promote")
    made = Choice(
        known,
        by=by,
        budget=budget,
        otherwise=other,
        promote=promote,
        unknown_prices=unknown_prices,
    )
    _check_comparable(made)
    return made


def _as_candidate(given: Candidate | Model | str) -> Candidate:
    return given if isinstance(given, Candidate) else candidate(given)


def _check_names(candidates: list[Candidate]) -> None:
    names = [each.name for each in candidates]
    for name in names:
        if names.count(name) > 1:
            raise BadAgent(
                f"choose(...) has two models called {name!r}, which a ledger could not tell apart; "
                f"leave one out, or rename it: Scripted(..., name='cheap')."
            )


def _check_budget(by: By, budget: Any) -> None:
    if budget is None:
        if by == "budget":
            raise BadAgent("choose(by='budget') needs budget=..., in USD for a run.")
        return
    is_number = isinstance(budget, int | float) and not isinstance(budget, bool)
    if not is_number or not isfinite(budget) or budget <= 0:
        raise BadAgent(f"choose(budget={budget!r}) should be an amount of USD above 0.")


def _check_comparable(choice: Choice) -> None:
    """Refuse candidates without the quality or price that the choice needs, naming them."""
    if choice.by in ("quality", "adaptive"):
        without = [each.name for each in choice.candidates if each.quality is None]
        if without:
            raise BadAgent(
                f"choose(by={choice.by!r}) does not know how good {', '.join(without)} is; give "
                f"candidate(..., quality=1); the best has the highest."
            )
    needs_prices = choice.by in ("cost", "budget") or choice.budget is not None
    unpriced = [each.name for each in choice.candidates if choice.price(each.name) is None]
    if needs_prices and unpriced and choice.unknown_prices == "refuse":
        raise BadAgent(
            f"choose(by={choice.by!r}) does not know the price of {', '.join(unpriced)}; give "
            f"candidate(..., price=Price.per_million(0.15, 0.60)), name it in pyproject.toml below "
            f"[tool.greenroom.prices], or allow it with unknown_prices='allow'."
        )
