"""How a trial ended, and what follows from that: shared by results and their facts."""

from typing import Literal, Protocol

from greenroom.ledger.safe_text import on_one_line
from greenroom.results.breakage import Problem

Status = Literal["passed", "failed", "error", "terminated", "skipped"]
"""How a trial ended."""
EVALUATED: tuple[Status, ...] = ("passed", "failed", "terminated")
"""The statuses that say something about the agent; errors and skipped trials do not."""


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
        """What agent, user and judges cost in USD; None when the case ran and a price is unknown."""
        total = 0.0
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
