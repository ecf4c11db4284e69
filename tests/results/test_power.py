"""What a comparison may claim: error rates that hold, and changes that would have been noticed."""

import random
from fractions import Fraction
from importlib import import_module
from itertools import product
from math import comb
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from greenroom import Report
from greenroom.results import CaseResult, compare
from greenroom.results.comparisons.comparison import SET_ALPHA
from greenroom.results.statistics.exact import (
    ALPHA,
    fisher,
    fisher_floor,
    flips_of_values,
    holm,
    sign,
    stratified,
)
from greenroom.results.statistics.power import detectable

stats: Any = import_module("scipy.stats")  # reading its types would take seconds

COUNTS = st.tuples(st.integers(0, 12), st.integers(0, 12)).filter(lambda pair: sum(pair) > 0)


def report(tallies: list[tuple[int, int]], **more) -> Report:
    return Report(
        [
            CaseResult(
                case_id=f"c{case}",
                status="passed" if n < passed else "failed",
                trial=n + 1,
                ended="completed",
                **more,
            )
            for case, (passed, evaluated) in enumerate(tallies)
            for n in range(evaluated)
        ]
    )


# Beside scipy and statsmodels


@given(COUNTS, COUNTS)
def test_fishers_test_is_that_of_scipy(now, then):
    _, wanted = stats.fisher_exact([now, then])
    found = fisher(now[0], sum(now), then[0], sum(then))
    assert found == pytest.approx(wanted, abs=1e-12)
    assert fisher_floor(now[0] + then[0], sum(now), sum(then)) <= found + 1e-12


@given(st.integers(0, 40), st.integers(0, 40))
def test_the_sign_test_is_scipys_binomial_test(better, worse):
    if better + worse:
        wanted = stats.binomtest(better, better + worse).pvalue
        assert sign(better, worse) == pytest.approx(wanted, abs=1e-12)


@given(st.lists(st.integers(-5, 5), min_size=2, max_size=9))
@example([-1, -1, 2, 3])  # thirds of the greatest: equal sums must stay equal
def test_flipping_signs_is_scipys_paired_permutation_test(steps):
    def total(values, axis):
        return values.sum(axis=axis)

    wanted = stats.permutation_test(
        ([float(step) for step in steps],),
        total,
        permutation_type="samples",
        n_resamples=10_000,
        vectorized=True,
    )
    # Scipy doubles the smaller tail; the distribution is symmetric, so both are the same.
    found = flips_of_values([float(step) for step in steps])
    assert found == pytest.approx(min(1.0, wanted.pvalue), abs=1e-9)


def test_holms_correction_is_that_of_statsmodels():
    # multipletests(…, method="holm") of statsmodels 0.15.0.
    found = holm([0.01, 0.04, 0.03, 0.005, 0.2, 0.005])
    assert found == pytest.approx([0.04, 0.09, 0.09, 0.03, 0.2, 0.03])
    assert holm([]) == []
    assert holm([0.9, 0.8]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), min_size=1, max_size=20))
def test_holms_correction_keeps_the_order_and_never_claims_more(ps):
    found = holm(ps)
    assert all(raw <= adjusted <= 1 for raw, adjusted in zip(ps, found, strict=True))
    ranked = [adjusted for _, adjusted in sorted(zip(ps, found, strict=True))]
    assert ranked == sorted(ranked)


# Flips


def test_all_flips_are_counted():
    steps = [3, -1, 4, 1, -5, 9, 2]
    sums = [
        abs(sum(s * x for s, x in zip(signs, steps, strict=True)))
        for signs in product((1, -1), repeat=7)
    ]
    wanted = sum(found >= abs(sum(steps)) for found in sums) / 2**7
    assert flips_of_values([step * 1000 / 9 for step in steps]) == pytest.approx(wanted)


# Trials dealt again within each case


Tallies = tuple[int, int, int, int]


@given(st.integers(0, 25), st.integers(0, 25), st.integers(0, 9))
def test_with_one_trial_on_each_side_it_is_the_sign_test(fell, rose, stayed):
    cases = [(1, 1, 0, 1)] * fell + [(0, 1, 1, 1)] * rose + [(1, 1, 1, 1)] * stayed
    tails = stratified(cases)
    assert min(1.0, 2 * min(tails)) == pytest.approx(sign(fell, rose))


def tallies(most: int = 4) -> st.SearchStrategy[Tallies]:
    side = st.integers(1, most).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
    return st.tuples(side, side).map(lambda sides: (*sides[0], *sides[1]))


