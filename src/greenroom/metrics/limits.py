"""Was the trial cheap and fast enough?"""

from collections.abc import Mapping
from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import questions
from greenroom.ledger.events import CUT_SHORT
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.money import money
from greenroom.metrics.builtin import QuickMetric, is_number, written
from greenroom.metrics.facts import (
    Missing,
    clock_trouble,
    kept_answers,
    known_cost,
    known_seconds,
    known_usage,
)
from greenroom.metrics.needs import MODELS, TIMES, Needs
from greenroom.world.world import World


class CostWithin(QuickMetric, frozen=True, kw_only=True):
    """Compares what the agent's models cost with a budget."""

    needs: ClassVar[Needs] = MODELS
    usd: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 within the budget; an unknown price is unmeasured, never 0."""
        spent = known_cost(ledger)
        if isinstance(spent, Missing):
            return spent
        passed = spent <= self.usd
        reason = (
            f"cost {money(spent)} USD{_when(ledger)}, "
            f"{'within' if passed else 'over'} the budget of {money(self.usd)}"
        )
        return Score(float(passed), passed, name=self.name, reason=reason, measured=spent)


def cost_within(usd: float, *, name: str | None = None) -> CostWithin:
    """The agent's models cost at most `usd`; the simulated user's are not counted."""
    if not is_number(usd) or usd < 0:
        raise BadMetric(f"cost_within({usd!r}): give a budget in USD, 0 or more.")
    return CostWithin(usd=usd, **written("cost_within", usd, name=name))


class CompletedWithin(QuickMetric, frozen=True, kw_only=True):
    """Compares how long the trial took with a limit."""

    needs: ClassVar[Needs] = TIMES
    seconds: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 if the trial ended by itself in time."""
        took = questions.seconds(ledger)
        end = questions.ended(ledger)
        if end is None:
            return Unmeasured(
                "a live conversation has no end, so it is not known when it completed"
            )
        if (unknown := clock_trouble(ledger)) is not None:
            return unknown
        cut = end.reason if end.reason in CUT_SHORT else ""
        passed = took <= self.seconds and not cut
        # What took too long although answers came at once would not have been faster without.
        if passed and isinstance(known := known_seconds(ledger), Missing):
            return known
        reason = f"took {took:.3g} s; the limit is {self.seconds:g} s"
        if cut:
            reason = f"the trial did not complete ({cut}); it had taken {took:.3g} s"
        return Score(float(passed), passed, name=self.name, reason=reason, measured=took)


def completed_within(seconds: float, *, name: str | None = None) -> CompletedWithin:
    """The trial ended by itself within `seconds`, the user's time included."""
    if not is_number(seconds) or seconds <= 0:
        raise BadMetric(f"completed_within({seconds!r}): give seconds, more than 0.")
    return CompletedWithin(seconds=seconds, **written("completed_within", seconds, name=name))


class TokensWithin(QuickMetric, frozen=True, kw_only=True):
    """Compares the tokens of the agent's models with limits."""

    needs: ClassVar[Needs] = MODELS
    limits: Mapping[str, int]

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 within every limit; a reply that does not say what it used leaves it unmeasured."""
        used = known_usage(ledger)
        if isinstance(used, Missing):
            return used
        counts = {"input": used.input, "output": used.output, "total": used.total}
        over = [kind for kind, most in self.limits.items() if counts[kind] > most]
        shown = [f"{counts[kind]} of {most} {kind}" for kind, most in self.limits.items()]
        reason = f"{', '.join(shown)} tokens{_when(ledger)}"
        if over:
            reason = f"{reason}; too many {' and '.join(over)}"
        return Score(float(not over), not over, name=self.name, reason=reason, measured=counts)


def tokens_within(
    total: int | None = None,
    *,
    input: int | None = None,
    output: int | None = None,
    name: str | None = None,
) -> TokensWithin:
    """The agent's models read and wrote at most this many tokens; the user's are not counted."""
    given = {"total": total, "input": input, "output": output}
    limits = {kind: most for kind, most in given.items() if most is not None}
    if not limits:
        raise BadMetric("tokens_within() has no limit; give total=, input= or output=.")
    for kind, most in limits.items():
        if type(most) is not int or most < 0:
            raise BadMetric(f"tokens_within({kind}={most!r}): give a whole number, 0 or more.")
    return TokensWithin(limits=limits, **written("tokens_within", **limits, name=name))


def _when(ledger: Ledger) -> str:
    """A remark on figures that are those of a recording."""
    return " when it was recorded" if kept_answers(ledger) else ""
