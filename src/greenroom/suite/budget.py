"""The money a run may spend: no case begins that could cost more than is left."""

import asyncio
from collections.abc import Hashable
from typing import Final, Literal, get_args

from msgspec import Struct, field

from greenroom.errors import BadInput
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.events import Event, ModelReplied
from greenroom.ledger.money import money
from greenroom.results.result import CaseResult
from greenroom.suite.option_types import is_amount

UnknownPrices = Literal["refuse", "allow"]

# Three times $0.1 is a little more than $0.3 in floating point, and meant to be enough.
_SLACK: Final = 1 + 1e-9


class Budget(Struct):
    """What a run may cost in USD, and what it has cost so far, including cases in progress.

    Before a case begins, as much is set aside for it as the most expensive finished one has cost.
    What the first will cost is unknown, so it runs alone.
    """

    limit: float
    unknown_prices: UnknownPrices = "refuse"
    spent: float = 0.0
    unpriced: set[str] = field(default_factory=set[str])
    _highest: float | None = None
    _under_way: dict[Hashable, float] = field(default_factory=dict[Hashable, float])
    _settled: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        self._settled.set()
        if not is_amount(self.limit):
            raise BadInput(f"budget={self.limit!r} should be an amount of USD above 0.")
        if problem := choice_problem(self.unknown_prices, get_args(UnknownPrices)):
            raise BadInput(f"unknown_prices={problem}")

    async def begin(self, whose: Hashable) -> str:
        """Set money aside for a case; why not, if there is not enough."""
        while True:
            why = self.refusal
            if not why and (self._highest is not None or not self._under_way):
                self._under_way[whose] = 0.0
                return ""
            if why and (self.unpriced_refused or not self._under_way):
                return why
            # More may have been set aside for the cases in progress than they will need.
            if self._settled.is_set():
                self._settled = asyncio.Event()  # a new one, for this run may be on another loop
            await self._settled.wait()

    def release(self, whose: Hashable) -> None:
        """Free what was set aside for a case that did not begin, or was stopped, and did not spend it."""
        self.spent += self._under_way.pop(whose, 0.0)
        self._settled.set()

    @property
    def unpriced_refused(self) -> bool:
        """Whether a model without a known price was asked, and that is not allowed."""
        return bool(self.unpriced) and self.unknown_prices == "refuse"

    def add_earlier(self, spent: float, highest: float) -> None:
        """Count what earlier processes have spent on this run."""
        self.spent += spent
        if highest:
            self._highest = max(self._highest or 0.0, highest)

    def carry(self, whose: Hashable, paid: float) -> None:
        """Count what a resumed case cost before the interruption towards that case."""
        self.spent -= paid
        self._under_way[whose] = self._under_way.get(whose, 0.0) + paid

    def add_event(self, whose: Hashable, event: Event) -> None:
        """Count what a model's answer cost."""
        if not isinstance(event, ModelReplied) or event.source == "replayed":
            return
        if event.cost is None:
            self.unpriced.add(event.model or event.node)
        else:
            self._under_way[whose] = self._under_way.get(whose, 0.0) + event.cost

    def settle(self, whose: Hashable, result: CaseResult) -> None:
        """Count the cost of a finished case, and free the rest of what was set aside for it."""
        took = max(self._under_way.pop(whose, 0.0), cost_so_far(result))
        self.spent += took
        self.learn(result, took)
        self._settled.set()

    def learn(self, result: CaseResult, took: float) -> None:
        """Learn from a finished case what others may cost."""
        if took or result.status not in ("error", "skipped"):  # else it says nothing of the others
            self._highest = max(self._highest or 0.0, took)
        if result.spent is None and not self.unpriced:
            self.unpriced.add(f"a model that case {result.case_id!r} asked")

    @property
    def notes(self) -> list[str]:
        """Notes for the report on what the budget could not count."""
        if not self.unpriced:
            return []
        models = ", ".join(sorted(self.unpriced))
        return [f"the budget did not count {models}: the price is unknown"]

    @property
    def refusal(self) -> str:
        """Why no further case could begin now; empty if one could."""
        if self.unpriced_refused:
            models = ", ".join(sorted(self.unpriced))
            return (
                f"the price of {models} is unknown, so the budget cannot be kept; name it in "
                f"pyproject.toml below [tool.greenroom.prices], or allow unknown prices "
                f"(--unknown-prices allow, Budget(..., unknown_prices='allow'))"
            )
        highest = self._highest or 0.0
        aside = sum(max(live, highest) for live in self._under_way.values())
        if self.spent + aside + highest > self.limit * _SLACK:
            return (
                f"the budget of ${money(self.limit)} is not enough: ${money(self.spent, 4)} is spent, "
                f"and a case cost up to ${money(highest, 4)}"
            )
        return ""


def cost_so_far(result: CaseResult) -> float:
    """The cost of a case's agent, user and judges, as far as prices are known."""
    return sum(price or 0.0 for price in result.prices)
