"""Figures with a limit, and lines of a table."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Goal:
    """A figure that must not exceed its limit."""

    what: str
    value: float
    limit: float
    unit: str

    @property
    def met(self) -> bool:
        return self.value <= self.limit


def goal_line(goal: Goal, enforced: bool) -> str:
    verdict = ("met" if goal.met else "MISSED") if enforced else ""
    number = f"{goal.value:.2f}" if goal.unit else f"{goal.value:.0f}"
    return row(goal.what, [f"{number} {goal.unit}", f"max {goal.limit:g}", verdict]).rstrip()


def row(name: str, cells: Sequence[str]) -> str:
    return f"  {name:<36}" + "".join(f"{cell:>11}" for cell in cells)
