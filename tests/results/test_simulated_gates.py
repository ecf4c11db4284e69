"""What the gate promises, on many made-up runs: few false alarms, and no broken case overlooked."""

import random

import pytest

from results.simulated_gates import Mixture, Set, broken_at_random, decided

NULL = [
    (Set(20, 0.9), (1, 1)),
    (Set(50, 0.8, 0.6), (3, 1)),
    (Set(100, 0.95, 0.1), (2, 1)),
    (Set(50, 0.9), (5, 5)),
    (Mixture(60, 0.3, 0.1), (1, 1)),
    (Mixture(60, 0.2, 0.3), (2, 1)),
    (Mixture(40, 0.5, 0.45), (3, 3)),
]


def false_alarms(cases: Set | Mixture, trials: tuple[int, int], gates: int) -> float:
    dice, shut = random.Random(f"{cases} {trials}"), 0
    for _ in range(gates):
        chances = cases.drawn(dice)
        shut += decided(dice, chances, chances, trials).shut
    return shut / gates


@pytest.mark.parametrize("cases, trials", NULL, ids=str)
def test_where_nothing_changed_the_gate_seldom_shuts(cases, trials):
    assert false_alarms(cases, trials, 30) <= 0.05


def test_one_broken_case_at_any_place_of_fifty_is_found_with_few_more_trials():
    dice, extra = random.Random(41), 0
    for _ in range(40):
        then, now = broken_at_random(dice, Set(50, 0.9).drawn(dice), 1)
        found = decided(dice, then, now, (3, 1))
        assert found.shut
        assert f"c{now.index(0.0)}" in found.regressed
        extra += found.extra
    assert extra / 40 <= 12


@pytest.mark.parametrize("trials", [(1, 1), (2, 1), (3, 1), (3, 3), (5, 5)], ids=str)
@pytest.mark.parametrize("confirm", [True, False])
def test_a_collapse_is_always_found(trials, confirm):
    dice = random.Random(43)
    for cases in (8, 50):
        for _ in range(2):
            then, now = [0.98] * cases, [0.0] * cases
            assert decided(dice, then, now, trials, confirm=confirm).shut


# In full, for `make test-all`; the figures stand in docs/why/statistics.md


@pytest.mark.heavy
@pytest.mark.parametrize("cases, trials", NULL, ids=str)
def test_where_nothing_changed_at_most_one_gate_in_twenty_shuts(cases, trials):
    assert false_alarms(cases, trials, 400) <= 0.05


@pytest.mark.heavy
@pytest.mark.parametrize("trials", [(1, 1), (2, 1), (3, 1), (3, 3), (5, 5)], ids=str)
def test_false_alarms_over_many_kinds_of_sets(trials):
    kinds = [
        Set(cases, rate, likeness)
        for cases in (20, 50, 100)
        for rate, likeness in ((0.8, 0.3), (0.9, 0.0), (0.9, 0.6), (0.97, 0.3))
    ]
    assert sum(false_alarms(kind, trials, 60) for kind in kinds) / len(kinds) <= 0.05


POWER = [
    (20, 0.9, (1, 1), 0.95),
    (50, 0.9, (1, 1), 0.9),
    (50, 0.9, (2, 1), 0.97),
    (50, 0.9, (3, 1), 1.0),
    (100, 0.9, (3, 1), 1.0),
    (200, 0.8, (3, 1), 0.98),
    (100, 0.9, (3, 3), 1.0),
]


@pytest.mark.heavy
@pytest.mark.parametrize("cases, rate, trials, least", POWER)
def test_a_single_broken_case_at_a_random_place_is_found_as_often_as_the_docs_say(
    cases, rate, trials, least
):
    dice, shut = random.Random(47), 0
    for _ in range(100):
        then, now = broken_at_random(dice, Set(cases, rate).drawn(dice), 1)
        shut += decided(dice, then, now, trials).shut
    assert shut / 100 >= least


@pytest.mark.heavy
@pytest.mark.parametrize(
    "cases, trials, least", [(50, (1, 1), 0.97), (100, (1, 1), 0.97), (50, (3, 1), 1)]
)
def test_a_tenth_of_the_cases_broken_is_found(cases, trials, least):
    dice, shut = random.Random(53), 0
    for _ in range(60):
        then, now = broken_at_random(dice, Set(cases, 0.9).drawn(dice), cases // 10)
        shut += decided(dice, then, now, trials).shut
    assert shut / 60 >= least
