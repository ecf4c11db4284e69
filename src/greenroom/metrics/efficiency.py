"""Did the agent make no more calls than it should need?"""

from typing import ClassVar

from greenroom.cases.case import Case
from greenroom.cases.scores import NotApplicable, Outcome, Score
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.builtin import QuickMetric, checked_threshold, is_number, written
from greenroom.metrics.needs import CALL_NAMES, Needs
from greenroom.metrics.turns import scripted_turns
from greenroom.world.world import World

PENALTY = 0.2
USUAL_THRESHOLD = 0.5


class Efficiency(QuickMetric, frozen=True, kw_only=True):
    """Counts the calls beyond the expected ones."""

    needs: ClassVar[Needs] = CALL_NAMES
    calls: int | None
    penalty: float
    threshold: float

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome:
        """1 without extra calls, less by the penalty for each; `measured` is how many there are."""
        if self.calls is not None:
            counts = [(len(ledger.index_of().asked), self.calls)]
        else:
            turns = [turn for turn in scripted_turns(case, ledger) if turn.expect.tools is not None]
            counts = [(len(turn.calls), len(turn.expect.tools or ())) for turn in turns]
        if not counts:
            return NotApplicable(
                "no turn of the case has Expect(tools=...), and calls= is not given"
            )
        made, expected = (sum(column) for column in zip(*counts, strict=True))
        extra = sum(max(0, here - wanted) for here, wanted in counts)
        return Score(
            # Rounded, because 1 - 3 * 0.2 is slightly more than 0.4.
            max(0.0, round(1 - extra * self.penalty, 9)),
            threshold=self.threshold,
            name=self.name,
            reason=f"calls: {made} made, {expected} expected, {extra or 'none'} too many",
            measured=extra,
        )


def efficiency(
    calls: int | None = None,
    *,
    penalty: float = PENALTY,
    threshold: float = USUAL_THRESHOLD,
    name: str = "efficiency",
) -> Efficiency:
    """The agent made no more calls than expected; each extra one costs `penalty`, down to 0.

    Counted turn by turn where the case has `Expect(tools=[...])`, or over the whole trial with `calls=`.
    """
    if calls is not None and (type(calls) is not int or calls < 0):
        raise BadMetric(f"efficiency({calls!r}): give a number of calls, 0 or more.")
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
