"""A verdict that may be looked at after every round, and is still right."""

import random
from collections.abc import Callable, Sequence
from itertools import product
from math import prod

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from greenroom.errors import BadInput
from greenroom.results.statistics.intervals import Interval, of_cases, wilson
from greenroom.results.statistics.sequential import Sequential, show_together
from marks import heavy

RATES = st.floats(0.0, 1.0)
MOST = 20


def names(count: int) -> list[str]:
    return [f"c{number}" for number in range(count)]


def after(bar: float, *rounds: Sequence[bool], alpha: float = 0.05) -> Sequential:
    """A test that was told these rounds; each has one outcome of every case."""
    test = Sequential(bar, names(len(rounds[0])), alpha)
    for outcomes in rounds:
        for case, passed in zip(names(len(outcomes)), outcomes, strict=True):
            test.add(case, passed)
    return test


# What it says


def test_a_set_that_always_passes_is_soon_known_to_pass():
    test = after(0.8, *[[True] * 20] * 2)
    assert (test.verdict, test.rounds) == ("passes", 2)
    assert test.interval is not None
    assert test.interval.share == test.interval.high == 1
    assert test.interval.low >= 0.8
    assert test.wanted() == []


def test_a_set_that_fails_half_the_time_is_soon_known_to_miss():
    test = after(0.8, *[[True, False] * 10] * 2)
    assert (test.verdict, test.rounds) == ("misses", 2)
    assert test.interval is not None
    assert test.interval.high < 0.8


def test_a_set_near_the_bar_stays_open_and_wants_every_case_again():
    test = after(0.8, *[[True] * 8 + [False] * 2] * 6)
    assert test.verdict == "open"
    assert test.wanted() == names(10)
    assert test.interval is not None
    assert test.interval.low < 0.8 < test.interval.high


def test_cases_that_always_end_the_same_decide_sooner_than_wavering_ones():
    steady = [[True] * 18 + [False] * 2] * MOST
    wavering = [[(case + turn) % 10 > 0 for case in range(20)] for turn in range(MOST)]
    assert sum(map(sum, steady)) == sum(map(sum, wavering))
    sure, unsure = after(0.8, *steady), after(0.8, *wavering)
    assert sure.verdict == "passes"
    assert sure.rounds < unsure.rounds


def test_nothing_is_said_before_every_case_has_had_its_trial():
    test = Sequential(0.5, names(30))
    for case in names(29):
        test.add(case, True)
    assert (test.verdict, test.rounds, test.share, test.interval) == ("open", 0, None, None)
    assert test.wanted() == ["c29"]
    test.add("c29", True)
    assert (test.verdict, test.rounds, test.share) == ("passes", 1, 1.0)


def test_a_trial_that_comes_early_waits_for_its_round():
    test = Sequential(0.8, ["a", "b"])
    for passed in (True, False, True):
        test.add("a", passed)
    test.add("b", True)
    assert (test.rounds, test.share) == (1, 1.0)
    assert test.wanted() == ["b"]
    test.add("b", True)
    test.add("b", True)
    assert (test.rounds, test.share) == (3, 5 / 6)


def test_what_is_decided_stays_decided():
    test = after(0.8, *[[True] * 20] * 2)
    before = test.interval
    for case in names(20) * 30:
        test.add(case, False)
    test.leave_out("c0")
    assert (test.verdict, test.rounds, test.interval) == ("passes", 2, before)


def test_one_failure_shows_that_a_bar_of_all_is_missed():
    assert after(1.0, [True] * 9 + [False]).verdict == "misses"


def test_no_number_of_trials_shows_that_all_would_pass():
    assert after(1.0, *[[True] * 30] * 50).verdict == "open"


def test_any_set_passes_a_bar_of_none():
    assert Sequential(0.0, ["a"]).verdict == "open"
    assert after(0.0, [False]).verdict == "passes"


def test_a_smaller_chance_to_be_wrong_takes_more_rounds():
    rounds = [[True] * 10] * MOST
    assert after(0.8, *rounds).rounds < after(0.8, *rounds, alpha=0.0001).rounds


