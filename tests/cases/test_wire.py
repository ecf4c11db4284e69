"""A field of a record is one line: its type says how it is checked, read and written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from greenroom.cases.fields import Fields
from greenroom.cases.wire import RecordReader, RecordWriter
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json


@dataclass(kw_only=True)
class Order:
    """A record with a field of every type that goes by its type alone."""

    id: str
    note: str = ""
    express: bool = False
    paid: bool = True
    copies: int = 1
    weight: float | None = None
    tags: Sequence[str] = ()
    extra: Mapping[str, Json] = field(default_factory=dict)
    wanted: Sequence[str] | None = None


READER, WRITER = RecordReader(Order, {}), RecordWriter(Order, {})
FULL = Order(
    id="a", note="n", express=True, paid=False, copies=2, weight=0, tags=["x"], extra={"k": 1}
)


def read(data: Json) -> Order:
    fields = Fields(data, "order", READER.names, camel=False)
    given = READER.read(fields)
    fields.settle()
    return Order(**given)


@pytest.mark.parametrize("order", [FULL, Order(id="b"), Order(id="c", wanted=[])])
def test_what_is_written_is_read_again(order: Order) -> None:
    assert read(WRITER.write(order, "an order")) == order


def test_what_is_not_set_is_not_written() -> None:
    assert WRITER.write(Order(id="b", tags=[], extra={}), "an order") == {"id": "b"}
    assert WRITER.write(Order(id="b", wanted=[]), "an order") == {"id": "b", "wanted": []}


def test_every_value_of_the_wrong_type_is_told_with_its_place() -> None:
    wrong: dict[str, Json] = {
        "id": 1,
        "note": 2,
        "express": "no",
        "copies": 2.5,
        "weight": True,
        "tags": ["a", 3],
    }
    with pytest.raises(BadFile) as refused:
        read({**wrong, "extra": [], "nte": "n"})
    assert [(p.where, p.message) for p in refused.value.problems] == [
        ("order.id", "1 should be a string"),
        ("order.note", "2 should be a string"),
        ("order.express", "'no' should be true or false"),
        ("order.copies", "2.5 should be a whole number"),
        ("order.weight", "true should be a number"),
        ("order.tags[1]", "3 should be a string"),
        ("order.extra", "[] should be a mapping"),
        ("order.nte", "the field 'nte' is unknown"),
    ]
    assert refused.value.problems[-1].fix == "Did you mean 'note'?"
