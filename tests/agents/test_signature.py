"""Arguments of plain types are checked without pydantic, and come out as pydantic has them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.agents.signature import (
    _arguments,  # pyright: ignore[reportPrivateUsage] - the thorough way, to compare with
    checked_arguments,
)


def book(
    name: str, nights: int, price: float, late: bool = False, *, note: str = "", ctx: Any = None
) -> str:
    """Book a room."""
    return f"{name} {nights} {price} {late} {note} {ctx}"


class Text(str):
    __slots__ = ()


NAMES = st.sampled_from(["name", "nights", "price", "late", "note", "ctx", "more"])
VALUES = st.one_of(
    st.text(max_size=3),
    st.sampled_from(["7", "7.5", "true", "é", "\ud800", Text("x")]),
    st.integers(),
    st.floats(),
    st.booleans(),
    st.none(),
    st.lists(st.integers(), max_size=1),
)
USUAL = st.fixed_dictionaries(
    {"name": st.text(max_size=3), "nights": st.integers(), "price": st.floats(allow_nan=False)}
)


def thorough(args: dict[str, Any]) -> dict[str, Any]:
    model = _arguments(book)
    found = model.model_validate(dict(args))
    return {model.model_fields[name].alias: getattr(found, name) for name in found.model_fields_set}


def outcome(check: Any, args: dict[str, Any]) -> Any:
    try:
        return {name: (type(value), repr(value)) for name, value in check(args).items()}
    except ValueError as error:
        return str(error)


@given(USUAL, st.dictionaries(NAMES, VALUES))
def test_the_quick_way_gives_what_the_thorough_one_gives(
    usual: dict[str, Any], more: dict[str, Any]
) -> None:
    for args in (usual, more, usual | more):
        assert outcome(lambda given: checked_arguments(book, given), args) == outcome(
            thorough, args
        )


def test_the_arguments_are_a_copy() -> None:
    args = {"name": "Ada", "nights": 2, "price": 80.0}
    checked_arguments(book, args)["nights"] = 3
    assert args["nights"] == 2


def test_what_is_no_number_is_told() -> None:
    with pytest.raises(ValueError, match="valid integer"):
        checked_arguments(book, {"name": "Ada", "nights": "two", "price": 80.0})
