"""As many trials as the verdict needs: what is due, and what was saved."""

import random
from collections.abc import Callable
from itertools import cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Case
from greenroom.errors import BadInput
from greenroom.results import CaseResult, Status
from greenroom.results.adaptive import conclusion
from greenroom.results.report import MAX_TRIALS
from greenroom.results.result import Problem
from greenroom.results.trial_verdict import skipped
from greenroom.suite.adaptive import Adaptive
from greenroom.suite.trial_state import Trial

Ends = Callable[[Trial], Status]


def cases(count: int) -> list[Case]:
    return [Case(f"c{number}", "Hello") for number in range(count)]


def result(play: Trial, status: Status) -> CaseResult:
    broke = Problem("system", "the model is away") if status in ("error", "skipped") else None
    return CaseResult(case_id=play.case.id, status=status, trial=play.number, error=broke)


def played_out(adaptive: Adaptive, ends: Ends) -> list[Trial]:
    """Play whatever is due until nothing is."""
    found: list[Trial] = []
    while due := adaptive.due():
        found += due
        for play in due:
            adaptive.add(result(play, ends(play)))
    return found


def passing(_: Trial) -> Status:
    return "passed"


def halfway(play: Trial) -> Status:
    return "passed" if play.position // MAX_TRIALS % 2 else "failed"


# Rounds


def test_the_first_round_is_one_trial_of_every_case_in_order():
    due = Adaptive(cases(3), 0.8).due()
    assert [(play.case.id, play.number) for play in due] == [("c0", 1), ("c1", 1), ("c2", 1)]


def test_a_play_has_the_place_it_would_have_if_all_were_played():
    adaptive = Adaptive(cases(2), 0.8, max_trials=5)
    found = played_out(adaptive, lambda play: "passed" if play.number % 2 else "failed")
    assert [play.position for play in found[:4]] == [0, 5, 1, 6]
    assert sorted({play.position for play in found}) == list(range(10))


def test_a_round_is_due_again_until_all_of_it_is_played():
    adaptive = Adaptive(cases(3), 0.8)
    first, second, third = adaptive.due()
    adaptive.add(result(second, "passed"))
    assert adaptive.due() == [first, third]


@given(
    st.lists(st.sampled_from(["passed", "failed", "error"]), min_size=1, max_size=60),
    st.integers(1, 6),
    st.integers(0, 200),
)
def test_what_a_run_came_to_can_be_told_from_its_results_alone(ends, count, most):
    adaptive, results, dealt = Adaptive(cases(count), 0.7), [], cycle(ends)
    while len(results) < most and (due := adaptive.due()):
        for play in due:
            results.append(result(play, next(dealt)))
            adaptive.add(results[-1])
    in_order = sorted(results, key=lambda one: (one.case_id, one.trial))
    assert conclusion([case.id for case in cases(count)], 0.7, in_order) == adaptive.conclusion


def test_a_clear_set_stops_early_and_says_what_it_saved():
    adaptive = Adaptive(cases(20), 0.8)
    found = played_out(adaptive, passing)
    conclusion = adaptive.conclusion
    assert (conclusion.verdict, conclusion.rounds, len(found)) == ("passes", 2, 40)
    assert (conclusion.played, conclusion.most, conclusion.saved) == (40, 400, 360)
    assert str(conclusion) == (
        "the pass rate of these cases is 100 % (85–100), which reaches the minimum of 80 %: "
        "2 rounds, 40 of 400 trials run, 360 saved (90 %)"
    )


def test_a_bad_set_stops_early_too():
    adaptive = Adaptive(cases(40), 0.825)
    played_out(adaptive, halfway)
    assert (adaptive.conclusion.verdict, adaptive.conclusion.rounds) == ("misses", 1)
    assert "which misses the minimum of 82.5 %: 1 round, 40 of 800" in str(adaptive.conclusion)


def test_a_set_near_the_bar_gets_all_its_trials_and_stays_unclear():
    adaptive = Adaptive(cases(10), 0.5)
    found = played_out(adaptive, halfway)
    conclusion = adaptive.conclusion
    assert (conclusion.verdict, conclusion.saved, len(found)) == ("unclear", 0, 200)
    assert "leaves open whether it reaches the minimum of 50 %: 20 rounds" in str(conclusion)


def test_a_minimum_of_all_is_never_shown_but_missed_at_once():
    spotless, spotted = Adaptive(cases(4), 1.0, max_trials=3), Adaptive(cases(4), 1.0)
    played_out(spotless, passing)
    played_out(spotted, lambda play: "failed" if play.position == 0 else "passed")
    assert spotless.conclusion.verdict == "unclear"
    assert "minimum of 100 %, as any number of trials would: 3 rounds" in str(spotless.conclusion)
    assert (spotted.conclusion.verdict, spotted.conclusion.played) == ("misses", 4)


def test_a_run_that_was_cut_at_its_limit_did_not_pass():
    adaptive = Adaptive(cases(20), 0.8)
    played_out(adaptive, lambda _: "terminated")
    assert adaptive.conclusion.verdict == "misses"


def test_without_cases_nothing_is_due():
    adaptive = Adaptive([], 0.8)
    assert adaptive.due() == []
    assert str(adaptive.conclusion) == (
        "no round was finished, so a minimum of 80 % is open: 0 rounds, 0 of 0 trials run"
    )


