"""A function may stand in a query, and numbers may be near enough."""

import math
from typing import Any

import pytest

from greenroom.errors import BadQuery, BadValue
from greenroom.ledger import matches
from greenroom.ledger.arguments import value_fits
from greenroom.ledger.query import check_query, holds_code, plain_query

STATE: Any = {"total": 5, "lines": [{"n": 1}, {"n": 4}]}


def big(value):
    return value > 3


@pytest.mark.parametrize(
    "query, found",
    [
        ({"total": big}, True),
        ({"lines.0.n": big}, False),
        ({"lines": {"$elemMatch": {"n": big}}}, True),
        ({"$or": [{"total": 1}, {"total": big}]}, True),
        ({"total": {"$not": big}}, False),
        ({"gone": lambda value: True}, False),
        ({"total": {"$near": [5.1, 0.2]}}, True),
        ({"total": {"$near": [5, 0]}}, True),
        ({"total": {"$near": [6, 0.5]}}, False),
        ({"lines": {"$near": [5, 1]}}, False),
        ({"gone": {"$near": [5, 9]}}, False),
    ],
)
def test_functions_and_near_numbers_are_asked_like_other_operators(query, found):
    check_query(query)
    assert matches(STATE, query) is found


@pytest.mark.parametrize(
    "one, other, tolerance, found",
    [
        (1.1, 1, 0.1, True),  # as written, though not in binary
        (1.1001, 1, 0.1, False),
        (10**17 + 1, 1e17, 0.5, False),  # which floats cannot tell apart
        (10**17 + 1, 1e17, 1, True),
        (10**400, 1.0, 5, False),  # no float can hold it
    ],
)
def test_numbers_differ_by_what_is_written(one, other, tolerance, found):
    assert matches(one, {"$near": [other, tolerance]}) is found
    assert value_fits(other, one, tolerance) is found


@pytest.mark.parametrize(
    "operand", [5, [5], [5, -1], [5, math.inf], [math.nan, 1], ["5", 1], [True, 1], [5, 1, 1], None]
)
def test_near_wants_a_number_and_a_tolerance(operand):
    with pytest.raises(BadQuery, match=r"\$near needs \[number, tolerance\]"):
        check_query({"total": {"$near": operand}})


def test_an_async_function_is_refused_and_not_always_true():
    async def never(value):
        return False

    with pytest.raises(BadQuery, match="async"):
        matches(STATE, {"total": never})


def test_written_down_a_function_is_named_and_cannot_be_asked_any_more():
    data: Any = plain_query({"total": big, "lines": [{"n": 1}]})
    assert "test_query_functions.big:" in data["total"]["$live"]
    assert holds_code(data)
    assert not holds_code(plain_query({"total": 5, "live": {"n": [1]}}))
    check_query(data)
    with pytest.raises(BadQuery, match="Pass the case itself"):
        matches(STATE, data)


def test_what_is_neither_data_nor_a_function_cannot_be_written_down():
    with pytest.raises(BadValue):
        plain_query({"total": object()})


def test_the_mark_of_a_function_is_not_offered_as_an_operator():
    with pytest.raises(BadQuery) as refused:
        check_query({"total": {"$bogus": 1}})
    assert "$near" in str(refused.value)
    assert "$live" not in str(refused.value)
