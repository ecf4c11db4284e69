"""Exact tests: how likely counts are by luck alone, without assuming that there are many of them."""

from collections.abc import Sequence
from functools import lru_cache
from math import comb, gcd, lcm, sqrt

from greenroom.results.quantiles import normal

ALPHA = 0.05
"""A difference is believed if luck alone would show as great a one at most this often."""

_FINE = 1000
_COARSEST = 20
_WORK = 2_000_000


def fisher(passed: int, total: int, passed_then: int, total_then: int) -> float:
    """How likely two shares differ this much or more if both sides are equally good.

    Fisher's exact test with two sides: all tables with the same margins that are no likelier.
    """
    good = passed + passed_then
    seen = comb(total, passed) * comb(total_then, passed_then)
    likely = sum(way for way in _tables(good, total, total_then) if way <= seen)
    return min(1.0, likely / comb(total + total_then, good))


def fisher_floor(good: int, total: int, total_then: int) -> float:
    """The least that Fisher's test could say, however these `good` ones were shared out."""
    return min(1.0, min(_tables(good, total, total_then)) / comb(total + total_then, good))


def _tables(good: int, total: int, total_then: int) -> list[int]:
    """In how many ways each table with these margins comes about."""
    first, last = max(0, good - total_then), min(total, good)
    return [comb(total, k) * comb(total_then, good - k) for k in range(first, last + 1)]


def sign(better: int, worse: int) -> float:
    """How likely pairs that changed are split so unevenly if each may go either way.

    For pairs of one trial each this is McNemar's exact test.
    """
    pairs, few = better + worse, min(better, worse)
    if pairs == 0:
        return 1.0
    return min(1.0, 2 * sum(comb(pairs, k) for k in range(few + 1)) / 2**pairs)


def apart(count: int, count_then: int) -> float:
    """How likely every value of one side lies beyond every value of the other by luck alone."""
    return min(1.0, 2 / comb(count + count_then, count))


def holm(ps: Sequence[float]) -> list[float]:
    """Each p for as many questions as were asked at once, after Holm; in the same order."""
    found, highest = [0.0] * len(ps), 0.0
    for rank, place in enumerate(sorted(range(len(ps)), key=ps.__getitem__)):
        highest = max(highest, min(1.0, (len(ps) - rank) * ps[place]))
        found[place] = highest
    return found


# Pairs


def flips(differences: Sequence[tuple[int, int]]) -> float:
    """How likely pairs differ so much in sum if each might as well have differed the other way.

    The differences are fractions, as (numerator, denominator). All sign flips are counted, none
    are drawn; where every difference is as great as the others this is the sign test.
    """
    common = lcm(*(below for _, below in differences)) if differences else 1
    return _flipped(_units([above * (common // below) for above, below in differences]))


def flips_of_values(differences: Sequence[float]) -> float:
    """The same for measured values, to a thousandth of the greatest difference."""
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


@lru_cache(maxsize=256)
def _flipped(differences: tuple[int, ...]) -> float:
    sizes, seen = sorted(map(abs, differences)), abs(sum(differences))
    if not sizes or seen == 0:
        return 1.0
    if sizes[0] == sizes[-1]:
        up = sum(value > 0 for value in differences)
        return sign(up, len(sizes) - up)
    if sum(sizes) * len(sizes) > _WORK:
        # Hundreds of pairs: their sum is as good as normal.
        return 2 * normal(-seen / sqrt(sum(size * size for size in sizes)))
    return _as_far(sizes, seen)


def _as_far(sizes: Sequence[int], seen: int) -> float:
    """The share of all sign flips whose sum is at least `seen` away from nothing."""
    chances = [1.0]
    for size in sizes:
        # Index n stands for the n-th step up from all flips down; each flip moves by twice its size.
        pad = [0.0] * size
        chances = [
            (down + up) / 2 for down, up in zip([*chances, *pad], [*pad, *chances], strict=True)
        ]
    total = sum(sizes)
    return min(1.0, sum(c for n, c in enumerate(chances) if abs(2 * n - total) >= seen))
