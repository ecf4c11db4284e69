"""What a trial may spend, and which agents and models spent it."""

from collections.abc import Callable, Mapping

from msgspec import Struct

from greenroom.errors import BadInput, OverBudget
from greenroom.ledger.messages import Usage
from greenroom.ledger.money import money
from greenroom.ledger.questions import spending, started
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.middleware.current import current_run
from greenroom.world.middleware.names import is_amount
from greenroom.world.middleware.protocol import Middleware


def budget(*, tokens: int | None = None, usd: float | None = None) -> "Budget":
    """Lets a trial ask its models until it has used this many tokens, or this much money.

    The question that reaches the limit is answered; the next one ends the trial. If a price is unknown,
    a budget in USD cannot be enforced, so it ends the trial.
    """
    return Budget(tokens, usd)


class Budget(Middleware):
    """What one trial may spend."""

    name = "budget"
    needs = ("before_model",)

    def __init__(self, tokens: int | None, usd: float | None) -> None:
        if tokens is None and usd is None:
            raise BadInput("budget() has no limit; give tokens=, usd= or both.")
        for limit, what in ((tokens, "tokens"), (usd, "usd")):
            if limit is not None and not is_amount(limit):
                raise BadInput(f"budget({what}={limit!r}) should be more than 0.")
        self._tokens = tokens
        self._usd = usd

    async def before_model(self, request: ModelRequest) -> ModelReply | str | None:
        """Refuse to ask once the limit is reached, by what the ledger says."""
        spent = spending(current_run().ledger)
        if self._tokens is not None:
            if spent.usage is None:
                raise OverBudget(
                    f"a model did not say how many tokens it used, so {self._tokens} tokens cannot "
                    f"be enforced. Use a model that does, or leave budget(tokens=...) out."
                )
            used = spent.usage.total
            if used >= self._tokens:
                raise OverBudget(
                    f"the trial has used {used} of {self._tokens} tokens, and agent "
                    f"{request.agent!r} would ask again. Raise budget(tokens=...), or check what it asks."
                )
        if self._usd is not None:
            if spent.cost is None:
                raise OverBudget(
                    f"the price of a model is unknown, so {self._usd} USD cannot be enforced. Give "
                    f"its price, or leave budget(usd=...) out."
                )
            if spent.cost >= self._usd:
                raise OverBudget(
                    f"the trial has cost {money(spent.cost)} of {money(self._usd)} USD, and agent "
                    f"{request.agent!r} would ask again. Raise budget(usd=...), or check what it asks."
                )


class Spent(Struct, frozen=True):
    """The cost and tokens of one agent on one model; None if not known."""

    calls: int = 0
    usage: Usage | None = Usage()
    cost: float | None = 0.0


Attribution = Mapping[tuple[str, str], Spent]
"""What was spent, by agent and model."""


def cost_attribution(report: Callable[[str, Attribution], object]) -> "CostAttribution":
    """Reports at the end of each trial what each agent spent: `report(trial, {(agent, model): spent})`.

    A trial has the name of its case, from the second one on with its number: "refund", "refund#2".
    """
    return CostAttribution(report)


class CostAttribution(Middleware):
    """What each agent spent on each model, from the ledger."""

    name = "cost_attribution"

    def __init__(self, report: Callable[[str, Attribution], object]) -> None:
        if not callable(report):
            raise BadInput(f"cost_attribution({report!r}) needs a function.")
        self._report = report

    async def after_run(self) -> None:
        """Add up the costs in the ledger."""
        run, found = current_run(), dict[tuple[str, str], Spent]()
        first = started(run.ledger)
        number = "" if first is None or first.trial == 1 else f"#{first.trial}"
        for reply in run.ledger.index_of().replied:
            who = reply.agent or reply.node, reply.model
            before = found.get(who, Spent())
            usage = (
                None if before.usage is None or reply.usage is None else before.usage + reply.usage
            )
            cost = None if before.cost is None or reply.paid is None else before.cost + reply.paid
            found[who] = Spent(before.calls + 1, usage, cost)
        self._report(f"{run.run_id}{number}", found)
