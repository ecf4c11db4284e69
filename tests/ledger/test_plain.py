"""Values enter a ledger as plain JSON copies, or not at all."""

import json
from asyncio import Lock
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from enum import Enum, IntEnum
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from pydantic import BaseModel

from greenroom.errors import BadValue
from greenroom.ledger import Json, plain
from greenroom.ledger.plain import as_array, as_object, same, without_addresses
from ledger.values import JSON


def containers(value: Json) -> list[int]:
    """The identity of every object and array inside a value."""
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    own = [id(value)] if isinstance(value, dict | list) else []
    return own + [found for item in inner for found in containers(item)]


@given(JSON)
def test_a_plain_value_survives_a_trip_through_json(value: Json) -> None:
    assert json.loads(json.dumps(plain(value), allow_nan=False)) == value


@given(JSON)
def test_a_plain_value_shares_nothing_with_what_it_was_made_from(value: Json) -> None:
    assert not set(containers(plain(value))) & set(containers(value))


@given(JSON)
def test_making_a_plain_value_plain_again_changes_nothing(value: Json) -> None:
    once = plain(value)
    assert same(plain(once), once)


class Colour(Enum):
    RED = "red"


class Level(IntEnum):
    HIGH = 3


class Point(NamedTuple):
    x: int
    y: int


@dataclass
class Order:
    id: int
    tags: tuple[str, ...] = ()


class Patient(BaseModel):
    name: str
    born: date


class Shout(str):
    __slots__ = ()


@pytest.mark.parametrize(
    "value, expected",
    [
        (Colour.RED, "red"),
        (Level.HIGH, 3),
        (Point(1, 2), [1, 2]),
        (Order(7, ("new",)), {"id": 7, "tags": ["new"]}),
        (Patient(name="Ada", born=date(1815, 12, 10)), {"name": "Ada", "born": "1815-12-10"}),
        (datetime(2026, 1, 2, 3, 4, tzinfo=UTC), "2026-01-02T03:04:00+00:00"),
        (UUID(int=5), "00000000-0000-0000-0000-000000000005"),
        (PurePosixPath("a/b"), "a/b"),
        (MappingProxyType({"a": (1, 2)}), {"a": [1, 2]}),
        ({Colour.RED: 1}, {"red": 1}),
        (Shout("hey"), "hey"),
    ],
)
def test_types_with_one_obvious_json_form_take_it(value: Any, expected: Json) -> None:
    found = plain(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    "value",
    [
        float("nan"),
        float("inf"),
        {"deep": [1, {"er": float("-inf")}]},
        b"bytes",
        {1, 2},
        object(),
        len,
        Patient,
        Order,
        {1: "one"},
        {None: "none"},
        complex(1, 2),
    ],
)
def test_what_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(BadValue, match="mock of 'refund'"):
        plain(value, "mock of 'refund'")


def test_a_list_that_contains_itself_is_refused() -> None:
    circle: list[Any] = []
    circle.append(circle)
    with pytest.raises(BadValue, match="contains itself"):
        plain(circle)


def test_an_object_that_contains_itself_is_refused() -> None:
    circle: dict[str, Any] = {}
    circle["me"] = {"again": circle}
    with pytest.raises(BadValue, match="contains itself"):
        plain(circle)


def test_one_list_in_two_places_becomes_two() -> None:
    shared = [1]
    found: Any = plain({"a": shared, "b": shared})
    found["a"].append(2)
    assert found["b"] == [1]


@pytest.mark.parametrize(
    "one, other",
    [(True, 1), (0, False), ([True], [1]), ({"a": {"b": 0}}, {"a": {"b": False}}), (1.0, True)],
)
def test_true_is_not_one_however_deep(one: Json, other: Json) -> None:
    assert not same(one, other)
    assert not same(other, one)


@given(JSON)
def test_a_value_is_the_same_as_its_copy(value: Json) -> None:
    assert same(value, plain(value))


def test_a_whole_float_is_the_same_number_as_an_integer() -> None:
    assert same({"price": 3.0}, {"price": 3})


class Thing: ...


@pytest.mark.parametrize(
    "kind",
    [
        Thing,
        Lock,
        lambda: test_an_object_is_shown_without_its_place,
        lambda: (lambda: None).__code__,
    ],
)
def test_an_object_is_shown_without_its_place(kind: Callable[[], object]) -> None:
    thing = kind()
    assert "0x" in repr(thing)
    assert "0x" not in without_addresses(repr([thing, {"twice": thing}]))


@pytest.mark.parametrize(
    "text", ["look at 0x1000", "look at 0x100000", "at 0x1000>", "0x7f0000000>"]
)
def test_what_only_looks_like_an_address_stays(text: str) -> None:
    assert without_addresses(text) == text


@pytest.mark.parametrize("value", [None, True, 1, "text", [1]])
def test_what_is_not_an_object_is_refused_with_its_place(value: Json) -> None:
    assert as_object({"a": value}) == {"a": value}
    with pytest.raises(BadValue, match=r"^the reply is .*, which is not a JSON object\.$"):
        as_object(value, "the reply")


@pytest.mark.parametrize("value", [None, True, 1, "text", {"a": 1}])
def test_what_is_not_an_array_is_refused_with_its_place(value: Json) -> None:
    assert as_array([value]) == [value]
    with pytest.raises(BadValue, match=r"^the reply is .*, which is not a JSON array\.$"):
        as_array(value, "the reply")


class Count(int):
    pass


@pytest.mark.parametrize("digits", [4299, 4300])
def test_a_whole_number_that_can_be_read_back_is_kept(digits: int) -> None:
    number = 10**digits - 1
    assert plain({"a": [number, -number]}) == {"a": [number, -number]}
    assert json.loads(json.dumps(plain([number]))) == [number]


@pytest.mark.parametrize(
    "number", [10**4300, -(10**4300), Count(10**4300)], ids=["high", "low", "subclass"]
)
@pytest.mark.parametrize("within", [lambda n: n, lambda n: [n], lambda n: {"a": n, "b": [1]}])
def test_a_whole_number_that_no_file_could_give_back_is_refused(
    number: int, within: Callable[[int], Any]
) -> None:
    with pytest.raises(BadValue, match="more than 4300 digits"):
        plain(within(number))