def test_less_than_one_trial_is_refused():
    with pytest.raises(BadInput, match="max_trials=0"):
        Adaptive(cases(1), 0.8, max_trials=0)


# What broke


def test_a_trial_that_broke_is_no_observation_and_is_played_again():
    adaptive = Adaptive(cases(3), 0.8)
    for play in adaptive.due():
        adaptive.add(result(play, "error" if play.case.id == "c1" else "passed"))
    assert [(play.case.id, play.number) for play in adaptive.due()] == [("c1", 2)]
    assert adaptive.conclusion.interval is None


def test_what_broke_says_nothing_about_the_pass_rate():
    adaptive = Adaptive(cases(20), 0.8)
    played_out(adaptive, lambda play: "error" if play.number == 1 else "passed")
    conclusion = adaptive.conclusion
    assert conclusion.interval is not None
    assert (conclusion.verdict, conclusion.interval.share) == ("passes", 1.0)
    assert (conclusion.rounds, conclusion.played) == (2, 60)


@pytest.mark.parametrize("status", ["error", "skipped"])
def test_a_case_that_keeps_breaking_is_left_out_and_named(status):
    adaptive = Adaptive(cases(21), 0.8)
    found = played_out(adaptive, lambda play: status if play.case.id == "c7" else "passed")
    conclusion = adaptive.conclusion
    assert sum(play.case.id == "c7" for play in found) == 3
    assert (conclusion.verdict, conclusion.left_out) == ("passes", ("c7",))
    assert str(conclusion).endswith("; without c7, which kept breaking")


def test_a_case_that_broke_in_all_the_trials_it_may_have_is_left_out():
    adaptive = Adaptive(cases(4), 0.5, max_trials=2)
    played_out(adaptive, lambda play: "error" if play.case.id == "c0" else halfway(play))
    assert (adaptive.conclusion.left_out, adaptive.conclusion.rounds) == (("c0",), 2)


def test_a_case_that_broke_now_and_then_is_kept():
    adaptive = Adaptive(cases(5), 0.5, max_trials=9)
    played_out(adaptive, lambda play: "error" if play.number % 3 else halfway(play))
    assert adaptive.conclusion.left_out == ()
    assert adaptive.conclusion.rounds == 3


def test_a_round_that_a_case_cannot_finish_is_not_begun():
    adaptive = Adaptive(cases(4), 0.5, max_trials=4)
    once = {"c0"}
    found = played_out(
        adaptive,
        lambda play: "error" if play.case.id in once and play.number == 2 else halfway(play),
    )
    assert adaptive.conclusion.rounds == 3
    assert len(found) == 4 * 3 + 1


def test_a_trial_left_out_of_the_gate_is_made_up_for():
    adaptive = Adaptive(cases(20), 0.8)
    played_out(adaptive, lambda play: "skipped" if play.number == 1 else "passed")
    assert adaptive.conclusion.verdict == "passes"


def test_what_was_not_played_ends_the_run_and_is_not_counted():
    adaptive = Adaptive(cases(3), 0.8)
    first, second, third = adaptive.due()
    adaptive.add(result(first, "passed"))
    for play in (second, third):
        adaptive.add(skipped(play.case, "not run: the budget is not enough"))
    assert adaptive.due() == []
    assert (adaptive.conclusion.verdict, adaptive.conclusion.played) == ("unclear", 1)
    assert adaptive.conclusion.left_out == ()


def test_what_was_cut_or_broke_was_not_saved():
    adaptive = Adaptive(cases(12), 0.8)
    played_out(adaptive, lambda _: "error")
    assert (adaptive.conclusion.played, adaptive.conclusion.saved) == (36, 0)
    assert str(adaptive.conclusion) == (
        "no round was finished, so a minimum of 80 % is open: 0 rounds, 36 of 240 trials run; "
        "without c0, c1, c2, c3, c4, c5, c6, c7, c8, c9 and 2 more, which kept breaking"
    )


# Going on


@given(st.integers(0, 2**32), st.floats(0.05, 0.95), st.floats(0.1, 0.95))
def test_any_run_ends_and_no_case_has_more_than_its_trials(seed, rate, bar):
    dice = random.Random(seed)

    def ends(_: Trial) -> Status:
        broke = dice.random() < 0.1
        return "error" if broke else "passed" if dice.random() < rate else "failed"

    adaptive = Adaptive(cases(4), bar, max_trials=6)
    found = played_out(adaptive, ends)
    assert len({play.position for play in found}) == len(found) == adaptive.conclusion.played <= 24
    assert all(1 <= play.number <= 6 for play in found)


@given(st.integers(0, 2**32))
def test_a_run_that_goes_on_asks_for_the_same_trials(seed):
    def ends(play: Trial) -> Status:
        lot = random.Random(f"{seed}/{play.position}").random()
        return "error" if lot < 0.1 else "passed" if lot < 0.8 else "failed"

    dice, one, other = random.Random(seed), *(Adaptive(cases(5), 0.7, max_trials=8) for _ in "ab")
    before = played_out(one, ends)
    after: list[Trial] = []
    while due := other.due():
        after += due
        dice.shuffle(due)
        for play in due:
            other.add(result(play, ends(play)))
    assert after == before
    assert other.conclusion == one.conclusion


def test_a_minimum_may_be_a_whole_number():
    adaptive = Adaptive(cases(2), 0)
    played_out(adaptive, passing)
    assert "reaches the minimum of 0 %" in str(adaptive.conclusion)
