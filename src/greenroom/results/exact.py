"""Exact tests: how likely counts are by luck alone, without assuming that there are many of them."""

from math import comb

ALPHA = 0.05
"""A difference is believed if luck alone would show as great a one at most this often."""


def fisher(passed: int, total: int, passed_then: int, total_then: int) -> float:
    """How likely two shares differ this much or more if both sides are equally good.

    Fisher's exact test with two sides: all tables with the same margins that are no likelier.
    """
    good, everything = passed + passed_then, total + total_then
    ways = [
        comb(total, k) * comb(total_then, good - k)
        for k in range(max(0, good - total_then), min(total, good) + 1)
    ]
    seen = comb(total, passed) * comb(total_then, passed_then)
    return min(1.0, sum(way for way in ways if way <= seen) / comb(everything, good))


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
