"""What a comparison may claim: error rates that hold, and changes that would have been noticed."""

import random
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from greenroom import Report
from greenroom.results import CaseResult, compare
from greenroom.results.exact import ALPHA, fisher, fisher_floor, flips, flips_of_values, holm, sign
from greenroom.results.power import detectable

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
    assert flips([(step, 5) for step in steps]) == pytest.approx(min(1.0, wanted.pvalue), abs=1e-9)


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
    assert flips([(step, 10) for step in steps]) == pytest.approx(wanted)


def test_pairs_of_one_trial_are_the_sign_test():
    assert flips([(1, 1)] * 6 + [(0, 1)] * 9) == sign(6, 0)
    assert flips([(1, 1)] * 9 + [(-1, 1)] * 2) == sign(9, 2)
    assert flips([]) == flips([(0, 1)]) == flips([(1, 1), (-1, 1)]) == 1


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
    assert case.verdict == "unclear"
    assert case.adjusted == pytest.approx(21 * 2 / 252)
    assert case.why == (
        "5 of 5 before, 0 of 5 now (p = 0.0079): too few trials to tell among so many cases (0.17)"
    )


def test_many_small_losses_show_in_the_whole_where_no_case_tells():
    found = compare(report([(5, 5)] * 12), report([(4, 5)] * 10 + [(5, 5)] * 2))
    assert found.regressed == []
    assert (found.trend, found.verdict) == ("worse", "regressed")
    assert found.p == sign(10, 0)
    assert "worse than luck explains (permutation test, p = 0.002)" in str(found)
    assert found.pass_rate is not None
    assert found.pass_rate.delta == pytest.approx(-10 / 60)


def luck(dice: random.Random, cases: int, trials: int) -> tuple[list, list]:
    """Two plays of the same cases, which changed in truth, but as often for the better."""
    sides: tuple[list, list] = ([], [])
    for _ in range(cases):
        rates = [dice.betavariate(2, 0.7), dice.betavariate(2, 0.7)]
        dice.shuffle(rates)
        for side, rate in zip(sides, rates, strict=True):
            side.append(sum(dice.random() < rate for _ in range(trials)))
    return sides


@pytest.mark.parametrize("cases, trials", [(12, 5), (40, 1), (40, 5), (25, 3)])
def test_luck_alone_is_seldom_called_a_change_of_the_whole(cases, trials):
    dice, rounds = random.Random(13), 1500
    wrong = 0
    for _ in range(rounds):
        then, now = luck(dice, cases, trials)
        steps = [(after - before, trials) for before, after in zip(then, now, strict=True)]
        wrong += flips(steps) <= ALPHA
    assert 0.015 <= wrong / rounds <= 0.062


def test_luck_alone_seldom_makes_any_case_look_changed():
    dice, rounds = random.Random(17), 150
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
def test_the_smallest_change_that_counts_is_noticed_four_times_in_five(cases, trials):
    dice, rounds = random.Random(19), 400

    def one(loss: float) -> list[tuple[int, int]]:
        steps: list[tuple[int, int]] = []
        for _ in range(cases):
            own = dice.betavariate(2, 0.5)
            then = sum(dice.random() < own for _ in range(trials))
            now = sum(dice.random() < own * (1 - loss / 0.8) for _ in range(trials))
            steps.append((now - then, trials))
        return steps

    told = sorted(detectable([a / b for a, b in one(0)], trials) or 1 for _ in range(100))[50]
    noticed = sum(flips(one(told)) <= ALPHA for _ in range(rounds)) / rounds
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
    assert "so many cases would show a change of" in text
    assert "points four times in five" in text


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
    assert "cost of a trial: $0.0100 before, $0.0200 now" in text
    assert "seconds a trial: 2.00 before, 1.00 now" in text
    assert found.data()["seconds"] == {"before": 2.0, "now": 1.0, "delta": -1.0, "p": sign(8, 0)}


def test_an_unknown_price_is_no_change():
    found = compare(report([(1, 1)] * 8, cost=None), report([(1, 1)] * 8, cost=0.02))
    assert found.cost is None
    assert found.data()["cost"] is None
    assert "cost of a trial" not in str(found)
