"""How sure a pass rate is: 95 % intervals in which a case's trials count as one cluster.

Trials of one case resemble each other, so a hundred trials of ten cases tell less than a hundred
cases. What the cases' own pass rates show decides how much less.
"""

from collections.abc import Iterable, Sequence
from math import ceil, floor, sqrt

from greenroom.ledger.records import record
from greenroom.results.quantiles import Z

_EVEN = 2
"""Sides that differ by no more percentage points are said as one."""

Tally = tuple[int, int]
"""How many trials of a case passed, and of how many that were evaluated."""


@record
class Interval:
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
    """A share in percent, without the last digits that only the machine's arithmetic made."""
    return round(100 * share, 9)


def percent(share: float, digits: int = 1) -> str:
    """A share in percent; what is not quite all is never rounded up to 100 %."""
    rounded = round(share * 100, digits)
    short_of_all = 100 - 10**-digits
    return f"{min(rounded, short_of_all) if share < 1 else rounded:.{digits}f} %"


def wilson(share: float, count: float) -> Interval:
    """Wilson's interval for a share of `count` that know nothing of each other."""
    room = Z * Z / count
    middle = (share + room / 2) / (1 + room)
    half = Z / (1 + room) * sqrt(share * (1 - share) / count + room / (4 * count))
    # At the edges the formula is exact, the machine's arithmetic is not.
    low = 0.0 if share == 0 else max(0.0, middle - half)
    high = 1.0 if share == 1 else min(1.0, middle + half)
    return Interval(share, low, high)


def of_trials(passed: int, evaluated: int) -> Interval | None:
    """The interval of one case's own pass rate; None before its second trial."""
    return wilson(passed / evaluated, evaluated) if evaluated > 1 else None


def of_cases(tallies: Iterable[Tally]) -> Interval | None:
    """The interval of the pass rate over many cases; None with fewer than two evaluated ones.

    It is Wilson's at the number of independent trials that would be as sure. Where the trials of every
    case agree, or there is one of each, that is the number of cases.
    """
    found = [tally for tally in tallies if tally[1] > 0]
    if len(found) < 2:
        return None
    passed, evaluated = (sum(column) for column in zip(*found, strict=True))
    return wilson(passed / evaluated, _effective(found, passed))


def _effective(tallies: list[Tally], passed: int) -> float:
    """How many independent trials would be as sure as these: no fewer than cases, played alike."""
    evaluated = sum(count for _, count in tallies)
    if passed in (0, evaluated):
        return len(tallies)
    # Outcomes are yes or no, so cases cannot lie further apart than if all trials of each agreed.
    fewest = evaluated**2 / sum(count**2 for _, count in tallies)
    return max(fewest, min(_estimated(tallies), evaluated))


def _estimated(tallies: list[Tally]) -> float:
    """The same, as the cases' own pass rates show it.

    One case more that always passes and one that never does are seen with them. Without these, few cases
    that happen to lie close would pass for many, and one failed trial among many passed ones for proof
    that trials do not resemble each other.
    """
    usual = sum(count for _, count in tallies) / len(tallies)
    seen = [*tallies, (usual, usual), (0, usual)]
    share = sum(passed for passed, _ in seen) / sum(count for _, count in seen)
    alone = share * (1 - share) / cluster_variance(seen)
    return alone * len(tallies) / len(seen)


def cluster_variance(tallies: Sequence[tuple[float, float]]) -> float:
    """The variance of the pass rate if cases, not trials, were drawn; corrected for few cases."""
    cases, evaluated = len(tallies), sum(count for _, count in tallies)
    share = sum(passed for passed, _ in tallies) / evaluated
    spread = sum((passed - share * count) ** 2 for passed, count in tallies)
    return spread / evaluated**2 * cases / (cases - 1)
