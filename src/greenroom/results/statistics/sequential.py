"""Whether a set of cases passes its bar, asked after every round and still right: a sequential test.

A round is one trial of every case. The cases are these and no others, each with its own chance
to pass; the set's rate is the mean of those chances. Looking after each round and stopping
when it looks good is wrong too often with an ordinary interval, so this one is a bet. Before a round each
case's outcome is guessed from its own trials so far. Bettors then stake a part of their money on the
cases passing more often than guessed, and pay a price that is fair if the set's rate is at the bar.
If it is there or below, no bettor can expect to gain, and the chance that the money ever grows 40-fold
is at most 1 in 40, whenever one looks (Ville's inequality).

The price is fair for every mixture of cases. The trials of a round are independent, so a stake on
each multiplies the money, on average, by the product of 1 + stake x (chance - guess) over the cases.
Among all sets of one rate that product is greatest where its factors are alike (the geometric mean
is never above the arithmetic one), and then it depends on the rate only. Cases that always end the
same are guessed right and cost nothing, so a set of steady cases is decided within a few rounds.
"""

from collections.abc import Iterable, Sequence
from math import exp, fsum, log
from typing import Literal

from msgspec import Struct, field

from greenroom.errors import BadInput
from greenroom.results.statistics.exact import ALPHA
from greenroom.results.statistics.intervals import Interval

Decision = Literal["passes", "misses", "open"]

_STAKES = (0.03, 0.1, 0.3, 0.6, 0.9)
"""One bettor each, with the same money. Below 1, so that none is ever ruined."""
_HALVINGS = 40


class _Alike(Struct, frozen=True):
    """Cases of a round with the same past: what was guessed of each, and how many passed."""

    guess: float
    count: int
    passed: int

    @property
    def mirrored(self) -> "_Alike":
        """These cases with passing and failing swapped."""
        return _Alike(1 - self.guess, self.count, self.count - self.passed)


class _Bets(Struct):
    """The gains of bets on a rate above some share, for any share that may be asked about."""

    cases: int
    gains: list[float] = field(default_factory=lambda: [0.0] * len(_STAKES))
    """The logarithm of what each bettor's money was multiplied by, before the price."""
    guesses: list[float] = field(default_factory=list[float])
    """The mean guess of each round, on which its price depends."""

    def settle(self, groups: Iterable[_Alike]) -> None:
        """Settle the bets of a finished round."""
        expected = 0.0
        for group in groups:
            expected += group.count * group.guess
            for place, stake in enumerate(_STAKES):
                won = group.passed * log(1 + stake * (1 - group.guess))
                lost = (group.count - group.passed) * log(1 - stake * group.guess)
                self.gains[place] += won + lost
        self.guesses.append(expected / self.cases)

    def against(self, share: float) -> float:
        """The logarithm of the bettors' money if the price is fair for a rate of `share`.

        It speaks against every lower rate as well: there the price is lower, and the money more.
        """
        return _mixed(
            gain - self.cases * fsum(log(1 + stake * (share - guess)) for guess in self.guesses)
            for stake, gain in zip(_STAKES, self.gains, strict=True)
        )

    def highest(self, enough: float, low: float, high: float) -> float:
        """The highest share between two that the bets speak against; `low` if there is none."""
        if self.against(high) >= enough:
            return high
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if self.against(middle) >= enough else (low, middle)
        return low


