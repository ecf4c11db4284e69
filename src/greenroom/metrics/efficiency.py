"""Did the agent come by with the calls it should need?"""

from typing import Any, ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.builtin import BuiltIn, written
from greenroom.metrics.limits import is_number
from greenroom.metrics.outcomes import checked_threshold
from greenroom.metrics.turns import played_turns

PENALTY = 0.2
USUAL_THRESHOLD = 0.5


class Efficiency(BuiltIn, frozen=True, kw_only=True):
    """Counts the calls beyond those that were expected."""

    counts_calls: ClassVar[bool] = True
    calls: int | None
    penalty: float
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Outcome:  # noqa: ARG002
        """1 without extra calls, less by the penalty for each; `measured` is how many there are."""
        counted = self._of_run(ledger) if self.calls is not None else _of_turns(case, ledger)
        if counted is None:
            return NotApplicable(
                "no turn of the case has Expect(tools=...), and calls= is not given"
            )
        made, expected, extra = counted
        return Score(
            # Rounded: 1 - 3 * 0.2 is a hair above 0.4.
            max(0.0, round(1 - extra * self.penalty, 9)),
            threshold=self.threshold,
            name=self.name,
            reason=f"calls: {made} made, {expected} expected, {extra or 'none'} too many",
            measured=extra,
        )

    def _of_run(self, ledger: Ledger) -> tuple[int, int, int]:
        made, expected = len(ledger.index_of().asked), self.calls or 0
        return made, expected, max(0, made - expected)


def efficiency(
    calls: int | None = None,
    *,
    penalty: float = PENALTY,
    threshold: float = USUAL_THRESHOLD,
    name: str = "efficiency",
) -> Efficiency:
    """The agent made no more calls than expected; each extra one costs `penalty`, down to 0.

    Counted turn by turn where the case has `Expect(tools=[...])`, or over the run with `calls=`.
    """
    if calls is not None and (type(calls) is not int or calls < 0):
        raise BadMetric(f"efficiency({calls!r}) wants a number of calls, 0 or more.")
    if not is_number(penalty) or not 0 < penalty <= 1:
        raise BadMetric(
            f"efficiency(...) has penalty={penalty!r}; give a number above 0, at most 1."
        )
    checked_threshold(threshold, "efficiency(...)")
    return Efficiency(
        calls=calls,
        penalty=penalty,
        threshold=threshold,
        **written(
            "efficiency",
            calls=calls,
            penalty=None if penalty == PENALTY else penalty,
            threshold=None if threshold == USUAL_THRESHOLD else threshold,
            name=name,
        ),
    )


def _of_turns(case: Case, ledger: Ledger) -> tuple[int, int, int] | None:
    """Calls made, expected, and beyond, in the turns that expect calls; None if none does."""
    made = expected = extra = 0
    turns = [turn for turn in played_turns(case, ledger) if turn.expect.tools is not None]
    for turn in turns:
        here, wanted = len(turn.calls), len(turn.expect.tools or ())
        made, expected, extra = made + here, expected + wanted, extra + max(0, here - wanted)
    return (made, expected, extra) if turns else None
