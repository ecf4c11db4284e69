"""How certain a pass rate is: 95 % intervals in which a case's trials count as one cluster.

Trials of one case resemble each other, so a hundred trials of ten cases say less than a hundred
cases. What the cases' own pass rates show decides how much less.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import atan, ceil, cos, erfc, floor, fsum, pi, sin, sqrt

from msgspec import Struct

Z = 1.959963984540054
"""How many standard errors a 95 % interval reaches to each side."""
Z_POWER = 0.8416212335729143
"""How many more standard errors it takes to notice a difference four times in five."""

_MANY = 200
_STEPS = 60
_EVEN = 2
"""Sides that differ by no more percentage points are shown as one."""

Tally = tuple[int, int]
"""How many trials of a case passed, and of how many that were evaluated."""


class Interval(Struct, frozen=True):
    """A share and the 95 % interval around it. `str(interval)` is short: `82 % ± 6`."""

    share: float
    low: float
    high: float

    def __str__(self) -> str:
        below, above = 100 * (self.share - self.low), 100 * (self.high - self.share)
        widest = max(below, above)
        digits = 1 if widest < 1 else 0
        if abs(above - below) <= _EVEN:
            return f"{percent(self.share, digits)} ± {max(widest, 0.1):.{digits}f}"
        # Rounded outwards, so that it never says more than is known.
        return f"{percent(self.share, 0)} ({floor(_near(self.low))}–{ceil(_near(self.high))})"


def _near(share: float) -> float:
    """A share in percent, without rounding errors in the last digits."""
    return round(100 * share, 9)


def percent(share: float, digits: int = 1) -> str:
    """A share in percent; less than all is never rounded up to 100 %."""
    rounded = round(share * 100, digits)
    short_of_all = 100 - 10**-digits
    return f"{min(rounded, short_of_all) if share < 1 else rounded:.{digits}f} %"


def wilson(share: float, count: float) -> Interval:
    """Wilson's interval for a share of `count` independent trials."""
    room = Z * Z / count
    middle = (share + room / 2) / (1 + room)
    half = Z / (1 + room) * sqrt(share * (1 - share) / count + room / (4 * count))
    # At the edges the formula is exact, floating point is not.
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return Interval(share, low, high)


def mean_rate(tallies: Iterable[Tally]) -> float | None:
    """The mean of the cases' own pass rates, so each case counts once; None if nothing was evaluated."""
    rates = [passed / evaluated for passed, evaluated in tallies]
    return fsum(rates) / len(rates) if rates else None


def of_trials(passed: int, evaluated: int) -> Interval | None:
    """The interval of one case's own pass rate; None before its second trial."""
    return wilson(passed / evaluated, evaluated) if evaluated > 1 else None


def of_cases(tallies: Iterable[Tally]) -> Interval | None:
    """The interval of the pass rate over many cases; None with fewer than two evaluated ones.

    The rate is the mean of the cases' own, so each counts once however often it ran. The
    interval is Wilson's at the number of independent trials that would be as certain. Where the trials
    of every case agree, or there is one of each, that is the number of cases.
    """
    found = [tally for tally in tallies if tally[1] > 0]
    if len(found) < 2:
        return None
    rates = [passed / evaluated for passed, evaluated in found]
    # Added up exactly, so that cases which all passed make 1 and not a little less.
    return wilson(fsum(rates) / len(rates), as_sure_as(found))


def as_sure_as(tallies: Sequence[Tally]) -> float:
    """How many independent trials would be as certain as these, all of which were evaluated."""
    rates = [passed / evaluated for passed, evaluated in tallies]
    return _effective(rates, [count for _, count in tallies])


def _effective(rates: Sequence[float], counts: Sequence[int]) -> float:
    """How many independent trials would be as certain as these: at least the number of cases."""
    cases = len(rates)
    if all(rate == 0 for rate in rates) or all(rate == 1 for rate in rates):
        return cases
    # As sure as if trials of one case did not resemble each other at all.
    most = cases**2 / fsum(1 / count for count in counts)
    # As sure as the cases' own pass rates show it. One case more that always passes and one that never does
    # are seen with them. Without these, few cases that happen to lie close would pass for many, and one failed
    # trial among many passed ones for proof that trials do not resemble each other.
    seen = [*rates, 1.0, 0.0]
    share = fsum(seen) / len(seen)
    alone = share * (1 - share) / variance_of_mean(seen)
    return max(cases, min(alone * len(rates) / len(seen), most))


def variance_of_mean(rates: Sequence[float]) -> float:
    """The variance of the mean of the cases' rates if cases were drawn; corrected for few cases."""
    cases, share = len(rates), fsum(rates) / len(rates)
    return fsum((rate - share) ** 2 for rate in rates) / (cases * (cases - 1))


def of_changes(pairs: Sequence[tuple[Tally, Tally]]) -> Interval | None:
    """How much the mean pass rate rose from then to now, and its 95 % interval; None without cases.

    Bonett and Price's interval for paired shares: two more cases are seen with them, one that rose
    and one that fell as far as chance moves a single case with this many trials.
    """
    if not pairs:
        return None
    moves = [now[0] / now[1] - then[0] / then[1] for then, now in pairs]
    halves = [(1 / then[1] + 1 / now[1]) / 2 for then, now in pairs]
    pseudo = sqrt(fsum(halves) / len(halves))
    seen = [*moves, pseudo, -pseudo]
    middle = fsum(seen) / len(seen)
    spread = fsum(move * move for move in seen) / len(seen) - middle**2
    half = Z * sqrt(spread / len(seen))
    low, high = max(-1.0, middle - half), min(1.0, middle + half)
    return Interval(fsum(moves) / len(moves), low, high)


# The normal distribution and Student's t


def normal(z: float) -> float:
    """The probability that a standard normal value is below `z`."""
    return erfc(-z / sqrt(2)) / 2


@lru_cache(maxsize=1024)
def student(freedom: int) -> float:
    """How many standard errors a 95 % interval reaches with this many degrees of freedom."""
    if freedom > _MANY:
        # The expansion of Cornish and Fisher about the normal distribution.
        z = Z
        terms = (
            (z**3 + z) / 4,
            (5 * z**5 + 16 * z**3 + 3 * z) / 96,
            (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        )
        return z + fsum(term / freedom ** (n + 1) for n, term in enumerate(terms))
    low, high = Z, 13.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _within(middle, freedom) > 0.95 else (middle, high)
    return high


def _within(t: float, freedom: int) -> float:
    """The probability that Student's t is between -t and t; the sum is finite for whole degrees of freedom."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total