def test_a_set_without_cases_stays_open_and_wants_nothing():
    test = Sequential(0.8, [])
    assert (test.verdict, test.interval, test.wanted()) == ("open", None, [])


@pytest.mark.parametrize("bar", [-0.1, 1.1, float("nan")])
def test_a_bar_that_is_no_share_is_refused(bar):
    with pytest.raises(BadInput, match="is not a share"):
        Sequential(bar, ["a"])


@pytest.mark.parametrize("alpha", [0, 1, -1, float("nan")])
def test_an_alpha_that_is_no_chance_is_refused(alpha):
    with pytest.raises(BadInput, match="chance to be wrong"):
        Sequential(0.5, ["a"], alpha)


def test_a_case_of_another_set_is_refused():
    with pytest.raises(BadInput, match="'x' is not in this test"):
        Sequential(0.5, ["a"]).add("x", True)
    with pytest.raises(BadInput, match="'x' is not in this test"):
        Sequential(0.5, ["a"]).leave_out("x")


# Cases that cannot be measured


def test_a_case_that_is_left_out_holds_nobody_up():
    test = Sequential(0.5, names(20))
    for case in names(19):
        test.add(case, True)
    test.leave_out("c19")
    assert (test.rounds, test.verdict) == (1, "passes")


@given(st.lists(st.lists(st.booleans(), min_size=6, max_size=6), min_size=1, max_size=8), RATES)
def test_leaving_a_case_out_is_as_if_it_had_never_been_there(rounds, bar):
    late, never = after(bar, *rounds), after(bar, *[outcomes[:5] for outcomes in rounds])
    assume(late.verdict == "open")
    late.leave_out("c5")
    assert (late.verdict, late.interval) == (never.verdict, never.interval)


def test_when_every_case_is_left_out_nothing_is_known():
    test = after(0.8, [True, False])
    test.leave_out("c0")
    test.leave_out("c1")
    assert (test.verdict, test.interval, test.wanted()) == ("open", None, [])


# What always holds


@given(st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=25), RATES)
def test_the_interval_holds_the_share_and_says_what_the_verdict_says(rounds, bar):
    test = after(bar, *rounds)
    found = test.interval
    assert found is not None
    assert 0 <= found.low <= found.share <= found.high <= 1
    if 0 < bar < 1:
        says = "passes" if found.low >= bar else "misses" if found.high < bar else "open"
        assert test.verdict == says


@given(
    st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=10),
    st.randoms(use_true_random=False),
)
def test_the_order_in_which_trials_end_does_not_matter(rounds, dice):
    columns = zip(*rounds, strict=True)
    waiting = {case: list(trials) for case, trials in zip(names(3), columns, strict=True)}
    shuffled = Sequential(0.7, names(3))
    while left := [case for case, trials in waiting.items() if trials]:
        case = dice.choice(left)
        shuffled.add(case, waiting[case].pop(0))
    plain = after(0.7, *rounds)
    assert (shuffled.verdict, shuffled.interval) == (plain.verdict, plain.interval)


@given(
    st.lists(st.lists(st.booleans(), min_size=5, max_size=5), min_size=1, max_size=12),
    st.floats(0.01, 0.99),
)
def test_to_fail_is_the_mirror_of_to_pass(rounds, bar):
    one, other = after(bar, *rounds), after(1 - bar, *[[not x for x in row] for row in rounds])
    if one.rounds == other.rounds:
        assert one.evidence(0.6) == pytest.approx(other.evidence(0.4)[::-1], rel=1e-6)


@given(
    st.lists(st.lists(st.booleans(), min_size=4, max_size=4), min_size=1, max_size=15),
    st.floats(0.01, 0.99),
    st.sampled_from([0.01, 0.05, 0.2]),
)
def test_it_is_decided_when_the_bets_have_paid_for_both_sides(rounds, bar, alpha):
    test = after(bar, *rounds, alpha=alpha)
    above, below = test.evidence(bar)
    assert (test.verdict == "open") == (max(above, below) < 2 / alpha)


