"""A model that chooses another one for each request, and what it may choose by."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct, field

from greenroom.ledger.changes import State
from greenroom.ledger.plain import Json
from greenroom.models.model import Model, ModelReply, ModelRequest, OnDelta

if TYPE_CHECKING:
    from greenroom.models.prices import Price


class ChoiceContext(Struct, frozen=True):
    """What the ledger shows at the place of a request, so that the same ledger gives the same choice.

    What parallel branches do meanwhile does not count: that depends on which is faster.
    """

    spending: tuple[tuple[int, float], ...] = ()
    """USD spent so far: outside of all forks, then in each branch that contains the place.

    Each amount is preceded by the number of branches that share what was left before them.
    """
    unpriced: frozenset[str] = frozenset()
    """Models that answered at a price that is not known."""
    corrections: int = 0
    """How often this node's answer did not fit and was corrected."""
    failures: int = 0
    """How many attempts at this node failed."""
    asked: Mapping[str, int] = field(default_factory=dict[str, int])
    """How often this node has asked each model."""
    state: State = field(default_factory=dict[str, dict[str, Json]])
    """The state as it is here, by scope."""

    @property
    def spent(self) -> float:
        """USD spent so far, as far as it can be seen from here."""
        return sum(usd for _, usd in self.spending)

    def left(self, budget: float) -> float:
        """What this place may still spend of a budget; branches have equal shares."""
        for branches, usd in self.spending:
            budget = budget / branches - usd
        return budget


class Chooser:
    """A model that lets another one answer, chosen again for each request.

    The World asks it which one; a choice that depends on the run cannot be asked without a run.
    """

    @property
    def name(self) -> str:
        """Its name while no model has been chosen yet."""
        raise NotImplementedError

    @property
    def adapts(self) -> bool:
        """Whether it follows corrections and failures of a node, which only agents have."""
        return False

    @property
    def usual_price(self) -> "Price | None":
        """The price of the model that answers most of the time, to estimate by; None if unknown."""
        return None

    def facts(self) -> dict[str, Json]:
        """Its candidates and how it chooses, for the snapshot of an agent."""
        raise NotImplementedError

    def pick(self, request: ModelRequest, context: ChoiceContext) -> Model:
        """The model that should answer; the same for the same request and context."""
        raise NotImplementedError

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """The answer of the model that is picked for a request outside of a run."""
        return await self.pick(request, ChoiceContext()).respond(request, on_delta)
