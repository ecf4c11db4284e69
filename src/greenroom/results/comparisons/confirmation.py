"""Which cases that passed before and fail now are run again, and for how long.

A *suspect* passed every trial of the baseline and failed every trial now. That may be chance: a case
that often fails was lucky then. So it is run again, round by round. One pass clears it. How
many failures prove a change depends on how many cases fail on both sides: only a case that mostly
fails can fail many times in a row, and such cases mostly fail on both sides. The proof is in
docs/why/statistics.md.
"""

from collections.abc import Mapping
from math import comb, exp, inf, log

from msgspec import Struct

MOST = 30
"""How often a suspect is run again at most."""
ALONE = 0.015
"""The share of runs without a change in which a single case may be named wrongly."""
GROUP = 0.01
"""The share of such runs in which several may be."""
FEW_FAILING = 5
"""With at most this many cases that fail on both sides, a suspect that failed `MOST` times is believed."""
PATIENCE = 3
"""After this many trials in a row that broke, a suspect is not run again."""

_EARLY, _PLACES = 2, 10
"""After this many more trials, this many suspects continue."""
_TOGETHER = 5
"""After this many more trials, those left are tested together."""


def rare(then: int, more: int) -> float:
    """How much likelier, at most, a case is to pass `then` times and fail `more` + 1 times than to fail twice.

    That is the greatest q^then * (1 - q)^(more - 1), whatever the case's own chance q to pass.
    """
    failed = more - 1
    return exp(_power(then) + _power(failed) - _power(then + failed))


def _power(count: int) -> float:
    """The logarithm of count to the power of count."""
    return count * log(count) if count else 0.0


def enough(then: int, failing: int) -> int:
    """After how many more failures one case has changed, if it passed `then` times before.

    `failing` is how many cases fail on both sides.
    """
    few, many = 0, 1
    while rare(then, many) * (failing + 1) > ALONE:
        few, many = many, 2 * many
    while many - few > 1:
        middle = (few + many) // 2
        if rare(then, middle) * (failing + 1) > ALONE:
            few = middle
        else:
            many = middle
    return many


def together(suspects: int, failing: int, chance: float) -> float:
    """How likely this many suspects are left if none has changed, each with at most this chance."""
    whole, share = suspects + failing, chance / (1 + chance)
    return sum(
        comb(whole, k) * share**k * (1 - share) ** (whole - k) for k in range(suspects, whole + 1)
    )


class Group(Struct, frozen=True):
    """Suspects that were tested together, and how likely this many are left if none has changed."""

    case_ids: tuple[str, ...]
    p: float


class Confirming:
    """Which suspects are due again, round by round, and the result for each.

    `then` says how often each suspect passed before, in the order of the set; `failing` how many cases
    failed on both sides; `now` how often each suspect failed already. Ask `due()`, run every case of
    it once, give each end to `take()`, and ask again until nothing is due. Nothing depends on the
    order in which trials of a round end, so an interrupted run asks for the same trials again.
    """

    def __init__(
        self, then: Mapping[str, int], failing: int, *, now: int = 1, most: int = MOST
    ) -> None:
        self.failing = failing
        self.regressed: list[str] = []
        self.cleared: list[str] = []
        self.group: Group | None = None
        self.crowded_out: list[str] = []
        """Suspects that were not continued because too many were left."""
        self._then, self._now, self._most = dict(then), now, most
        self._active = list(then)
        self._failed = dict.fromkeys(then, 0)
        self._played = dict.fromkeys(then, 0)
        self._broke = dict.fromkeys(then, 0)
        self._stage = 0
        self._settle()

    @property
    def open(self) -> list[str]:
        """The suspects that are still undecided, in the order of the set."""
        decided = {*self.regressed, *self.cleared}
        return [case_id for case_id in self._then if case_id not in decided]

    def due(self) -> list[str]:
        """The cases to run once more, in the order of the set; none when everything is decided."""
        level = self._level
        return [case_id for case_id in self._active if self._failed[case_id] == level]

    def take(self, case_id: str, passed: bool | None) -> None:
        """Record how a trial that was due has ended; None if it broke, which is not an observation."""
        self._played[case_id] += 1
        if passed is None:
            self._broke[case_id] += 1
        elif passed:
            self._active.remove(case_id)
            self.cleared.append(case_id)
        else:
            self._broke[case_id] = 0
            self._failed[case_id] += 1
        self._settle()

    @property
    def _level(self) -> int:
        """How often every suspect that is still run has failed again."""
        return min((self._failed[case_id] for case_id in self._active), default=0)

    def _settle(self) -> None:
        """Decide what can be decided: each alone, and after some rounds all together."""
        for case_id in list(self._active):
            if self._failed[case_id] >= self._needed(case_id):
                self._active.remove(case_id)
                self.regressed.append(case_id)
        self._active = [c for c in self._active if self._broke[c] < PATIENCE]
        if self._stage < _EARLY <= self._level:
            self._stage = _EARLY
            self.crowded_out = self._active[_PLACES:]
            self._active = self._active[:_PLACES]
        if self._stage < _TOGETHER <= self._level:
            self._stage = _TOGETHER
            least = min(self._then[case_id] for case_id in self._active)
            chance = rare(least, _TOGETHER + self._now - 1)
            p = together(len(self._active), self.failing, chance)
            if p <= GROUP:
                self.group = Group(tuple(self._active), p)
                self.regressed += self._active
                self._active = []
        self._active = [c for c in self._active if self._played[c] < self._most]

    def _needed(self, case_id: str) -> float:
        """How many more failures prove that this case has changed."""
        needed = enough(self._then[case_id], self.failing) - (self._now - 1)
        if needed <= MOST:
            return needed
        # Beyond the proof, and within what simulations show: see docs/why/statistics.md.
        return MOST if self.failing <= FEW_FAILING else needed if needed <= self._most else inf
