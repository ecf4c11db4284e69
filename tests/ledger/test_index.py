"""Where a voice stands follows from its events, however and whenever it is asked for."""

import copy
import pickle
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.errors import BadValue
from greenroom.ledger import (
    Event,
    Ledger,
    ModelReplied,
    RunResumed,
    ToolCall,
    ToolCalled,
    ToolFailed,
)
from greenroom.ledger.index import VoiceIndex
from ledger.values import EVENTS, ledger_of

NAMES = VoiceIndex.__struct_fields__


def facts(index: VoiceIndex) -> dict[str, Any]:
    return {name: getattr(index, name) for name in NAMES if not name.startswith("_")}


@given(st.lists(EVENTS))
def test_a_ledger_that_is_read_stands_where_the_one_that_was_written_stood(
    events: list[Event],
) -> None:
    written = ledger_of(*events)
    read = Ledger.loads(written.dumps())
    for voice in ("agent", "user"):
        assert facts(read.index_of(voice)) == facts(written.index_of(voice))


@given(st.lists(EVENTS))
def test_no_two_indexes_share_anything_that_can_be_changed(events: list[Event]) -> None:
    ledger, bare = ledger_of(*events), facts(VoiceIndex("agent"))
    copy = ledger.copy()
    for name, value in facts(ledger.index_of()).items():
        if isinstance(value, dict | list | set):
            assert value is not getattr(copy.index_of(), name)
    assert facts(VoiceIndex("agent")) == bare


@given(st.lists(EVENTS))
def test_a_copy_of_a_ledger_stands_where_it_stands_and_goes_its_own_way(
    events: list[Event],
) -> None:
    ledger = ledger_of(*events)
    for other in (copy.copy(ledger), copy.deepcopy(ledger), pickle.loads(pickle.dumps(ledger))):
        assert other == ledger
        assert facts(other.index_of()) == facts(ledger.index_of())
        other.append(replied("x"), at=0.0)
        assert len(other) == len(ledger) + 1
        assert not ledger.index_of().has_wanted("x")


def test_where_a_voice_stands_can_be_copied_by_itself() -> None:
    ledger = Ledger()
    ledger.append(replied("a"), at=0.0)
    index = ledger.index_of()
    for other in (copy.deepcopy(index), pickle.loads(pickle.dumps(index))):
        assert facts(other) == facts(index)
        assert other.has_wanted("a")


def test_a_voice_that_is_only_asked_about_has_not_been_heard() -> None:
    ledger = Ledger()
    ledger.append(replied("a"), at=0.0)
    assert ledger.fold("user") == {}
    assert ledger.index_of("user").said == []
    assert list(ledger.voices) == ["agent"]


def test_a_call_issued_again_after_a_cut_counts_where_it_was_issued_first() -> None:
    ledger = Ledger()
    for event in (
        ToolCalled(path="@1/a", call_id="1", tool="look", args={}),
        RunResumed(),
        ToolCalled(path="@2/a", call_id="1", tool="look", args={}),
    ):
        ledger.append(event, at=0.0)
    index = ledger.index_of()
    assert index.call_number("look", "2", "@3/a") == 1
    assert [call.path for call in index.issued] == ["@1/a"]


def replied(*ids: str) -> ModelReplied:
    return ModelReplied(path="@1", calls=tuple(ToolCall("look", {}, one) for one in ids))


def test_the_ids_that_models_gave_are_known_whenever_they_are_asked_for() -> None:
    ledger = Ledger()
    index = ledger.index_of()
    assert not index.has_wanted("a")
    ledger.append(replied("a", "b"), at=0.0)
    assert index.has_wanted("a")
    ledger.append(replied("c"), at=0.0)
    ledger.append(replied(), at=0.0)
    assert [index.has_wanted(one) for one in "abcd"] == [True, True, True, False]


def test_calls_are_counted_by_their_tool_and_without_those_refused() -> None:
    ledger = Ledger()
    index = ledger.index_of()
    assert index.call_number("look", "1", "@1") == 0
    for call_id, tool in (("1", "look"), ("2", "buy"), ("3", "look")):
        ledger.append(ToolCalled(path="@1", call_id=call_id, tool=tool, args={}), at=0.0)
    ledger.append(
        ToolFailed(path="@1", call_id="3", tool="look", error="no", source="refused"), at=0.0
    )
    assert index.call_number("look", "4", "@1") == 1
    assert index.call_number("buy", "4", "@1") == 1
    assert index.call_number("sell", "4", "@1") == 0


class Weighed(Event, frozen=True, kw_only=True):
    VALUES: ClassVar[tuple[str, ...]] = ("left", "right")
    left: Any = None
    right: Any = None


def test_each_of_several_values_of_an_event_is_copied() -> None:
    left, right = {"kg": 1}, ("a", "b")
    event = Ledger().append(Weighed(left=left, right=right), at=0.0)
    assert (event.left, event.right) == ({"kg": 1}, ["a", "b"])
    assert event.left is not left
    with pytest.raises(BadValue, match=r"Weighed\.right holds"):
        Ledger().append(Weighed(left=left, right=object()), at=0.0)
