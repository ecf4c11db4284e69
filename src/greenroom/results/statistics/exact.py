"""Exact tests: how likely counts are if nothing changed, without assuming that there are many."""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from math import comb, fsum, gcd, lcm, sqrt

from greenroom.results.statistics.intervals import normal

ALPHA = 0.05
"""A difference is believed if chance alone would show as great a one at most this often."""

_FINE = 27_720
"""A multiple of 1 to 12: shares of up to twelve parts stay exact, so that equal sums stay equal."""
_COARSEST = 20
_WORK = 2_000_000


@lru_cache(maxsize=1024)
def fisher(passed: int, total: int, passed_then: int, total_then: int) -> float:
    """How likely two shares are to differ this much or more if both sides are equally good.

    Fisher's two-sided exact test: over all tables with the same margins that are no likelier.
    """
    good = passed + passed_then
    seen = comb(total, passed) * comb(total_then, passed_then)
    likely = sum(way for way in _tables(good, total, total_then) if way <= seen)
    return min(1.0, likely / comb(total + total_then, good))


def fisher_floor(good: int, total: int, total_then: int) -> float:
    """The smallest p that Fisher's test could give, however these `good` ones were distributed."""
    return min(1.0, min(_tables(good, total, total_then)) / comb(total + total_then, good))


def _tables(good: int, total: int, total_then: int) -> list[int]:
    """The number of ways in which each table with these margins can arise."""
    first, last = max(0, good - total_then), min(total, good)
    return [comb(total, k) * comb(total_then, good - k) for k in range(first, last + 1)]


def sign(better: int, worse: int) -> float:
    """How likely changed pairs are to split this unevenly if each may go either way.

    For pairs of one trial each this is McNemar's exact test.
    """
    pairs, few = better + worse, min(better, worse)
    if pairs == 0:
        return 1.0
    ways, split = 0, 1
    for k in range(few + 1):
        ways += split
        split = split * (pairs - k) // (k + 1)  # the next binomial coefficient
    return min(1.0, 2 * ways / 2**pairs)


def holm(ps: Sequence[float]) -> list[float]:
    """Each p corrected for the number of tests made at once (Holm), in the same order."""
    found, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = highest
    return found


# Cases with several trials on both sides


Tallies = tuple[int, int, int, int]
"""The counts of one case: how many trials passed and how many were evaluated, then and now."""


def stratified(cases: Iterable[Tallies]) -> tuple[float, float]:
    """How likely the mean pass rate is to fall this far, and to rise this far, if nothing changed.

    If nothing changed, it is chance which of a case's trials ran now. So the trials of each
    case are redistributed in all possible ways, and every case counts once. With one trial on each side this is
    McNemar's one-sided exact test.
    """
    telling = Counter(case for case in cases if 0 < case[0] + case[2] < case[1] + case[3])
    return _dealt(tuple(sorted(telling.items())))


@lru_cache(maxsize=256)
def _dealt(cases: tuple[tuple[Tallies, int], ...]) -> tuple[float, float]:
    if not cases:
        return 1.0, 1.0
    weights = _weights([case for case, _ in cases], [count for _, count in cases])
    strata = [_Stratum(case, weight) for (case, _), weight in zip(cases, weights, strict=True)]
    counts = [count for _, count in cases]
    seen = sum(s.seen * count for s, count in zip(strata, counts, strict=True))
    span = sum(s.span * count for s, count in zip(strata, counts, strict=True))
    terms = sum(len(s.chances) * count for s, count in zip(strata, counts, strict=True))
    if span * terms > 2 * _WORK:
        # The sum of hundreds of cases is nearly normal; corrected for its steps.
        mean = fsum(s.mean * count for s, count in zip(strata, counts, strict=True))
        spread = sqrt(fsum(s.variance * count for s, count in zip(strata, counts, strict=True)))
        half = gcd(*(s.weight for s in strata)) / 2
        return normal((seen - mean + half) / spread), normal((mean - seen + half) / spread)
    found = [1.0]
    for stratum, count in zip(strata, counts, strict=True):
        for _ in range(count):
            found = stratum.added_to(found)
    return min(1.0, fsum(found[: seen + 1])), min(1.0, fsum(found[seen:]))