class Sequential:
    """Whether the pass rate of these cases reaches `bar`: trial by trial, until it is decided.

    It is wrong with a chance of at most `alpha`, half of it on each side, however often one looks
    and whenever one stops. What is decided stays decided. Only whole rounds count; a trial that
    comes early waits for its round, so the order in which trials end does not matter.
    """

    def __init__(self, bar: float, cases: Iterable[str], alpha: float = ALPHA) -> None:
        if not 0 <= bar <= 1:
            raise BadInput(f"bar={bar!r} is not a share; give 0 to 1, as in 0.9.")
        if not 0 < alpha < 1:
            raise BadInput(f"alpha={alpha!r} is not a chance to be wrong; give one such as 0.05.")
        self.bar = bar
        self.alpha = alpha
        self._enough = log(2 / alpha)
        self._trials: dict[str, list[bool]] = {case: [] for case in cases}
        self._begin()

    def _begin(self) -> None:
        cases = len(self._trials)
        self.rounds = 0
        """How many whole rounds were counted."""
        self._verdict: Decision = "open"
        self._passed = 0
        self._above, self._below = _Bets(cases), _Bets(cases)
        self._missing = self._short()

    def add(self, case_id: str, passed: bool) -> None:
        """Count a trial that was evaluated. One that broke does not count: the case needs another."""
        trials = self._known(case_id)
        trials.append(passed)
        if len(trials) == self.rounds + 1:
            self._missing -= 1
            self._count_rounds()

    def leave_out(self, case_id: str) -> None:
        """Continue without a case that cannot be measured: the rate is that of the others.

        This may depend on what broke, never on what passed. Once decided, nothing changes.
        """
        self._known(case_id)
        if self._verdict == "open":
            del self._trials[case_id]
            self._begin()
            self._count_rounds()

    @property
    def verdict(self) -> Decision:
        """Whether the rate was shown to reach the bar, shown to miss it, or neither so far."""
        return self._verdict

    @property
    def share(self) -> float | None:
        """The share of counted trials that passed, in which every case weighs the same."""
        trials = len(self._trials) * self.rounds
        return self._passed / trials if trials else None

    @property
    def interval(self) -> Interval | None:
        """The rate and an interval that holds it whenever one looks; None before the first round.

        Its chance to be wrong, at any time in the whole run, is `alpha`.
        """
        share = self.share
        if share is None:
            return None
        low = _end(self._above, share, self.bar, self._enough)
        high = 1 - _end(self._below, 1 - share, 1 - self.bar, self._enough)
        return Interval(share, low, max(high, share))

    def evidence(self, share: float) -> tuple[float, float]:
        """How many times over bets on a rate above and on one below `share` have paid.

        If the rate is not above it the first is 1 or less on average, whenever one looks; the second
        if it is not below.
        """
        return exp(self._above.against(share)), exp(self._below.against(1 - share))

    def wanted(self) -> list[str]:
        """The cases of which another trial is worth its price; none once it is decided."""
        if self._verdict != "open":
            return []
        return [case for case, trials in self._trials.items() if len(trials) <= self.rounds]

    def _known(self, case_id: str) -> list[bool]:
        if case_id not in self._trials:
            raise BadInput(f"case {case_id!r} is not in this test; there are {list(self._trials)}.")
        return self._trials[case_id]

    def _short(self) -> int:
        return sum(len(trials) <= self.rounds for trials in self._trials.values())

    def _count_rounds(self) -> None:
        while self._trials and self._verdict == "open" and not self._missing:
            groups = self._groups()
            self._above.settle(groups)
            self._below.settle(group.mirrored for group in groups)
            self._passed += sum(group.passed for group in groups)
            self.rounds += 1
            self._verdict = self._decided()
            self._missing = self._short()

    def _groups(self) -> list[_Alike]:
        """The cases of a round, grouped by how often they passed before; no guess uses later trials."""
        before = self.rounds
        counts, passed = [0] * (before + 1), [0] * (before + 1)
        for trials in self._trials.values():
            place = sum(trials[:before])
            counts[place] += 1
            passed[place] += trials[before]
        # A case is guessed from the set so far, and more and more from its own trials.
        whole = (self.bar + self._passed) / (1 + before * len(self._trials))
        return [
            _Alike((place + whole) / (before + 1), count, passed[place])
            for place, count in enumerate(counts)
            if count
        ]

    def _decided(self) -> Decision:
        share = self.share or 0.0
        if share >= self.bar and (self.bar == 0 or self._above.against(self.bar) >= self._enough):
            return "passes"
        # Cases that always pass never fail: one failure shows that a bar of 1 is missed.
        if share < self.bar and (
            self.bar == 1 or self._below.against(1 - self.bar) >= self._enough
        ):
            return "misses"
        return "open"


def show_together(tests: "Sequence[Sequential]", bar: float) -> bool:
    """Whether tests of different cases, each stopped by itself, show that the rate of all their cases reaches `bar`.

    It is wrong with a chance of at most half the tests' `alpha`. How the rate is spread over the tests is
    unknown, so each bettor pays the highest price of any spread.
    """
    if bar <= 0:
        return True
    all_bets = [test._above for test in tests]  # pyright: ignore[reportPrivateUsage]
    if bar >= 1 or not tests or not all(bets.guesses for bets in all_bets):
        return False
    passing = bar * sum(bets.cases for bets in all_bets)
    money = _mixed(
        fsum(bets.gains[place] for bets in all_bets) - _highest_price(all_bets, stake, passing)
        for place, stake in enumerate(_STAKES)
    )
    return money >= log(2 / max(test.alpha for test in tests))


def _highest_price(all_bets: Sequence[_Bets], stake: float, passing: float) -> float:
    """The logarithm of the highest fair price if so many of all cases pass on average.

    The rounds of a test count as that many of its mean guess, which is never cheaper. Then the price is
    highest where one more passing case costs the same in each test, which is found by halving.
    """
    rounds = [len(bets.guesses) for bets in all_bets]
    guesses = [fsum(bets.guesses) / len(bets.guesses) for bets in all_bets]

    def rates(level: float) -> list[float]:
        found = zip(guesses, rounds, strict=True)
        return [min(1.0, max(0.0, guess + count * level - 1 / stake)) for guess, count in found]

    low, high = 0.0, 1 + 1 / stake
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        expected = fsum(
            bets.cases * rate for bets, rate in zip(all_bets, rates(middle), strict=True)
        )
        low, high = (middle, high) if expected < passing else (low, middle)
    return fsum(
        bets.cases * count * log(1 + stake * (rate - guess))
        for bets, count, guess, rate in zip(all_bets, rounds, guesses, rates(high), strict=True)
    )


def _mixed(money: Iterable[float]) -> float:
    """The logarithm of the mean money of the bettors, from the logarithm of each one's."""
    found = list(money)
    best = max(found)
    return best + log(fsum(exp(one - best) for one in found) / len(found))


def _end(bets: _Bets, share: float, bar: float, enough: float) -> float:
    """The lower end of the interval around `share`; the side of the bar is already known."""
    if share >= bar and bets.against(bar) >= enough:
        return bets.highest(enough, bar, share)
    return bets.highest(enough, 0.0, min(bar, share))