# Error rates, exactly: all that can happen, each with its chance


@given(
    st.sampled_from([(1, 6), (2, 3), (3, 2), (6, 1)]).flatmap(
        lambda size: st.tuples(
            st.lists(RATES, min_size=size[0], max_size=size[0]), st.just(size[1])
        )
    ),
    RATES,
)
def test_no_bet_pays_on_average_if_the_rate_is_what_it_bets_against(size, bar):
    rates, rounds = size
    truth = sum(rates) / len(rates)
    above = below = 0.0
    for trials in product((True, False), repeat=len(rates) * rounds):
        split = [trials[n : n + len(rates)] for n in range(0, len(trials), len(rates))]
        chance = prod(
            rate if passed else 1 - rate
            for row in split
            for rate, passed in zip(rates, row, strict=True)
        )
        if chance:
            paid = after(bar, *split).evidence(truth)
            above, below = above + chance * paid[0], below + chance * paid[1]
    assert above <= 1 + 1e-9
    assert below <= 1 + 1e-9


# Error rates, by simulation


def alike(truth: float, cases: int, _: random.Random) -> list[float]:
    return [truth] * cases


def clustered(truth: float, cases: int, dice: random.Random) -> list[float]:
    """Cases from always failing to always passing, with just this mean."""
    rates = [dice.betavariate(truth, 1 - truth) for _ in range(cases)]
    for _ in range(100):
        off = truth - sum(rates) / cases
        rates = [min(1.0, max(0.0, rate + off)) for rate in rates]
    return rates