class _Stratum:
    """One case: how many of its passed trials could fall on the current side, and how likely each number is."""

    def __init__(self, case: Tallies, weight: int) -> None:
        passed_then, total_then, passed, total = case
        good, everything = passed + passed_then, total + total_then
        first = max(0, good - total_then)
        whole = comb(everything, good)
        self.chances = [way / whole for way in _tables(good, total, total_then)]
        self.weight = weight
        self.seen = weight * (passed - first)
        self.span = weight * (len(self.chances) - 1)
        share = good / everything
        self.mean = weight * (total * share - first)
        spread = share * (1 - share) * total * total_then / (everything - 1)
        self.variance = weight**2 * spread

    def added_to(self, before: list[float]) -> list[float]:
        """The chances of all sums with this case among them."""
        found = [0.0] * (len(before) + self.span)
        for number, chance in enumerate(self.chances):
            at = number * self.weight
            for place, other in enumerate(before, start=at):
                found[place] += chance * other
        return found


def _weights(cases: Sequence[Tallies], counts: Sequence[int]) -> list[int]:
    """How much one more passed trial moves each case's difference of pass rates, in whole numbers.

    They are rounded where exact ones would take too long: a test of rounded differences is still
    exact, since rounding does not know which side is which.
    """
    common = lcm(*(then * now for _, then, _, now in cases))
    found = [common * (then + now) // (then * now) for _, then, _, now in cases]
    unit = gcd(*found)
    found = [weight // unit for weight in found]
    sizes = [len(_tables(a + b, total, before)) - 1 for a, before, b, total in cases]
    steps = sum(size * count for size, count in zip(sizes, counts, strict=True))
    most = max(1, _WORK // (_COARSEST * max(1, steps)))
    if max(found) <= most:
        return found
    return [max(1, round(weight * most / max(found))) for weight in found]


# Pairs


def flips_of_values(differences: Sequence[float]) -> float:
    """How likely pairs are to differ this much in total if each might as well have differed the other way.

    All sign flips are counted, not sampled. Values are rounded to a small part of the greatest
    difference; shares of up to twelve parts are exact.
    """
    greatest = max(map(abs, differences), default=0.0)
    if greatest == 0:
        return 1.0
    return _flipped(_units([round(value / greatest * _FINE) for value in differences]))


def _units(differences: Sequence[int]) -> tuple[int, ...]:
    """Whole numbers without a common divisor; rounded where exact ones would take too long.

    A test of rounded differences is still exact: rounding does not know which side is which.
    """
    found = _reduced(differences)
    span, most = sum(map(abs, found)), _WORK // max(1, len(found))
    if span <= most or most < _COARSEST * len(found):
        return found
    coarse = span / (most - len(found))
    return _reduced([round(value / coarse) for value in found])


def _reduced(differences: Sequence[int]) -> tuple[int, ...]:
    unit = gcd(*differences) or 1
    return tuple(value // unit for value in differences if value)


def _flipped(differences: tuple[int, ...]) -> float:
    sizes, seen = sorted(map(abs, differences)), abs(sum(differences))
    if not sizes or seen == 0:
        return 1.0
    if sizes[0] == sizes[-1]:
        up = sum(value > 0 for value in differences)
        return sign(up, len(sizes) - up)
    if sum(sizes) * len(sizes) > _WORK:
        # Hundreds of pairs: their sum is nearly normal.
        return 2 * normal(-seen / sqrt(sum(size * size for size in sizes)))
    return _as_far(tuple(sizes), seen)


@lru_cache(maxsize=256)
def _as_far(sizes: tuple[int, ...], seen: int) -> float:
    """The share of all sign flips whose sum is at least `seen` away from 0."""
    # One number holds how many flips come to each sum, in fields so wide that none runs over; a flip
    # of one size moves all of them.
    width, ways = len(sizes) + 1, 1
    for size in sizes:
        ways += ways << size * width
    low = ways & ((1 << ((sum(sizes) - seen) // 2 + 1) * width) - 1)
    # What is left over from a division by the greatest field is the sum of all fields.
    return 2 * (low % ((1 << width) - 1)) / 2 ** len(sizes)