def dealt(cases: list[Tallies]) -> tuple[float, float]:
    """The same by counting every way to deal the trials of each case."""
    sums = {Fraction(0): Fraction(1)}
    seen = Fraction(0)
    for then, of_then, now, of_now in cases:
        good, everything = then + now, of_then + of_now
        seen += Fraction(now, of_now) - Fraction(then, of_then)
        found: dict[Fraction, Fraction] = {}
        for k in range(max(0, good - of_then), min(good, of_now) + 1):
            ways = Fraction(comb(of_now, k) * comb(of_then, good - k), comb(everything, good))
            move = Fraction(k, of_now) - Fraction(good - k, of_then)
            for total, chance in sums.items():
                found[total + move] = found.get(total + move, Fraction(0)) + chance * ways
        sums = found
    low = sum(chance for total, chance in sums.items() if total <= seen)
    return float(low), float(sum(chance for total, chance in sums.items() if total >= seen))


@given(st.lists(tallies(), min_size=1, max_size=7))
def test_it_agrees_with_counting_every_way_to_deal_the_trials(cases):
    assert stratified(cases) == pytest.approx(dealt(cases), abs=1e-9)


def test_it_agrees_with_scipys_permutation_test_within_cases():
    dice = random.Random(3)
    for _ in range(40):
        then, now = dice.randint(2, 4), dice.randint(2, 4)
        first = [int(dice.random() < 0.7) for _ in range(then)]
        second = [int(dice.random() < 0.5) for _ in range(now)]
        wanted = stats.permutation_test(
            (second, first), lambda a, b: sum(a) / len(a) - sum(b) / len(b), alternative="less"
        )
        assert stratified([(sum(first), then, sum(second), now)])[0] == pytest.approx(wanted.pvalue)


@given(st.lists(tallies(12), min_size=1, max_size=12))
def test_both_tails_are_shares_and_mirror_each_other(cases):
    fell, rose = stratified(cases)
    assert 0 < fell <= 1
    assert 0 < rose <= 1
    mirrored = stratified([(now, of_now, then, of_then) for then, of_then, now, of_now in cases])
    assert mirrored == pytest.approx((rose, fell))


def test_hundreds_of_cases_with_many_trials_are_nearly_normal_and_quick():
    dice = random.Random(31)
    cases = [(dice.randint(4, 10), 10, dice.randint(4, 10), 10) for _ in range(700)]
    few = cases[:90]
    exact = stratified(few)[0]
    moves = [now / 10 - then / 10 for then, _, now, _ in few]
    spread = sum((t + n) / 20 * (1 - (t + n) / 20) * 4 / 19 for t, _, n, _ in few) ** 0.5
    assert exact == pytest.approx(stats.norm.cdf(sum(moves) / spread), abs=0.02)
    assert 0 < stratified(cases)[0] < 1


def test_hundreds_of_pairs_come_close_to_the_normal_distribution():
    dice = random.Random(5)
    steps = [dice.gauss(0.1, 1) for _ in range(1500)]
    z = sum(steps) / sum(step * step for step in steps) ** 0.5
    assert flips_of_values(steps) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=1e-2)
    some = steps[:250]
    z = sum(some) / sum(step * step for step in some) ** 0.5
    assert flips_of_values(some) == pytest.approx(2 * stats.norm.sf(abs(z)), rel=0.1)


@given(st.lists(st.floats(-1, 1), max_size=30))
def test_a_p_is_a_share_and_does_not_know_which_side_is_which(values):
    p = flips_of_values(values)
    assert 0 < p <= 1
    assert p == pytest.approx(flips_of_values([-value for value in values]))


# Many cases at once


def test_one_clear_case_among_steady_ones_is_still_told():
    then = [(5, 5)] * 40
    found = compare(report(then), report([(0, 5), *then[1:]]))
    assert [case.case_id for case in found.regressed] == ["c0"]
    assert found.cases[0].adjusted == found.cases[0].p == pytest.approx(2 / 252)


def test_the_same_among_many_wavering_ones_is_not():
    then, now = [(5, 5)] + [(3, 5)] * 20, [(0, 5)] + [(2, 5)] * 20
    case = compare(report(then), report(now)).cases[0]
    assert case.verdict == "suspect"
    assert case.adjusted == pytest.approx(21 * 2 / 252)
    assert case.why == (
        "passed 5 of 5 before, 0 of 5 now (p = 0.0079): too few trials to tell among this many cases (0.17)"
    )


def test_many_small_losses_show_in_the_whole_where_no_case_tells():
    found = compare(report([(5, 5)] * 12), report([(4, 5)] * 10 + [(5, 5)] * 2))
    assert found.regressed == []
    assert (found.trend, found.verdict) == ("worse", "regressed")
    assert found.p == pytest.approx(2 / 2**10)
    assert "100 % -> 83 %" in str(found)
    assert "significantly worse (p = " in str(found)
    assert found.pass_rate is not None
    assert found.pass_rate.delta == pytest.approx(-10 / 60)


