"""Whole numbers that come as text, from people and from elsewhere."""

import pytest

from greenroom.ledger.plain import number_in
from greenroom.ledger.query import MISSING, value_at
from greenroom.suite.option_types import is_shard
from greenroom.traces.writer import price_of, whole_number

LONG = "9" * 5000
"""More digits than Python reads."""


@pytest.mark.parametrize(
    "written, number",
    [("7", 7), ("007", 7), ("0", 0), ("", None), ("-7", None), ("7.0", None), ("²", None)],
)
def test_a_whole_number_is_what_its_digits_write(written, number):
    assert number_in(written) == number


def test_more_digits_than_any_number_has_that_is_meant_are_none():
    assert number_in(LONG) is None


def test_a_place_in_a_list_of_too_many_digits_is_not_there():
    assert value_at({"a": [1, 2]}, "a.1") == 2
    assert value_at({"a": [1, 2]}, f"a.{LONG}") is MISSING


def test_a_shard_of_too_many_digits_is_none():
    assert is_shard("2/4")
    assert not is_shard(f"1/{LONG}")


@pytest.mark.parametrize("given", [LONG, float("inf"), float("nan"), 10**400, -1, "x", True])
def test_tokens_and_prices_that_cannot_be_are_unknown(given):
    assert whole_number(given) is None
    assert price_of(given) is None
