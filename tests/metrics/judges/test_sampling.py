"""Several samples of one judge: counted, and not asked for once they cannot matter."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.cases import Score, Unmeasured
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
async def test_five_votes_stop_once_four_can_or_cannot_be_reached(votes, calls, passed):
    model = Asked(*(yes("is_correct") if v == "y" else no("is_correct") for v in votes))
    found = await measured(final_response_match_v2(model=model))
    assert (model.calls, found.passed) == (calls, passed)
    assert found.details["samples"] == 5
    assert len(found.details["votes"]) == calls


async def test_a_judge_that_must_be_unanimous_stops_at_the_first_no():
    model, metric = polite(no(), samples=9, threshold=1.0)
    assert not (await measured(metric)).passed
    assert model.calls == 1


@pytest.mark.parametrize(
    "votes, calls, value", [("yyyyy", 3, 1.0), ("nnyyy", 5, 1.0), ("nynn", 4, 0.0)]
)
async def test_a_majority_decides_by_more_than_half(votes, calls, value):
    answers = [yes() if v == "y" else no() for v in votes]
    model, metric = polite(*answers, samples=5, aggregate="majority")
    found = await measured(metric)
    assert (found.value, found.passed, model.calls) == (value, value == 1.0, calls)


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
