"""Records: declared and used like frozen dataclasses."""

import copy
import pickle
from dataclasses import KW_ONLY, FrozenInstanceError, asdict, field, fields, is_dataclass, replace
from typing import Generic, TypeVar

import pytest

from greenroom.ledger.records import fill, record

T = TypeVar("T")


@record
class Room:
    name: str
    beds: int = 1
    _: KW_ONLY
    tags: list[str] = field(default_factory=list[str])
    seen: int = field(default=0, compare=False, repr=False)


@record
class Suite(Room):
    floor: int = 0


@record(kw_only=True)
class Booking:
    guest: str = ""
    nights: int


@record
class Box(Generic[T]):
    held: T


@record
class Checked:
    value: float

    def __post_init__(self) -> None:
        fill(self, "value", float(self.value))


def test_fields_are_given_by_place_and_by_name() -> None:
    room = Room("blue", 2, tags=["sea"])
    assert (room.name, room.beds, room.tags, room.seen) == ("blue", 2, ["sea"], 0)
    with pytest.raises(TypeError):
        Room("blue", 2, ["sea"])  # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match="nights"):
        Booking(guest="Ada")  # pyright: ignore[reportCallIssue]
    assert Booking(nights=2) == Booking(guest="", nights=2)


def test_every_record_has_its_own_default() -> None:
    Room("blue").tags.append("sea")
    assert Room("blue").tags == []


def test_a_record_cannot_be_edited() -> None:
    room = Room("blue")
    with pytest.raises(FrozenInstanceError):
        room.beds = 3  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError):
        del room.name  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(FrozenInstanceError):
        room.view = "sea"  # pyright: ignore[reportAttributeAccessIssue]
    assert room == Room("blue")


def test_what_does_not_count_is_neither_compared_nor_shown() -> None:
    assert Room("blue", seen=1) == Room("blue", seen=2)
    assert Room("blue") != Room("red")
    assert repr(Room("blue", seen=1)) == "Room(name='blue', beds=1, tags=[])"
    assert hash(Box((1, 2))) == hash(Box((1, 2)))


def test_records_of_two_kinds_are_never_equal() -> None:
    assert Room("blue") != Suite("blue")
    assert Box("blue") != Checked(1)


def test_a_record_is_a_dataclass_to_others() -> None:
    suite = Suite("blue", floor=4)
    assert is_dataclass(suite)
    assert [part.name for part in fields(Suite)] == ["name", "beds", "tags", "seen", "floor"]
    assert replace(suite, beds=2) == Suite("blue", 2, floor=4)
    assert asdict(suite) == {"name": "blue", "beds": 1, "tags": [], "seen": 0, "floor": 4}
    match Room("blue", 2):
        case Room(name, beds):
            assert (name, beds) == ("blue", 2)


@pytest.mark.parametrize(
    "one", [Suite("blue", 2, tags=["sea"], floor=4), Box(7), Booking(nights=2)]
)
def test_a_copy_is_equal(one: object) -> None:
    assert copy.copy(one) == copy.deepcopy(one) == pickle.loads(pickle.dumps(one)) == one


def test_a_record_may_look_at_what_it_was_given() -> None:
    assert repr(Checked(3)) == "Checked(value=3.0)"


def test_a_child_without_fields_of_its_own_is_a_record_too() -> None:
    class Attic(Room):
        pass

    assert Attic("blue", 2).beds == 2
    assert Attic("blue") != Room("blue")


@record(frozen=False, eq=False)
class Guest:
    name: str
    nights: int = 0
    wishes: list[str] = field(default_factory=list[str])


def test_what_is_not_frozen_is_changed_by_its_owner() -> None:
    ada, other = Guest("Ada"), Guest("Ada")
    ada.nights += 2
    ada.wishes.append("a view")
    assert (ada.nights, ada.wishes, other.nights, other.wishes) == (2, ["a view"], 0, [])
    assert ada != other
    assert len({ada, other}) == 2
    with pytest.raises(AttributeError):
        ada.nigths = 3  # pyright: ignore[reportAttributeAccessIssue]
