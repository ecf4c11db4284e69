"""Several samples of one judge: all are asked and counted, unless an early stop is asked for."""

from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.cases import Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.metrics import judge
from greenroom.metrics.judges import Item, Verdict, Votes, final_response_match_v2
from metrics.judges.asked import Asked, measured, no, yes


def polite(*answers, **options):
    model = Asked(*answers)
    return model, judge("polite", "Was it polite?", model=model, **options)


async def test_without_samples_a_judge_is_asked_once():
    model, metric = polite(yes(), no())
    assert (await measured(metric)).passed
    assert model.calls == 1


async def test_the_value_is_the_share_of_yes():
    model, metric = polite(yes(), no(), yes(), samples=3, threshold=0.6)
    found = await measured(metric)
    assert found.value == pytest.approx(2 / 3)
    assert (found.passed, found.details["votes"]) == (True, [True, False, True])
    assert found.details["agreement"] == pytest.approx(2 / 3)
    assert found.reason == "2 of 3 votes pass: Fine."
    assert model.calls == 3


def five(votes):
    return [yes("is_correct") if v == "y" else no("is_correct") for v in votes]


ORDERS = sorted({"".join(order) for order in permutations("yyyyn")} | {"nnyyy", "yyynn", "ynyny"})


@pytest.mark.parametrize("votes", [*ORDERS, "yyyyy", "nnnnn"])
async def test_all_five_votes_are_asked_and_the_value_is_their_share(votes):
    model = Asked(*five(votes))
    found = await measured(final_response_match_v2(model=model))
    assert (model.calls, found.value) == (5, votes.count("y") / 5)
    assert found.passed is (votes.count("y") >= 4)
    assert found.details["votes"] == [v == "y" for v in votes]


@pytest.mark.parametrize(
    "votes, calls, passed",
    [
        ("yyyyy", 4, True),
        ("yyyny", 5, True),
        ("nyyyy", 5, True),
        ("nnyyy", 2, False),
        ("ynyny", 4, False),
        ("yyynn", 5, False),
        ("yyyyn", 4, True),
    ],
)
async def test_an_early_stop_leaves_out_what_cannot_matter_and_says_so(votes, calls, passed):
    model = Asked(*five(votes))
    found = await measured(final_response_match_v2(model=model, early_stop=True))
    assert (model.calls, found.passed) == (calls, passed)
    assert found.details["votes"] == {"cast": calls, "of": 5}
    assert found.details["given"] == [v == "y" for v in votes[:calls]]
    # A share would depend on which votes came first.
    assert found.value == float(passed)


async def test_a_judge_that_must_be_unanimous_may_stop_at_the_first_no():
    model, metric = polite(no(), samples=9, threshold=1.0, early_stop=True)
    assert not (await measured(metric)).passed
    assert model.calls == 1


def test_an_early_stop_is_asked_for_with_a_bool():
    with pytest.raises(BadMetric, match="early_stop is 'yes'; give true or false"):
        polite(early_stop="yes")


GRADES = st.lists(st.integers(0, 10), min_size=1, max_size=9)


@given(GRADES.flatmap(lambda grades: st.tuples(st.just(grades), st.permutations(grades))))
def test_the_order_of_votes_does_not_matter_to_the_last_digit(both):
    for aggregate in ("mean", "majority"):
        values: list[float] = []
        for grades in both:
            votes = Votes([Item("i", bar=0.7)], len(grades), aggregate)
            for grade in grades:
                votes.add({"i": Verdict("", grade, grade / 10)})
            values.append(votes.values()["i"])
        assert values[0] == values[1]


@pytest.mark.parametrize(
    "votes, calls, value", [("yyyyy", 3, 1.0), ("nnyyy", 5, 1.0), ("nynnn", 4, 0.0)]
)
async def test_a_majority_decides_by_more_than_half(votes, calls, value):
    answers = [yes() if v == "y" else no() for v in votes]
    for early_stop in (False, True):
        model, metric = polite(*answers, samples=5, aggregate="majority", early_stop=early_stop)
        found = await measured(metric)
        assert (found.value, found.passed) == (value, value == 1.0)
        assert model.calls == (calls if early_stop else 5)


async def test_half_is_no_majority():
    _, metric = polite(yes(), no(), samples=2, aggregate="majority")
    assert not (await measured(metric)).passed


async def test_a_majority_of_grades_counts_those_that_pass():
    grades = [{"reasoning": "", "score": grade} for grade in (7, 10, 0)]
    _, metric = polite(*grades, samples=3, aggregate="majority", form="0-10")
    found = await measured(metric)
    assert (found.value, found.measured) == (1.0, 2)


async def test_the_mean_of_grades_is_not_missed_by_a_hair():
    grades = [{"reasoning": "", "score": grade} for grade in (7, 8, 9)]
    _, metric = polite(*grades, samples=3, form="0-10", threshold=8)
    found = await measured(metric)
    assert found.value == pytest.approx(0.8)
    assert found.passed


async def test_the_reason_is_that_of_the_side_that_won():
    _, metric = polite(yes(why="Kind."), no(why="Rude."), no(why="Cold."), samples=3)
    found = await measured(metric)
    assert found.details["reasoning"] == "Rude."


async def test_a_sample_without_an_answer_leaves_all_unmeasured():
    _, metric = polite(yes(), "eh", "eh", "eh", "eh", samples=2, threshold=1.0)
    found = await measured(metric)
    assert isinstance(found, Unmeasured)
    assert "no usable answer" in found.why


async def test_every_sample_has_its_own_two_re_asks():
    model, metric = polite("a", "b", yes(), "c", "d", yes(), samples=2, threshold=1.0)
    assert isinstance(await measured(metric), Score)
    assert model.calls == 6


VOTES = st.lists(st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]), min_size=1, max_size=7)


@given(VOTES, st.sampled_from([0.2, 0.5, 0.7, 0.8, 1.0]), st.sampled_from(["mean", "majority"]))
def test_stopping_early_never_changes_the_verdict_and_never_wastes_a_call(votes, bar, aggregate):
    def decide(values):
        return values["i"] >= bar - 1e-9

    held = Votes([Item("i", bar=bar)], len(votes), aggregate)
    stopped = None
    for vote in votes:
        if held.decided(decide) and stopped is None:
            stopped = (held.cast, decide(held.values()))
        held.add({"i": Verdict("", vote, vote)})
    at, early = stopped or (len(votes), decide(held.values()))
    assert early == decide(held.values())
    # One vote fewer, and another ending could have turned it.
    before = Votes([Item("i", bar=bar)], len(votes), aggregate)
    for vote in votes[: at - 1]:
        before.add({"i": Verdict("", vote, vote)})
    assert not before.decided(decide)
    assert before.needed(decide) == 1 or before.cast + before.needed(decide) <= len(votes)


@given(VOTES, st.sampled_from([0.5, 0.8, 1.0]))
def test_votes_asked_for_at_once_are_all_needed(votes, bar):
    def decide(values):
        return values["i"] >= bar - 1e-9

    held = Votes([Item("i", bar=bar)], len(votes), "mean")
    rest = iter(votes)
    while not held.decided(decide):
        for _ in range(held.needed(decide)):
            assert not held.decided(decide)
            vote = next(rest)
            held.add({"i": Verdict("", vote, vote)})
