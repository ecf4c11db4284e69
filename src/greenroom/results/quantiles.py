"""Student's t and the normal distribution: the few figures of them that intervals and tests need."""

from functools import lru_cache
from math import atan, cos, erfc, pi, sin, sqrt

Z = 1.959963984540054
"""How many standard errors a 95 % interval reaches to each side."""
Z_POWER = 0.8416212335729143
"""How many more it takes to notice a difference four times in five."""

_MANY = 200
_STEPS = 60


def normal(z: float) -> float:
    """How likely a standard normal value lies below `z`."""
    return erfc(-z / sqrt(2)) / 2


@lru_cache(maxsize=1024)
def student(freedom: int) -> float:
    """How many standard errors a 95 % interval reaches with so many degrees of freedom."""
    if freedom > _MANY:
        return _expanded(freedom)
    low, high = Z, 13.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if _within(middle, freedom) > 0.95 else (middle, high)
    return high


def _within(t: float, freedom: int) -> float:
    """How likely Student's t lies between -t and t; the sum is finite for whole degrees of freedom."""
    angle = atan(t / sqrt(freedom))
    odd = freedom % 2
    term = cos(angle) if odd else 1.0
    total = term if freedom > 1 else 0.0
    for k in range(3 if odd else 2, freedom - 1, 2):
        term *= cos(angle) ** 2 * (k - 1) / k
        total += term
    return 2 / pi * (angle + sin(angle) * total) if odd else sin(angle) * total


def _expanded(freedom: int) -> float:
    """The expansion of Cornish and Fisher about the normal distribution."""
    z = Z
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
    )
    return z + sum(term / freedom ** (n + 1) for n, term in enumerate(terms))
