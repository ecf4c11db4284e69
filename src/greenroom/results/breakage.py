"""What broke in a trial, and what that leaves of its scores.

A trial that broke did not reach its end: that nothing forbidden was called, or that little was
spent, says nothing about the agent. So every metric of it is `Unmeasured`, decided only here.
"""

from collections.abc import Mapping

from msgspec import Struct

from greenroom.cases.scores import Outcome, Unmeasured
from greenroom.errors import Phase
from greenroom.ledger import questions
from greenroom.ledger.ledger import Ledger

BROKE = "the trial broke: "
"""The first words of the reason why a metric of a broken trial has no score."""
LEFT_OUT = Unmeasured("the trial was left out")
"""The outcome of a metric of a skipped trial, if something was measured before."""


class Problem(Struct, frozen=True):
    """What broke, and in which phase."""

    phase: Phase
    message: str
    type: str = ""

    @property
    def headline(self) -> str:
        """What broke in one line."""
        lines = [*self.message.strip().splitlines(), *self.type.strip().splitlines()]
        return lines[0] if lines else f"an error of phase {self.phase}"

    @property
    def unmeasured(self) -> Unmeasured:
        """The outcome of every metric of a trial that this broke."""
        return Unmeasured(f"{BROKE}{self.headline}", self.phase)


def breakage(ledger: Ledger) -> Problem | None:
    """What broke while the trial ran; None if it reached its end, or has not ended."""
    end = questions.ended(ledger)
    if end is None or end.reason != "error":
        return None
    return Problem(end.phase or "system", end.error, end.error_type)


def unscored(outcomes: Mapping[str, object], why: Unmeasured) -> dict[str, Outcome]:
    """These metrics without their scores, for this reason.

    A metric that itself found out why the trial broke keeps its own reason.
    """
    return {
        name: found if isinstance(found, Unmeasured) and found.phase != "metric" else why
        for name, found in outcomes.items()
    }
