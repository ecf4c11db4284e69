"""Cases that failed after they had passed, played again until it can be told whether they changed."""

import random
from importlib import import_module
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.results.comparisons.confirmation import (
    ALONE,
    GROUP,
    Confirming,
    enough,
    rare,
    together,
)

stats: Any = import_module("scipy.stats")  # reading its types would take seconds


def played(confirming: Confirming, fails) -> int:
    """Play until nothing is due; how many trials that took. `fails` says how a case ends."""
    count = 0
    while due := confirming.due():
        for case_id in due:
            end = fails(case_id)
            confirming.take(case_id, None if end is None else not end)
            count += 1
    return count


def always(_: str) -> bool:
    return True


@given(st.integers(1, 8), st.integers(1, 40), st.floats(0, 1))
def test_no_case_is_likelier_to_look_changed_than_rare_says(then, more, chance):
    assert chance**then * (1 - chance) ** (more - 1) <= rare(then, more) * (1 + 1e-9)


@pytest.mark.parametrize(
    "then, wanted",
    [
        (1, [26, 50, 75, 124, 246]),
        (2, [7, 9, 11, 14, 20]),
        (3, [5, 6, 7, 8, 10]),
        (5, [4, 4, 5, 5, 6]),
    ],
)
def test_more_failures_are_needed_where_more_cases_fail_on_both_sides(then, wanted):
    assert [enough(then, failing) for failing in (0, 1, 2, 4, 9)] == wanted
    for failing, more in zip((0, 1, 2, 4, 9), wanted, strict=True):
        assert rare(then, more) * (failing + 1) <= ALONE < rare(then, more - 1) * (failing + 1)


@given(st.integers(1, 12), st.integers(0, 100), st.floats(1e-6, 1))
def test_looking_at_several_together_is_scipys_binomial_tail(suspects, failing, chance):
    wanted = stats.binom.sf(suspects - 1, suspects + failing, chance / (1 + chance))
    assert together(suspects, failing, chance) == pytest.approx(wanted, abs=1e-9)


def test_a_case_that_goes_on_failing_has_regressed():
    confirming = Confirming({"a": 3}, failing=2)
    # Looked at with the others after five trials, and alone after seven.
    assert together(1, 2, rare(3, 5)) > GROUP
    assert played(confirming, always) == enough(3, 2) == 7
    assert (confirming.regressed, confirming.cleared, confirming.open) == (["a"], [], [])


def test_one_pass_clears_a_case():
    ends = iter([True, True, False])
    confirming = Confirming({"a": 3}, failing=2)
    assert played(confirming, lambda _: next(ends)) == 3
    assert (confirming.regressed, confirming.cleared) == ([], ["a"])


def test_several_that_go_on_failing_are_told_together_and_sooner():
    confirming = Confirming(dict.fromkeys("abc", 1), failing=2)
    assert played(confirming, always) == 3 * 5
    assert confirming.regressed == ["a", "b", "c"]
    assert confirming.group is not None
    assert confirming.group.p == pytest.approx(together(3, 2, rare(1, 5)))
    assert confirming.group.p <= GROUP


def test_of_many_that_fail_twice_more_the_first_ten_go_on():
    names = [f"c{n}" for n in range(14)]
    confirming = Confirming(dict.fromkeys(names, 1), failing=200)
    count = played(confirming, always)
    assert count == 14 * 2 + 10 * 28
    assert confirming.crowded_out == names[10:]
    assert confirming.open == names


def test_flaky_cases_do_not_take_the_places_of_broken_ones():
    names = [f"c{n}" for n in range(40)]
    confirming = Confirming(dict.fromkeys(names, 3), failing=0)
    played(confirming, lambda case_id: case_id == "c39")
    assert confirming.regressed == ["c39"]
    assert len(confirming.cleared) == 39


@pytest.mark.parametrize("failing, regressed", [(1, ["a"]), (5, ["a"]), (6, [])])
def test_with_one_trial_before_thirty_failures_are_believed_where_few_cases_fail(
    failing, regressed
):
    confirming = Confirming({"a": 1}, failing=failing)
    assert played(confirming, always) == 30
    assert confirming.regressed == regressed


def test_where_fewer_trials_are_allowed_it_stays_open():
    confirming = Confirming({"a": 1}, failing=0, most=10)
    assert played(confirming, always) == 10
    assert confirming.open == ["a"]


def test_trials_that_failed_already_count():
    assert Confirming({"a": 5}, failing=0, now=5).regressed == ["a"]
    confirming = Confirming({"a": 3}, failing=0, now=3)
    assert played(confirming, always) == enough(3, 0) - 2


def test_a_trial_that_broke_is_no_observation_and_three_in_a_row_are_enough():
    ends = iter([True, None, None, True, None, True, True, True])
    confirming = Confirming({"a": 3}, failing=0)
    assert played(confirming, lambda _: next(ends)) == 8
    assert confirming.regressed == ["a"]
    broken = Confirming({"a": 3}, failing=0)
    assert played(broken, lambda _: None) == 3
    assert broken.open == ["a"]


@given(st.data(), st.integers(1, 15), st.integers(0, 12))
def test_the_order_in_which_trials_of_a_round_end_does_not_matter(data, suspects, failing):
    names = [f"c{n}" for n in range(suspects)]
    then = {name: data.draw(st.integers(1, 3)) for name in names}
    chances = random.Random(data.draw(st.integers()))
    ends = {name: [chances.random() < 0.9 for _ in range(40)] for name in names}
    found = []
    for shuffled in (False, True):
        confirming, counts = Confirming(then, failing), dict.fromkeys(names, 0)
        while due := confirming.due():
            order = list(due)
            if shuffled:
                chances.shuffle(order)
            for name in order:
                confirming.take(name, not ends[name][counts[name]])
                counts[name] += 1
        found.append((set(confirming.regressed), set(confirming.cleared), confirming.open, counts))
    assert found[0] == found[1]
