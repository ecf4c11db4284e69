"""`state_is` looks at one place of the final state."""

import math
from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger import Ledger
from greenroom.metrics import state_is
from metrics.runs import (
    changed,
    run,
    user,
)

STATE = run(
    user("Hi"), changed(session={"order": {"id": 7, "lines": ["a", "b"]}, "none": None, "ok": True})
)


async def outcome(metric: Any, ledger: Ledger, case: Case | None = None) -> Any:
    return (await score(ledger, [metric], case or Case("c")))[metric.name]


@pytest.mark.parametrize(
    "metric, measured",
    [
        (state_is("session", "order.id", 7), 7),
        (state_is("session", "order.lines.1", "b"), "b"),
        (state_is("session", "order.lines", ["a", "b"]), ["a", "b"]),
        (state_is("session", "order.lines", ("a", "b")), ["a", "b"]),
        (state_is("session", "none", None), None),
        (state_is("session", "order.id", where=lambda v: v > 6), 7),
        (state_is("session", "order", query={"id": {"$gte": 7}, "lines": {"$size": 2}}), None),
        (state_is("session", "missing", query={"$exists": False}), None),
        (state_is("session", query={"order.id": 7}), None),
        (state_is("user", value={}), {}),
    ],
)
async def test_state_is_passes(metric, measured):
    found = await outcome(metric, STATE)
    assert (found.value, found.passed) == (1.0, True)
    assert measured is None or found.measured == measured


@pytest.mark.parametrize(
    "metric, measured, reason",
    [
        (state_is("session", "order.id", 8), 7, "session.order.id is 7; expected 8"),
        (state_is("session", "order.name", "x"), None, "session.order.name is not set; expected 'x'"),
        (state_is("session", "missing", None), None, "session.missing is not set; expected None"),
        (state_is("session", "order.lines.2", "c"), None, "session.order.lines.2 is not set"),
        (state_is("session", "order.id.deep", 1), None, "session.order.id.deep is not set"),
        (state_is("session", "ok", 1), True, "session.ok is True; expected 1"),
        (state_is("session", "order.id", where=lambda v: v > 7), 7, "passes <lambda>"),
        (state_is("session", "missing", where=lambda v: True), None, "session.missing is not set"),
        (state_is("session", "order.id", query={"$in": [1]}), 7, "a match of {'$in': [1]}"),
        (state_is("user", "tier", "gold"), None, "user.tier is not set; expected 'gold'"),
    ],
)  # fmt: skip
async def test_state_is_fails_and_says_what_it_found(metric, measured, reason):
    found = await outcome(metric, STATE)
    assert (found.value, found.passed, found.measured) == (0.0, False, measured)
    assert reason in found.reason


async def test_a_key_with_a_dot_in_it_is_found():
    ledger = run(user("Hi"), changed(session={"a.b": 1}))
    assert (await outcome(state_is("session", "a.b", 1), ledger)).passed


async def test_an_unknown_scope_is_unmeasured():
    for metric in (state_is("pateint", "x", 1), state_is("pateint", query={"x": {"$ne": 1}})):
        found = await outcome(metric, STATE)
        assert isinstance(found, Unmeasured)
        assert "'pateint'" in found.why


async def test_a_predicate_cannot_change_the_state():
    await outcome(state_is("session", "order", where=lambda v: v.clear() is None), STATE)
    assert (await outcome(state_is("session", "order.id", 7), STATE)).passed


@pytest.mark.parametrize(
    "make",
    [
        lambda: state_is("session", "x"),
        lambda: state_is("session", "x", 1, where=bool),
        lambda: state_is("session", "x", where=bool, query={}),
        lambda: state_is("session", "x", query={"$near": 1}),
        lambda: state_is("session", "x", math.nan),
    ],
)
def test_state_is_refuses_what_could_not_be_measured(make):
    with pytest.raises(BadInput):
        make()
