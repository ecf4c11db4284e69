"""The smallest change that a set of cases could reveal."""

from collections.abc import Sequence
from functools import lru_cache
from math import comb, fsum, sqrt

from greenroom.results.statistics.exact import ALPHA, sign
from greenroom.results.statistics.intervals import Z_POWER, student

POWER = 0.8
"""A difference counts as noticeable if it would be noticed this often."""
_ROUNDS = 50


def detectable(differences: Sequence[float], trials: int) -> float | None:
    """The smallest change of the pass rate that these cases would reveal four times in five.

    It follows from how much the cases' own changes are scattered, and is at least what moves
    enough cases for an exact test. None where no change could be shown: with fewer than six cases.
    `trials` is the least number of trials that a case had.
    """
    count = len(differences)
    if (share := _share_to_move(count)) is None:
        return None
    mean = fsum(differences) / count
    variance = fsum((value - mean) ** 2 for value in differences) / (count - 1)
    # A case that fails a little more often shows it in one of its trials.
    moving = 1 - (1 - share) ** (1 / trials)
    # The change that stands out from the cases' scatter, to which the change itself adds.
    reach, step = student(count - 1) + Z_POWER, 1 / (count * trials)
    found = 0.0
    for _ in range(_ROUNDS):
        scatter = variance + found * (1 - found) / trials
        found = min(1.0, reach * sqrt(scatter / count) + step)
    return min(1.0, max(found, moving))


@lru_cache(maxsize=256)
def _share_to_move(cases: int) -> float | None:
    """The share of cases that must change the same way for an exact test to notice it."""
    few = next(n for n in range(1, 65) if sign(n, 0) <= ALPHA)
    if cases < few:
        return None
    low, high = 0.0, 1.0
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (low, middle) if _at_least(few, cases, middle) >= POWER else (middle, high)
    return high


def _at_least(few: int, cases: int, chance: float) -> float:
    """How likely `few` or more of the cases move, if each does with this chance."""
    return 1 - fsum(comb(cases, k) * chance**k * (1 - chance) ** (cases - k) for k in range(few))
