"""Changes of state: mappings merge deeply, lists replace, and disagreement is noticed."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import with_state_change
from greenroom.errors import BadValue
from greenroom.ledger import Change, append, delete, plain, replace
from greenroom.ledger.changes import State, apply_changes, changes_of, conflicts
from greenroom.ledger.plain import as_object
from ledger.values import JSON, SEVERAL


def changed(state: State, **scopes: dict[str, Any]) -> State:
    apply_changes(state, changes_of(scopes))
    return state


def test_mappings_merge_deeply() -> None:
    state: State = {"session": {"order": {"id": 7, "lines": {"a": 1}}}}
    assert changed(state, session={"order": {"lines": {"b": 2}}}) == {
        "session": {"order": {"id": 7, "lines": {"a": 1, "b": 2}}}
    }


def test_a_list_replaces_the_list_that_was_there() -> None:
    assert changed({"session": {"tags": [1, 2]}}, session={"tags": [3]}) == {
        "session": {"tags": [3]}
    }


def test_append_adds_one_item_to_a_list() -> None:
    state = changed({"session": {"tags": [1]}}, session={"tags": append(2)})
    assert changed(state, session={"tags": append([3])}) == {"session": {"tags": [1, 2, [3]]}}


def test_append_begins_a_list_where_there_is_none() -> None:
    assert changed({}, patient={"notes": append("cough")}) == {"patient": {"notes": ["cough"]}}


def test_replace_puts_a_mapping_in_place_of_another() -> None:
    state: State = {"session": {"order": {"id": 7}}}
    assert changed(state, session={"order": replace({"new": True})}) == {
        "session": {"order": {"new": True}}
    }


def test_delete_takes_a_key_out() -> None:
    state: State = {"session": {"order": {"id": 7, "note": "x"}, "kept": 1}}
    assert changed(state, session={"order": {"note": delete()}}) == {
        "session": {"order": {"id": 7}, "kept": 1}
    }


@pytest.mark.parametrize("session", [{}, {"order": 5}, {"order": None}, {"order": {"id": 7}}])
def test_deleting_what_is_not_there_changes_nothing(session: dict[str, Any]) -> None:
    found = changed(
        {"session": as_object(plain(session))}, session={"order": {"lines": {"a": delete()}}}
    )
    assert found == {"session": session}


def test_an_empty_mapping_is_a_value() -> None:
    assert changed({"session": {"cart": {"a": 1}}}, session={"cart": {}}) == {
        "session": {"cart": {}}
    }


def test_a_mapping_takes_the_place_of_what_was_no_mapping() -> None:
    assert changed({"session": {"order": 7}}, session={"order": {"id": 7}}) == {
        "session": {"order": {"id": 7}}
    }


def test_a_change_shares_nothing_with_the_state_it_was_applied_to() -> None:
    wish = changes_of({"session": {"tags": [[1]]}})
    one: Any = {}
    other: State = {}
    apply_changes(one, wish)
    apply_changes(other, wish)
    one["session"]["tags"][0].append(2)
    assert other == {"session": {"tags": [[1]]}}


def test_a_wish_shares_nothing_with_what_it_was_made_from() -> None:
    tags = [1]
    wish = with_state_change("ok", {"session": {"tags": tags}})
    tags.append(2)
    assert wish.changes == (Change("session", ("tags",), "set", [1]),)


@pytest.mark.parametrize(
    "wish",
    [
        {"session": 7},
        {"session": {7: "seven"}},
        {"session": {"deep": {7: "seven"}}},
        {"session": {"x": float("nan")}},
        {"session": {"x": object()}},
        {"session": {"x": append(b"bytes")}},
        {"session": {"x": [append(1)]}},
        {"session": {"x": replace({"y": delete()})}},
    ],
)
def test_a_wish_that_is_no_json_is_refused(wish: Any) -> None:
    with pytest.raises(BadValue, match="session"):
        with_state_change("ok", wish)


def test_two_writers_who_disagree_about_a_leaf_are_in_conflict() -> None:
    found = conflicts([changes_of({"session": {"a": 1}}), changes_of({"session": {"a": 2}})])
    assert [(c.scope, c.path, c.values) for c in found] == [("session", ("a",), (1, 2))]


@pytest.mark.parametrize(
    "one, other",
    [
        ({"a": 1}, {"a": 1}),
        ({"a": 1}, {"b": 2}),
        ({"a": {"x": 1}}, {"a": {"y": 2}}),
        ({"a": append(1)}, {"a": append(2)}),
        ({"a": replace({"x": 1})}, {"a": {"x": 1}}),
    ],
)
def test_writers_who_agree_or_write_apart_are_not_in_conflict(one: Any, other: Any) -> None:
    assert conflicts([changes_of({"session": one}), changes_of({"session": other})]) == ()


@pytest.mark.parametrize(
    "one, other",
    [
        ({"a": True}, {"a": 1}),
        ({"a": [0]}, {"a": [False]}),
        ({"a": 1}, {"a": delete()}),
        ({"a": 5}, {"a": {"x": 1}}),
        ({"a": replace({"y": 1})}, {"a": {"x": 1}}),
        ({"a": {"x": 1}}, {"a": delete()}),
    ],
)
def test_disagreement_is_noticed_whatever_its_shape(one: Any, other: Any) -> None:
    wishes = [changes_of({"session": one}), changes_of({"session": other})]
    assert len(conflicts(wishes)) == 1
    assert len(conflicts(reversed(wishes))) == 1


def test_a_writer_is_not_in_conflict_with_itself() -> None:
    twice = (Change("session", ("a",), "set", 1), Change("session", ("a",), "set", 2))
    assert conflicts([twice]) == ()


def test_the_same_leaf_in_two_scopes_is_no_conflict() -> None:
    assert conflicts([changes_of({"session": {"a": 1}}), changes_of({"user": {"a": 2}})]) == ()


@given(st.dictionaries(st.sampled_from("abc"), JSON, max_size=3))
def test_a_wish_on_an_empty_state_is_the_state(content: dict[str, Any]) -> None:
    assert changed({}, session=content).get("session", {}) == content


@given(SEVERAL, SEVERAL)
def test_changes_applied_in_two_goes_are_the_same_as_in_one(one: Any, other: Any) -> None:
    apart: State = {}
    apply_changes(apart, one)
    apply_changes(apart, other)
    together: State = {}
    apply_changes(together, one + other)
    assert apart == together
