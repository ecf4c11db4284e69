"""What others wrote or an agent did is compared by the letter, whatever it looks like."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from greenroom import Expect, call
from greenroom.cases.literals import literal, unquoted
from greenroom.ledger.arguments import args_match

NAMES = st.sampled_from(["a", "b", "$eq", "$gt", "$in", "$unheard"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.text("a$", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(NAMES, inner, max_size=2),
    max_leaves=6,
)
ARGS = st.dictionaries(NAMES, VALUES, max_size=3)


@given(ARGS)
def test_arguments_come_back_as_they_were(args: dict[str, Any]) -> None:
    assert unquoted(literal(args)) == args


@given(ARGS, ARGS)
def test_arguments_fit_themselves_and_no_others(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert Expect(tools=[call("look", **literal(one))]).tools
    assert args_match(literal(one), one)
    assert args_match(literal(one), other) == (repr(sorted_(one)) == repr(sorted_(other)))


def sorted_(value: Any) -> Any:
    """A value in which the order of keys says nothing, as in JSON."""
    if isinstance(value, dict):
        return {key: sorted_(value[key]) for key in sorted(value)}
    return [sorted_(item) for item in value] if isinstance(value, list) else value


@given(ARGS)
def test_arguments_without_operators_stay_plain(args: dict[str, Any]) -> None:
    plain = {name: value for name, value in args.items() if "$" not in repr(value)}
    assert literal(plain) == plain


def test_operators_that_are_meant_stay() -> None:
    meant: dict[str, Any] = {"n": {"$gt": 3}, "m": {"$eq": 3}, "k": {"$eq": [1], "$ne": {"$a": 1}}}
    assert unquoted(meant) == meant
