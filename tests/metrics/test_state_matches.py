"""`state_matches` holds a query against the state, at the end or after a turn."""

from typing import Any

import pytest

from greenroom import Case, Score, Turn, Unmeasured, score
from greenroom.cases import Criterion
from greenroom.errors import BadInput
from greenroom.ledger import Ledger
from greenroom.metrics import as_metric, state_matches
from metrics.runs import agent, changed, run, user

TALK = Case("talk", turns=[Turn("one"), Turn("two")])


def talk() -> Ledger:
    return run(
        user("one"), changed(session={"step": 1, "cart": {"total": 5}}), agent("x"),
        user("two"), changed(session={"step": 2}), agent("y"),
    )  # fmt: skip


async def outcome(metric: Any, case: Case = TALK) -> Any:
    return (await score(talk(), [metric], case))[metric.name]


@pytest.mark.parametrize(
    "query, turn, passed",
    [
        ({"session": {"step": 2}}, None, True),
        ({"session": {"step": 1}}, None, False),
        ({"session": {"step": 1}}, 1, True),
        ({"session": {"step": 2}}, 2, True),
        ({"session": {"cart.total": {"$near": [5.01, 0.1]}}}, 1, True),
        ({"session": {"cart": {"total": lambda total: total > 4}}}, None, True),
        ({"session": {"cart": {"total": lambda total: total > 5}}}, None, False),
        ({"session": {"gone": lambda value: True}}, None, False),
        ({"session": {"$or": [{"step": 9}, {"step": 2}]}, "user": {"x": {"$exists": False}}}, None, True),
    ],
)  # fmt: skip
async def test_a_query_is_asked_of_the_end_or_of_a_turn(query, turn, passed):
    found = await outcome(state_matches(query, turn=turn))
    assert (found.value, found.passed) == (float(passed), passed)


async def test_the_reason_names_the_places_that_differ():
    found = await outcome(state_matches({"session": {"step": 2, "cart.total": 6, "gone": 1}}))
    assert found.reason == (
        "session.cart.total is 5; expected 6; session.gone is not set; expected 1"
    )
    assert found.measured == {"session": {"step": 2, "cart": {"total": 5}}}


async def test_a_turn_that_was_never_reached_fails():
    found = await outcome(state_matches({"session": {"step": 2}}, turn=3))
    assert (found.passed, found.reason) == (False, "turn 3: never reached")


async def test_it_can_be_asked_for_by_name():
    asked = Criterion("state_matches", options={"query": {"session": {"step": {"$gt": 1}}}})
    (found,) = (await score(talk(), [asked], TALK)).values()
    assert isinstance(found, Score)
    assert found.passed


async def test_an_unknown_scope_is_unmeasured():
    assert isinstance(await outcome(state_matches({"sesion": {"step": 2}})), Unmeasured)


async def test_a_function_cannot_change_the_state():
    ledger = talk()
    meddling = state_matches({"session": {"cart": lambda cart: cart.clear() is None}})
    after = state_matches({"session": {"cart.total": 5}})
    found = await score(ledger, [meddling, after], TALK)
    assert all(isinstance(one, Score) and one.passed for one in found.values())


@pytest.mark.parametrize(
    "options",
    [
        {"query": {}},
        {"query": {"session": 3}},
        {"query": {"session": {"n": {"$more": 1}}}},
        {"query": {"session": {"n": 1}}, "turn": 0},
        {"query": {"session": {"n": 1}}, "turn": True},
        {"query": "session"},
        {},
    ],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(BadInput):
        as_metric(Criterion("state_matches", options=options))
