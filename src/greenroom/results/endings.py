"""How a trial ended, what broke in it, and what follows from that for its scores.

A trial that broke did not reach its end: that nothing forbidden was called, or that little was
spent, says nothing about the agent. So every metric of it is `Unmeasured`, decided only here.
"""

from collections.abc import Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct

from greenroom.cases.scores import Outcome, Unmeasured
from greenroom.errors import Phase
from greenroom.ledger import questions
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.safe_text import on_one_line

Status = Literal["passed", "failed", "error", "terminated", "skipped"]
"""How a trial ended."""
EVALUATED: tuple[Status, ...] = ("passed", "failed", "terminated")
"""The statuses that say something about the agent; errors and skipped trials do not."""
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


NOT_OVER: Final = Unmeasured("it was not over when it was recorded, so how it went is not known")
"""The outcome of every metric of a record without an end."""


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


class Ended(Protocol):
    """How a trial ended and what it cost: a result, or the facts of one."""

    @property
    def case_id(self) -> str: ...
    @property
    def trial(self) -> int: ...
    @property
    def status(self) -> Status: ...
    @property
    def ended(self) -> str | None: ...
    @property
    def error(self) -> Problem | None: ...
    @property
    def cost(self) -> float | None: ...
    @property
    def user_cost(self) -> float | None: ...
    @property
    def judge_cost(self) -> float | None: ...
    @property
    def earlier_costs(self) -> Mapping[str, float | None]: ...


class Ending:
    """Properties that follow from how a trial ended."""

    __slots__ = ()

    @property
    def passed(self: Ended) -> bool:
        """Whether the case counts as passed."""
        return self.status == "passed"

    @property
    def fell_short(self: Ended) -> bool:
        """Whether the case ran and did not pass."""
        return self.status in ("failed", "error", "terminated")

    @property
    def broke(self: Ended) -> bool:
        """Whether the trial itself broke: none of its metrics has a score then."""
        if self.ended == "error":
            return True
        # An error without a phase may have happened anywhere.
        return self.status == "error" if self.error is None else self.error.phase != "metric"

    @property
    def spent(self: Ended) -> float | None:
        """What agent, user and judges cost in USD; None when the case ran and a price is unknown.

        Attempts that broke and ran again were paid for too.
        """
        total = 0.0
        for price in self.earlier_costs.values():
            if price is None:
                return None
            total += price
        for price in (self.cost, self.user_cost, self.judge_cost):
            if price is not None:
                total += price
            elif self.ended is not None:
                return None
        return total

    @property
    def label(self: Ended) -> str:
        """The case's id, with the trial number from the second trial on."""
        return label(self.case_id, self.trial)


def label(case_id: str, trial: int) -> str:
    """A case's id, with the trial number from the second trial on."""
    shown = on_one_line(case_id)
    return shown if trial == 1 else f"{shown} (trial {trial})"
