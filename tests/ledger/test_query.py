"""Queries over state mean what they say, and nonsense is an error, never a match."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Stop, loop
from greenroom.cases import Score, Unmeasured
from greenroom.errors import BadQuery
from greenroom.ledger import Json, matches, matches_state
from greenroom.ledger.changes import State
from greenroom.ledger.plain import same
from ledger.values import JSON

ORDER: dict[str, Json] = {
    "id": 7,
    "paid": True,
    "note": None,
    "total": 19.5,
    "name": "Ada Lovelace",
    "tags": ["new", "gift"],
    "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 3}],
    "ship": {"city": "Paris", "zip": "75001"},
    "v1.2": "dotted",
    "empty": [],
    "nothing": {},
}


@pytest.mark.parametrize(
    "query",
    [
        {"id": {"$eq": 7}},
        {"id": {"$ne": 8}},
        {"unknown": {"$ne": 8}},
        {"total": {"$gt": 19}},
        {"total": {"$gte": 19.5}},
        {"total": {"$lt": 20}},
        {"total": {"$lte": 19.5}},
        {"total": {"$gt": 19, "$lt": 20}},
        {"name": {"$gt": "Ada"}},
        {"id": {"$in": [1, 7]}},
        {"note": {"$in": [None]}},
        {"id": {"$nin": [1, 2]}},
        {"unknown": {"$nin": [1, 2]}},
        {"id": {"$exists": True}},
        {"note": {"$exists": True}},
        {"unknown": {"$exists": False}},
        {"name": {"$regex": "^Ada"}},
        {"name": {"$regex": "(?i)LOVE"}},
        {"$and": [{"id": 7}, {"paid": True}]},
        {"$or": [{"id": 8}, {"paid": True}]},
        {"total": {"$or": [{"$lt": 0}, {"$gt": 10}]}},
        {"total": {"$not": {"$gt": 20}}},
        {"unknown": {"$not": {"$gt": 20}}},
        {"$not": {"id": 8}},
        {"tags": {"$all": ["gift", "new"]}},
        {"lines": {"$all": [{"sku": "b"}, {"n": {"$lt": 2}}]}},
        {"tags": {"$size": 2}},
        {"empty": {"$size": 0}},
        {"lines": {"$elemMatch": {"sku": "b", "n": {"$gte": 3}}}},
        {"tags": {"$elemMatch": {"$regex": "^g"}}},
        {"tags": ["new", "gift"]},
        {"note": None},
        {"ship.city": "Paris"},
        {"ship": {"city": "Paris"}},
        {"ship": {"$eq": {"city": "Paris", "zip": "75001"}}},
        {"lines.1.n": 3},
        {"lines": {"0.sku": "a"}},
        {"v1.2": "dotted"},
        {"nothing": {}},
        {"id": 7.0},
    ],
)
def test_an_order_matches_what_it_is(query: Any) -> None:
    assert matches(ORDER, query)
    assert matches_state({"session": {"order": ORDER}}, {"session": {"order": query}})


@pytest.mark.parametrize(
    "query",
    [
        {"id": {"$eq": 8}},
        {"id": {"$ne": 7}},
        {"total": {"$gt": 19.5}},
        {"total": {"$gte": 20}},
        {"total": {"$lt": 19.5}},
        {"total": {"$lte": 19}},
        {"name": {"$gt": 5}},
        {"paid": {"$gt": 0}},
        {"note": {"$lt": 5}},
        {"unknown": {"$gte": 0}},
        {"id": {"$in": [1, 2]}},
        {"id": {"$in": []}},
        {"unknown": {"$in": [None]}},
        {"id": {"$nin": [7]}},
        {"id": {"$exists": False}},
        {"note": {"$exists": False}},
        {"unknown": {"$exists": True}},
        {"name": {"$regex": "^Lovelace"}},
        {"id": {"$regex": "7"}},
        {"$and": [{"id": 7}, {"paid": False}]},
        {"$or": [{"id": 8}, {"paid": False}]},
        {"$or": []},
        {"total": {"$not": {"$gt": 10}}},
        {"$not": {"id": 7}},
        {"tags": {"$all": ["gift", "old"]}},
        {"name": {"$all": ["A"]}},
        {"tags": {"$size": 1}},
        {"name": {"$size": 12}},
        {"lines": {"$elemMatch": {"sku": "a", "n": 3}}},
        {"ship": {"$elemMatch": {"city": "Paris"}}},
        {"tags": ["gift", "new"]},
        {"tags": "new"},
        {"unknown": None},
        {"unknown.deep.er": 1},
        {"id.deep": 7},
        {"lines.2.n": 3},
        {"lines.-1.n": 3},
        {"lines.²": 3},
        {"ship": {"city": "Paris", "street": "x"}},
        {"ship": {"$eq": {"city": "Paris"}}},
        {"ship": {}},
        {"unknown": {}},
        {"id": {}},
        {"empty": {}},
    ],
)
def test_an_order_does_not_match_what_it_is_not(query: Any) -> None:
    assert not matches(ORDER, query)


@pytest.mark.parametrize(
    "value, query",
    [
        (True, 1),
        (1, True),
        (0, False),
        ({"a": True}, {"a": 1}),
        ({"a": [True]}, {"a": [1]}),
        ({"a": {"b": [0]}}, {"a": {"b": [False]}}),
        (True, {"$eq": 1}),
        ([1, [True]], {"$eq": [1, [1]]}),
        (True, {"$in": [1]}),
        ({"n": 1}, {"$in": [{"n": True}]}),
        ([True], {"$all": [1]}),
        ([True], {"$elemMatch": {"$eq": 1}}),
        ([{"a": 1}], {"$elemMatch": {"a": True}}),
        (True, {"$gte": 1}),
        (1, {"$lte": True}),
    ],
)
def test_true_is_never_one(value: Json, query: Any) -> None:
    assert not matches(value, query)


@pytest.mark.parametrize(
    "value, query", [(True, {"$ne": 1}), (0, {"$nin": [False]}), ([1], {"$ne": [True]})]
)
def test_true_differs_from_one(value: Json, query: Any) -> None:
    assert matches(value, query)


NONSENSE = [
    {"$exist": True},
    {"a": {"$bogus": 1}},
    {"a": {"$not": {"$bogus": 1}}},
    {"$or": [{"a": 1}, {"b": {"$bogus": 1}}]},
    {"$and": [{"$bogus": 1}]},
    {"a": {"$all": [{"$bogus": 1}]}},
    {"a": {"$elemMatch": {"b": {"$bogus": 1}}}},
    {"a": {"b": {"c": {"$bogus": 1}}}},
    {"a": {"$exists": True, "b": 1}},
    {"a": {"$gt": {"$bogus": 1}}},
    {"a": {"$in": 5}},
    {"a": {"$nin": "text"}},
    {"a": {"$all": 1}},
    {"$and": {"a": 1}},
    {"$or": "a"},
    {"a": {"$regex": "("}},
    {"a": {"$regex": 5}},
    {"a": {"$size": "two"}},
    {"a": {"$size": {"$gt": 1}}},
    {"a": {"$exists": "no"}},
    {7: "seven"},
    {"a": {7: "seven"}},
]


@pytest.mark.parametrize("query", NONSENSE)
@pytest.mark.parametrize("session", [{}, {"a": 1}, {"a": [1]}, {"a": {"b": {"c": 1}}}])
def test_a_query_that_means_nothing_is_an_error_whatever_the_state(
    query: Any, session: dict[str, Any]
) -> None:
    with pytest.raises(BadQuery):
        matches_state({"session": session}, {"session": query})


@pytest.mark.parametrize("query", NONSENSE)
def test_a_query_that_means_nothing_is_refused_before_a_run(query: Any) -> None:
    with pytest.raises(BadQuery):
        Stop(state_matches={"session": query})
    with pytest.raises(BadQuery):
        loop(lambda: 1, until={"session": query})


def test_an_unknown_operator_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(BadQuery, match=r"'\$exist'; use one of: \$eq .*\$elemMatch"):
        matches({"a": 1}, {"a": {"$exist": True}})


def test_an_unknown_scope_is_an_error_that_lists_the_known_ones() -> None:
    with pytest.raises(BadQuery, match=r"'pateint'.*'patient', 'session'.*fixture"):
        matches_state({"patient": {}}, {"pateint": {"told": True}})


def test_an_operator_in_place_of_a_scope_is_an_error() -> None:
    query: Any = {"$or": [{"session": {"a": 1}}]}
    with pytest.raises(BadQuery):
        matches_state({"session": {"a": 1}}, query)


@pytest.mark.parametrize("scope", ["session", "user", "app", "temp"])
def test_a_built_in_scope_is_known_before_anything_is_in_it(scope: str) -> None:
    assert matches_state({}, {scope: {"done": {"$exists": False}}})
    assert not matches_state({}, {scope: {"done": True}})


def test_every_scope_of_a_query_must_match() -> None:
    state: State = {"session": {"a": 1}, "patient": {"b": 2}}
    assert matches_state(state, {"session": {"a": 1}, "patient": {"b": 2}})
    assert not matches_state(state, {"session": {"a": 1}, "patient": {"b": 3}})


@given(JSON)
def test_a_value_equals_itself(value: Json) -> None:
    assert matches(value, {"$eq": value})
    assert not matches(value, {"$ne": value})
    assert matches(value, {"$in": [value]})


@given(JSON, JSON)
def test_equality_is_sameness(value: Json, other: Json) -> None:
    assert matches(value, {"$eq": other}) == same(value, other)


COMPARISONS = st.tuples(
    st.sampled_from(["$gt", "$gte", "$lt", "$lte", "$eq", "$ne"]), st.integers(-3, 3)
).map(lambda pair: {pair[0]: pair[1]})


@given(st.integers(-3, 3) | st.text(max_size=2), COMPARISONS, COMPARISONS)
def test_and_or_and_not_are_what_logic_says(value: Json, one: Any, other: Any) -> None:
    a, b = matches(value, one), matches(value, other)
    assert matches(value, {"$and": [one, other]}) == (a and b)
    assert matches(value, {"$or": [one, other]}) == (a or b)
    assert matches(value, {"$not": one}) == (not a)


@given(st.integers(), st.integers())
def test_one_of_less_equal_and_greater_holds(value: int, other: int) -> None:
    found = [matches(value, {op: other}) for op in ("$lt", "$eq", "$gt")]
    assert found.count(True) == 1


@given(JSON, st.dictionaries(st.sampled_from(["a", "a.b", "$gt", "$or", "$size"]), JSON))
def test_a_query_matches_or_not_or_is_refused_and_never_crashes(value: Json, query: Any) -> None:
    with suppress(BadQuery):
        assert matches_state({"session": {"a": value}}, {"session": query}) in (True, False)


E_ACUTE = "\u00e9"
E_AND_ACUTE = "e\u0301"


@pytest.mark.parametrize(
    "query, expected",
    [
        ({"city": f"Orl{E_ACUTE}ans"}, True),
        ({"city": {"$eq": f"Orl{E_ACUTE}ans"}}, True),
        ({"city": {"$in": [f"Orl{E_ACUTE}ans"]}}, True),
        ({"city": {"$ne": f"Orl{E_ACUTE}ans"}}, False),
        ({"city": {"$nin": [f"Orl{E_ACUTE}ans"]}}, False),
        ({"city": {"$regex": f"l{E_ACUTE}a"}}, True),
        ({"city": {"$regex": f"^(?!.*{E_ACUTE})"}}, False),
        ({"city": {"$regex": f"^Orl[{E_AND_ACUTE}]"}}, True),
        ({"plain": {"$regex": f"^[{E_AND_ACUTE}]"}}, False),
        ({"city": {"$lte": f"Orl{E_ACUTE}ans"}}, True),
        ({"city": {"$gte": f"Orl{E_ACUTE}ans"}}, True),
        ({f"{E_ACUTE}t{E_ACUTE}": 1}, True),
        ({f"trips.{E_ACUTE}t{E_ACUTE}": 2}, True),
        ({"city": "Orleans"}, False),
        ({"stops": [{"at": f"Orl{E_ACUTE}ans"}]}, True),
        ({"stops": {"$all": [{"at": f"Orl{E_ACUTE}ans"}]}}, True),
    ],
)
def test_letters_are_equal_however_unicode_writes_them(query: Any, expected: bool) -> None:
    city, summer = f"Orl{E_AND_ACUTE}ans", f"{E_AND_ACUTE}t{E_AND_ACUTE}"
    state: Json = {
        "city": city,
        "stops": [{"at": city}],
        summer: 1,
        "trips": {summer: 2},
        "plain": "e",
    }
    assert matches(state, query) is expected


@pytest.mark.parametrize(
    "predicate",
    [
        lambda tags: (tag == "new" for tag in tags),
        lambda tags: map(str.isupper, tags),
        lambda tags: tags[0].isupper,
        lambda tags: float("nan"),
        lambda tags: "no",
        lambda tags: "",
        lambda tags: b"false",
        lambda tags: (False, "none is new"),
        lambda tags: {"ok": False},
        lambda tags: ValueError("none is new"),
        lambda tags: NotImplemented,
        lambda tags: Unmeasured("none is new"),
        lambda tags: Score(0.0),
    ],
)
def test_a_predicate_that_decides_nothing_is_refused(predicate: Any) -> None:
    with pytest.raises(BadQuery, match="neither true nor false"):
        matches(ORDER, {"tags": predicate})


def test_a_predicate_may_give_what_was_found() -> None:
    assert matches(ORDER, {"name": lambda name: re.search("Ada", name)})
    assert not matches(ORDER, {"name": lambda name: re.search("Bob", name)})