def steady(truth: float, cases: int, _: random.Random) -> list[float]:
    """Cases that always end the same, but for two in five."""
    wavering, failing = max(2, cases * 2 // 5), int(cases * (1 - truth) / 2)
    passing = cases - wavering - failing
    rest = (cases * truth - passing) / wavering
    return [1.0] * passing + [rest] * wavering + [0.0] * failing


Kind = Callable[[float, int, random.Random], list[float]]
KINDS = [alike, clustered, steady]


def decided(
    rates: Sequence[float], bar: float, dice: random.Random, most: int = MOST
) -> Sequential:
    """Play round after round, look after each, and stop as soon as it is decided."""
    chances = dict(zip(names(len(rates)), rates, strict=True))
    test = Sequential(bar, chances)
    while test.rounds < most and (wanted := test.wanted()):
        for case in wanted:
            test.add(case, dice.random() < chances[case])
    return test


def naively(
    rates: Sequence[float],
    bar: float,
    dice: random.Random,
    interval: Callable[..., Interval | None],
) -> str:
    """The same with an interval that is meant to be looked at once."""
    passed = [0] * len(rates)
    for played in range(1, MOST + 1):
        passed = [count + (dice.random() < rate) for count, rate in zip(passed, rates, strict=True)]
        found = interval([(count, played) for count in passed])
        if found is not None and not found.low < bar <= found.high:
            return "passes" if found.low >= bar else "misses"
    return "open"


def pooled(tallies: Sequence[tuple[int, int]]) -> Interval:
    passed, played = (sum(column) for column in zip(*tallies, strict=True))
    return wilson(passed / played, played)


def wrong(
    kind: Kind, truth: float, bar: float, *, cases: int, runs: int, most: int = MOST
) -> float:
    """How often it decides against the truth; at the bar itself every decision counts."""
    dice, count = random.Random(23), 0
    for _ in range(runs):
        verdict = decided(kind(truth, cases, dice), bar, dice, most).verdict
        right = "open" if truth == bar else "passes" if truth > bar else "misses"
        count += verdict not in ("open", right)
    return count / runs


@pytest.mark.parametrize("kind", KINDS)
def test_the_simulated_sets_have_the_rate_they_are_said_to_have(kind):
    for truth, cases in [(0.5, 4), (0.79, 10), (0.8, 10), (0.9, 40), (0.95, 20), (0.97, 30)]:
        rates = kind(truth, cases, random.Random(19))
        assert len(rates) == cases
        assert all(0 <= rate <= 1 for rate in rates)
        assert sum(rates) / cases == pytest.approx(truth, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("truth", [heavy(0.79), 0.8, heavy(0.81)])
def test_it_is_seldom_wrong_near_the_bar_though_it_looks_after_every_round(kind, truth):
    assert wrong(kind, truth, 0.8, cases=10, runs=200) <= 0.05


@pytest.mark.parametrize("kind", KINDS)
def test_a_set_of_many_cases_is_as_seldom_wrong(kind):
    assert wrong(kind, 0.9, 0.9, cases=100, runs=60) <= 0.05


def test_the_interval_holds_the_rate_at_every_look_wherever_the_bar_is():
    dice, runs, lost = random.Random(43), 40, 0
    for _ in range(runs):
        rates = steady(0.72, 10, dice)
        test = Sequential(0.8, names(10))
        held = True
        while test.rounds < MOST and (wanted := test.wanted()):
            for case, rate in zip(wanted, rates, strict=True):
                test.add(case, dice.random() < rate)
            found = test.interval
            held = held and found is not None and found.low <= 0.72 <= found.high
        lost += not held
    assert lost / runs <= 0.05


def test_looking_at_wilsons_interval_after_every_round_is_wrong_much_too_often():
    dice, runs = random.Random(29), 500
    found = [naively(alike(0.8, 10, dice), 0.8, dice, pooled) for _ in range(runs)]
    assert sum(verdict != "open" for verdict in found) / runs > 0.2


def test_the_interval_over_cases_does_not_allow_it_either():
    dice, runs = random.Random(31), 500
    found = [naively(alike(0.8, 10, dice), 0.8, dice, of_cases) for _ in range(runs)]
    assert sum(verdict != "open" for verdict in found) / runs > 0.06


@pytest.mark.torture
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bar, cases", [(0.5, 4), (0.8, 10), (0.9, 40), (0.97, 30)])
def test_it_is_seldom_wrong_however_long_one_looks(kind, bar, cases):
    assert wrong(kind, bar, bar, cases=cases, runs=500, most=60) <= 0.05


# What it saves


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("truth, verdict", [(0.95, "passes"), (0.5, "misses")])
def test_a_clear_set_is_decided_in_a_fraction_of_the_trials(kind, truth, verdict):
    dice = random.Random(37)
    found = [decided(kind(truth, 20, dice), 0.8, dice) for _ in range(50)]
    assert sum(test.verdict == verdict for test in found) >= 49
    assert sum(test.rounds for test in found) / len(found) <= MOST / 4


def test_a_hundred_clear_cases_need_hardly_more_than_a_trial_each():
    dice = random.Random(41)
    found = [decided(clustered(0.95, 100, dice), 0.8, dice) for _ in range(20)]
    assert {test.verdict for test in found} == {"passes"}
    assert sum(test.rounds for test in found) / len(found) <= 1.5


# Several tests


@pytest.mark.parametrize("spread", [[0.8] * 6, [1.0] * 4 + [0.0], [0.9, 0.9, 0.7, 0.7]])
def test_tests_that_each_stopped_by_themselves_show_nothing_of_a_rate_at_the_bar(spread):
    chance = random.Random(7)

    def stopped(rate: float) -> Sequential:
        test = Sequential(0.8, names(1))
        while test.rounds < MOST and test.wanted():
            test.add("c0", chance.random() < rate)
        return test

    found = [show_together([stopped(rate) for rate in spread], 0.8) for _ in range(60)]
    assert sum(found) <= 0.05 * len(found)


def test_tests_show_together_what_none_of_them_shows_alone():
    alone = [after(0.8, *[[True]] * MOST) for _ in range(3)]
    assert {test.verdict for test in alone} == {"open"}
    assert show_together(alone, 0.8)
    assert not show_together(alone, 0.98)
    assert not show_together([*alone, after(0.8, [True])][-1:], 0.8)
    assert not show_together([], 0.8)
    assert show_together(alone, 0.0)