def same(dice: random.Random, cases: int, trials: int) -> tuple[list, list]:
    """Two plays of the same cases, each with a chance of its own."""
    sides: tuple[list, list] = ([], [])
    for _ in range(cases):
        rate = dice.betavariate(2, 0.7)
        for side in sides:
            side.append(sum(dice.random() < rate for _ in range(trials)))
    return sides


@pytest.mark.parametrize("cases, trials", [(12, 5), (40, 1), (40, 5), (25, 3)])
def test_chance_alone_is_seldom_called_a_change_of_the_whole(cases, trials, times):
    dice, rounds = random.Random(13), 600 * times
    wrong = 0
    for _ in range(rounds):
        then, now = same(dice, cases, trials)
        tails = stratified([(a, trials, b, trials) for a, b in zip(then, now, strict=True)])
        wrong += 2 * min(tails) <= SET_ALPHA
    assert 0.005 <= wrong / rounds <= 0.05


def test_chance_alone_seldom_makes_any_case_look_changed(times):
    dice, rounds = random.Random(17), 60 * times
    wrong = without = 0
    for _ in range(rounds):
        rates = [dice.betavariate(1, 1) for _ in range(40)]
        then, now = ([(sum(dice.random() < r for _ in range(12)), 12) for r in rates] for _ in "ab")
        found = compare(report(then), report(now))
        wrong += bool(found.regressed or found.improved)
        without += any(case.p is not None and case.p <= ALPHA for case in found.cases)
    assert wrong / rounds <= 0.05
    assert without / rounds > 0.2


# What would have been noticed


@pytest.mark.parametrize("cases, trials", [(40, 5), (60, 1), (20, 10), (30, 3)])
def test_the_smallest_change_that_counts_is_noticed_four_times_in_five(cases, trials, times):
    dice, rounds = random.Random(19), 400 * times

    def one(loss: float) -> list[Tallies]:
        found: list[Tallies] = []
        for _ in range(cases):
            own = dice.betavariate(2, 0.5)
            then = sum(dice.random() < own for _ in range(trials))
            now = sum(dice.random() < own * (1 - loss / 0.8) for _ in range(trials))
            found.append((then, trials, now, trials))
        return found

    def moves() -> list[float]:
        return [(now - then) / trials for then, _, now, _ in one(0)]

    told = sorted(detectable(moves(), trials) or 1 for _ in range(100))[50]
    noticed = sum(2 * stratified(one(told))[0] <= SET_ALPHA for _ in range(rounds)) / rounds
    assert 0.7 <= noticed <= 0.92


def test_fewer_than_six_cases_could_show_nothing():
    assert detectable([0.0] * 5, 1) is None
    assert detectable([0.0] * 6, 1) == pytest.approx(0.8 ** (1 / 6))
    assert compare(report([(1, 1)] * 3), report([(0, 1)] * 3)).detectable is None


def test_more_cases_and_more_trials_notice_smaller_changes():
    found = [detectable([0.0] * cases, 1) or 1 for cases in (6, 20, 50, 200)]
    assert found == sorted(found, reverse=True)
    assert (detectable([0.0] * 50, 5) or 1) < (detectable([0.0] * 50, 1) or 0)


def test_where_the_whole_is_unclear_it_says_what_it_could_have_noticed():
    then, now = [(1, 1)] * 30, [(0, 1)] * 3 + [(1, 1)] * 27
    text = str(compare(report(then), report(now)))
    assert "no significant change; 30 cases would show a drop of" in text
    assert "points in 4 of 5 runs" in text


# Cost and time


def test_cost_and_time_of_a_trial_are_compared():
    then = report([(1, 2)] * 8, cost=0.01, seconds=2.0)
    now = report([(1, 2)] * 8, cost=0.02, seconds=1.0)
    found = compare(then, now)
    assert found.cost is not None
    assert found.seconds is not None
    assert (found.cost.before, found.cost.now) == (pytest.approx(0.01), pytest.approx(0.02))
    assert found.seconds.delta == pytest.approx(-1)
    assert found.cost.p == found.seconds.p == sign(8, 0)
    text = str(found)
    assert "cost per trial: $0.0100 before, $0.0200 now" in text
    assert "seconds per trial: 2.00 before, 1.00 now" in text
    wanted = {"before": 2.0, "now": 1.0, "delta": -1.0, "p": sign(8, 0), "cases": 8}
    assert found.data()["seconds"] == wanted


def test_an_unknown_price_is_no_change():
    found = compare(report([(1, 1)] * 8, cost=None), report([(1, 1)] * 8, cost=0.02))
    assert found.cost is None
    assert found.data()["cost"] is None
    assert "cost per trial" not in str(found)
