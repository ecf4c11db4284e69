"""How often a search may ask models and at what cost, and what it has used so far."""

from msgspec import Struct, field

from greenroom.errors import BadInput, OverBudget
from greenroom.ledger.events import Event, ModelReplied
from greenroom.ledger.money import money


class Allowance(Struct):
    """How often models may be asked, and what that may cost in USD; None: no limit."""

    model_calls: int | None = None
    usd: float | None = None
    asked: int = 0
    """How often models were asked for real."""
    cost: float = 0.0
    """What that cost in USD, as far as prices are known."""
    unpriced: set[str] = field(default_factory=set[str])

    def __post_init__(self) -> None:
        calls, usd = self.model_calls, self.usd
        if (calls is not None and calls < 0) or (usd is not None and not usd >= 0):
            raise BadInput(f"Allowance(model_calls={calls!r}, usd={usd!r}) should be 0 or more.")

    def add(self, event: Event) -> None:
        """Count an answer of a model."""
        if isinstance(event, ModelReplied) and event.is_live:
            self.asked += 1
            self.cost += event.cost or 0.0
            if event.cost is None:
                self.unpriced.add(event.model or event.node)

    @property
    def refusal(self) -> str:
        """Why no further model call is allowed; empty while one is."""
        if self.model_calls is not None and self.asked >= self.model_calls:
            return (
                f"models were asked {self.asked} times, and may be asked {self.model_calls} times"
            )
        if self.usd is not None and self.unpriced:
            return f"the price of {', '.join(sorted(self.unpriced))} is unknown, so no amount can be kept"
        if self.usd is not None and self.cost >= self.usd:
            return f"${money(self.cost, 4)} of ${money(self.usd)} is spent"
        return ""

    def check(self) -> None:
        """Raise OverBudget once no further model call is allowed."""
        if why := self.refusal:
            raise OverBudget(f"{why}.")
