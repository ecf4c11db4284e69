"""Was the run cheap and quick enough?"""

from math import isfinite
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import questions
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.facts import known_cost

_CUT_SHORT = ("max_turns", "max_seconds", "error")


@record(kw_only=True, repr=False)
class CostWithin(BuiltIn):
    """Compares what the agent's models cost with a budget."""

    usd: float

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Outcome:  # noqa: ARG002
        """1 within the budget; an unknown price is unmeasured, never 0."""
        spent = known_cost(ledger)
        if isinstance(spent, Unmeasured):
            return spent
        passed = spent <= self.usd
        reason = f"cost {spent:g} USD, {'within' if passed else 'over'} the budget of {self.usd:g}"
        return Score(float(passed), passed, name=self.name, reason=reason, measured=spent)


def cost_within(usd: float, *, name: str | None = None) -> CostWithin:
    """The agent's models cost at most `usd`; the simulated user's are not counted."""
    if not _is_number(usd) or usd < 0:
        raise BadMetric(f"cost_within({usd!r}) wants a budget in USD, 0 or more.")
    return CostWithin(usd=usd, **written("cost_within", usd, name=name))


@record(kw_only=True, repr=False)
class CompletedWithin(BuiltIn):
    """Compares how long the run took with a limit."""

    seconds: float

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Score:  # noqa: ARG002
        """1 if the run came to its own end in time."""
        took = questions.seconds(ledger)
        end = questions.ended(ledger)
        cut = end.reason if end is not None and end.reason in _CUT_SHORT else ""
        passed = took <= self.seconds and not cut
        reason = f"took {took:.3g} s; the limit is {self.seconds:g} s"
        if cut:
            reason = f"the run did not complete ({cut}); it had taken {took:.3g} s"
        return Score(float(passed), passed, name=self.name, reason=reason, measured=took)


def completed_within(seconds: float, *, name: str | None = None) -> CompletedWithin:
    """The run came to its end within `seconds`, the user's time included."""
    if not _is_number(seconds) or seconds <= 0:
        raise BadMetric(f"completed_within({seconds!r}) wants seconds, more than 0.")
    return CompletedWithin(seconds=seconds, **written("completed_within", seconds, name=name))


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)
