"""Gates decided over and over on made-up agents: each case has a chance to pass, then and now."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

from greenroom import Report, Score
from greenroom.results import CaseResult, Gate
from greenroom.results.comparisons.changes import paired
from greenroom.results.comparisons.confirmation import MOST
from greenroom.results.comparisons.verdicts import confirming

Chances = Sequence[float]
_SCORES = {True: {"m": Score(1.0)}, False: {"m": Score(0.0)}}


@dataclass(frozen=True)
class Set:
    """Cases whose chances follow a Beta distribution: alike trials where `likeness` is high."""

    cases: int
    rate: float
    likeness: float = 0.3

    def drawn(self, dice: random.Random) -> list[float]:
        if not self.likeness:
            return [self.rate] * self.cases
        weight = 1 / self.likeness - 1
        good, bad = self.rate * weight, (1 - self.rate) * weight
        return [dice.betavariate(good, bad) for _ in range(self.cases)]


@dataclass(frozen=True)
class Mixture:
    """A share of cases with a low chance, the others always pass: the worst for a gate."""

    cases: int
    share: float
    chance: float

    def drawn(self, dice: random.Random) -> list[float]:
        low = round(self.cases * self.share)
        found = [self.chance] * low + [1.0] * (self.cases - low)
        dice.shuffle(found)
        return found


def played(dice: random.Random, chances: Chances, trials: int) -> Report:
    return Report(
        [
            _ended(f"c{n}", trial, dice.random() < chance)
            for n, chance in enumerate(chances)
            for trial in range(1, trials + 1)
        ],
        id="made up",
    )


def _ended(case_id: str, trial: int, passed: bool) -> CaseResult:
    status = "passed" if passed else "failed"
    return CaseResult(case_id=case_id, status=status, trial=trial, scores=_SCORES[passed])


@dataclass(frozen=True)
class Decided:
    """How one gate ended."""

    shut: bool
    regressed: Sequence[str]
    suspects: Sequence[str]
    extra: int
    """How many trials were played again."""


def decided(
    dice: random.Random,
    then: Chances,
    now: Chances,
    trials: tuple[int, int],
    *,
    confirm: bool = True,
) -> Decided:
    """Play a baseline and a run, play suspects again as a run does, and ask the gate."""
    baseline, report = played(dice, then, trials[0]), played(dice, now, trials[1])
    if confirm:
        report = replace(report, against=baseline.id, confirmed=_again(dice, baseline, report, now))
    changes = report.compare(baseline)
    return Decided(
        not Gate().decide(report, baseline).passed,
        [case.case_id for case in changes.regressed],
        [case.case_id for case in changes.suspects],
        len(report.confirmed),
    )


def _again(
    dice: random.Random, baseline: Report, report: Report, now: Chances
) -> tuple[CaseResult, ...]:
    suspects, found = confirming(paired(baseline, report).values(), MOST), list[CaseResult]()
    while due := suspects.due():
        for case_id in due:
            passed = dice.random() < now[int(case_id[1:])]
            suspects.take(case_id, passed)
            found.append(_ended(case_id, 100 + len(found), passed))
    return tuple(sorted(found, key=lambda result: (int(result.case_id[1:]), result.trial)))


def broken_at_random(dice: random.Random, chances: Chances, count: int) -> tuple[Chances, Chances]:
    """The same cases then and now, but for some that always passed and never do now."""
    then, now = list(chances), list(chances)
    for place in dice.sample(range(len(then)), count):
        then[place], now[place] = 1.0, 0.0
    return then, now
