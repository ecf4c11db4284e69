"""Rates of a stream that is watched continuously: intervals that hold at every look, and drift.

An ordinary interval is wrong too often if one looks again and again. This one is a bet against every rate:
the money of a bettor who mixes all rates evenly, against one who knows the rate. It grows 20-fold with a
chance of at most 1 in 20, whenever one looks (Ville's inequality), so rates against which it did are ruled out.
"""

from dataclasses import dataclass, field
from math import lgamma, log

from greenroom.results.statistics.exact import ALPHA
from greenroom.results.statistics.intervals import Interval

_HALVINGS = 50
_STAKES = (0.05, 0.2, 0.5, 0.9)
_SUREST = 0.999


@dataclass(slots=True)
class StreamRate:
    """How often something holds, counted one by one."""

    held: int = 0
    total: int = 0

    def add(self, holds: bool) -> None:
        """Count one more."""
        self.held += holds
        self.total += 1

    @property
    def share(self) -> float | None:
        """The share so far; None if nothing was counted."""
        return self.held / self.total if self.total else None

    def interval(self, alpha: float = ALPHA) -> Interval | None:
        """Where the rate is, right at every look together; None if nothing was counted."""
        share = self.share
        if share is None:
            return None
        low = 0.0 if not self.held else self._end(0.0, share, alpha)
        high = 1.0 if self.held == self.total else self._end(1.0, share, alpha)
        return Interval(share, low, high)

    def _end(self, outside: float, inside: float, alpha: float) -> float:
        for _ in range(_HALVINGS):
            middle = (outside + inside) / 2
            if self._money(middle) >= -log(alpha):
                outside = middle
            else:
                inside = middle
        return outside

    def _money(self, rate: float) -> float:
        """The logarithm of what a bet against this rate has grown to."""
        won, lost = self.held, self.total - self.held
        mixed = lgamma(won + 1) + lgamma(lost + 1) - lgamma(self.total + 2)
        if (won and rate <= 0) or (lost and rate >= 1):
            return float("inf")
        return mixed - (won * log(rate) if won else 0.0) - (lost * log(1 - rate) if lost else 0.0)


@dataclass(slots=True)
class Drift:
    """Notices that something holds less often than at `rate`.

    While it holds as often, an alarm comes on average no sooner than every `patience` times. That is an
    average, and no promise of silence.
    """

    rate: float
    patience: int = 10_000
    money: list[float] = field(default_factory=lambda: [0.0] * len(_STAKES))

    def add(self, holds: bool) -> bool:
        """Count one more; whether that is an alarm, after which it begins again."""
        rate = min(self.rate, _SUREST)
        gain = (rate - holds) / (1 - rate)
        self.money = [
            (money + 1) * (1 + stake * gain)
            for money, stake in zip(self.money, _STAKES, strict=True)
        ]
        if sum(self.money) / len(self.money) < self.patience:
            return False
        self.money = [0.0] * len(_STAKES)
        return True
