"""A ledger survives on disk, and a file that was cut loses at most its last line."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Ledger
from greenroom.errors import BadLedger, BadValue
from greenroom.ledger import (
    AgentSaid,
    Event,
    ModelReplied,
    Noted,
    Remembered,
    RunEnded,
    RunResumed,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.codec import encoded, encoded_lines
from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import OwnedJson
from ledger.values import EVENTS, ledger_of


@given(st.lists(EVENTS, max_size=6))
def test_a_ledger_read_back_is_the_ledger_that_was_written(events: list[Event]) -> None:
    ledger = ledger_of(*events)
    again = Ledger.loads(ledger.dumps())
    assert again == ledger
    assert again.dumps() == ledger.dumps()


@given(st.lists(EVENTS, min_size=1, max_size=4), st.data())
def test_a_ledger_cut_at_any_byte_has_all_its_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, events: list[Event], data: st.DataObject
) -> None:
    ledger = ledger_of(*events)
    whole = ledger.dumps().encode()
    cut = data.draw(st.integers(0, len(whole)))
    file = tmp_path_factory.getbasetemp() / "cut.jsonl"
    file.write_bytes(whole[:cut])
    found = Ledger.load(file)
    lines = whole[:cut].count(b"\n")
    assert len(found) in (lines, lines + 1)
    assert list(found) == list(ledger)[: len(found)]


def test_each_event_is_one_line() -> None:
    ledger = ledger_of(UserSaid(text="one\ntwo\u2028three\x85four\r"), AgentSaid(text="ok"))
    lines = ledger.dumps().split("\n")
    assert len(lines) == 3
    assert json.loads(lines[0])["text"] == "one\ntwo\u2028three\x85four\r"
    assert Ledger.loads(ledger.dumps()) == ledger


def test_a_call_without_arguments_says_so_however_it_is_written() -> None:
    for text in ("ok", "half a character: \ud83d"):
        call = ToolCall("stop", {}, "c1")
        line = json.loads(ledger_of(ModelReplied(text=text, calls=(call,))).dumps())
        assert line["calls"] == [{"tool": "stop", "args": {}, "id": "c1"}]


def test_a_saved_ledger_can_be_loaded(tmp_path: Path) -> None:
    ledger = ledger_of(UserSaid(text="Grüße"), RunEnded(reason="completed"))
    ledger.save(tmp_path / "deep" / "run.jsonl")
    assert Ledger.load(tmp_path / "deep" / "run.jsonl") == ledger
    assert [f.name for f in (tmp_path / "deep").iterdir()] == ["run.jsonl"]


def test_a_last_line_cut_inside_a_character_is_left_out(tmp_path: Path) -> None:
    whole = ledger_of(UserSaid(text="hi"), UserSaid(text="Grüße")).dumps().encode()
    file = tmp_path / "run.jsonl"
    file.write_bytes(whole[: whole.index("ü".encode()) + 1])
    assert [event.text for event in Ledger.load(file).of(UserSaid)] == ["hi"]


def test_a_broken_character_before_the_last_line_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(b'{"kind": "user_said", "text": "\xff"}\n')
    with pytest.raises(BadLedger, match=r"run\.jsonl"):
        Ledger.load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadLedger, match=r"nowhere\.jsonl"):
        Ledger.load(tmp_path / "nowhere.jsonl")


GOOD = '{"kind": "user_said", "text": "hi"}'


@pytest.mark.parametrize(
    "garbage",
    [
        "nonsense",
        '{"kind": "user_said"}',
        '{"kind": "nobody_knows", "text": "x"}',
        '{"text": "no kind"}',
        "[]",
        '{"kind": "user_said", "text": "x", "voice": "narrator"}',
    ],
)
def test_a_line_that_is_no_event_is_named_with_its_number(garbage: str) -> None:
    with pytest.raises(BadLedger, match=r"run\.jsonl, line 2 is not an event"):
        Ledger.loads(f"{GOOD}\n{garbage}\n{GOOD}\n", "run.jsonl")


def test_garbage_in_a_finished_last_line_is_not_taken_for_a_cut() -> None:
    with pytest.raises(BadLedger, match="line 2"):
        Ledger.loads(f"{GOOD}\nnonsense\n")


def test_a_last_line_of_good_json_that_is_no_event_is_not_taken_for_a_cut() -> None:
    with pytest.raises(BadLedger, match="line 2"):
        Ledger.loads(f'{GOOD}\n{{"kind": "nobody_knows"}}')


def test_a_line_nested_without_end_is_refused_as_any_other() -> None:
    deep = "[" * 100_000 + "]" * 100_000
    with pytest.raises(BadLedger, match=r"run\.jsonl, line 1 is not an event"):
        Ledger.loads(f'{{"kind":"noted","name":"x","data":{deep}}}', "run.jsonl")


def test_half_a_character_in_a_text_is_refused_as_any_other() -> None:
    with pytest.raises(BadLedger, match=r"run\.jsonl, line 1 is not an event"):
        Ledger.loads('{"kind":"user_said","text":"\ud800"}\n', "run.jsonl")


@pytest.mark.parametrize(
    "told, read",
    [
        ({"usage": Usage(cast(int, 12.0))}, {"usage": Usage(12)}),
        ({"cost": Decimal("0.5")}, {"cost": 0.5}),
    ],
)
def test_numbers_as_a_model_told_them_can_be_read_back(told: Any, read: Any) -> None:
    written = ledger_of(ModelReplied(**told)).dumps()
    assert Ledger.loads(written)[0] == ledger_of(ModelReplied(**read))[0]


def test_blank_lines_are_skipped_and_counted() -> None:
    assert len(Ledger.loads(f"\n{GOOD}\n\n{GOOD}\n")) == 2
    with pytest.raises(BadLedger, match="line 3"):
        Ledger.loads(f"\n{GOOD}\nnonsense\n")


def test_events_in_another_order_are_refused() -> None:
    first, second = ledger_of(UserSaid(text="a"), UserSaid(text="b")).dumps().splitlines()
    with pytest.raises(BadLedger, match="cannot follow"):
        Ledger.loads(f"{second}\n{first}\n")


def test_an_event_of_another_ledger_cannot_be_appended() -> None:
    ledger = ledger_of(UserSaid(text="a"), UserSaid(text="b"))
    with pytest.raises(BadLedger, match="cannot follow"):
        Ledger().append(ledger[1], at=0.0)


def test_half_a_character_does_not_cost_the_whole_run() -> None:
    ledger = ledger_of(UserSaid(text="hi"), AgentSaid(text="cut \ud83d off"), UserSaid(text="oh"))
    found = Ledger.loads(ledger.dumps())
    assert [type(event) for event in found] == [UserSaid, AgentSaid, UserSaid]
    assert found.of(AgentSaid)[0].text.startswith("cut ")


def test_values_are_copied_when_they_enter() -> None:
    value: Any = {"celsius": [21]}
    ledger = ledger_of(ToolReturned(call_id="c", tool="t", value=value, source="mock"))
    value["celsius"].append(99)
    assert ledger.of(ToolReturned)[0].value == {"celsius": [21]}


def test_a_value_that_is_no_json_does_not_enter() -> None:
    ledger = Ledger()
    with pytest.raises(BadValue, match=r"Noted\.data"):
        ledger.append(Noted(name="x", data=float("nan")), at=0.0)
    assert len(ledger) == 0


def test_an_event_that_was_refused_can_still_be_appended_elsewhere() -> None:
    event = Noted(name="x", data={"bad": object()})
    with pytest.raises(BadValue):
        ledger_of(UserSaid(text="hi")).append(event, at=0.0)
    event.data.clear()
    assert Ledger().append(event, at=0.0).seq == 0


def test_an_event_without_a_place_is_a_line_too() -> None:
    assert encoded(RunResumed()) == b'{"kind":"run_resumed"}\n'


def test_what_a_framework_remembers_may_be_deeper_than_what_it_was_told() -> None:
    deep: Any = "end"
    for _ in range(120):
        deep = [deep]
    ledger = Ledger()
    made: Any = OwnedJson(deep)
    ledger.append(Remembered(name="memory", data=made), at=0.0)
    again = Ledger.loads(ledger.dumps())
    assert again == ledger == again.copy()


@given(st.lists(EVENTS, max_size=4))
def test_events_written_in_one_go_are_the_lines_of_each(events: list[Event]) -> None:
    odd = UserSaid(text="half a \ud83d and\na line")
    for some in (events, [*events, odd, *events]):
        assert encoded_lines(some) == b"".join(map(encoded, some))
