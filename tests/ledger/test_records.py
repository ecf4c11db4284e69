"""Records look like frozen dataclasses from outside, to pydantic too."""

import pickle
from dataclasses import FrozenInstanceError
from pprint import pformat
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.pretty import pretty_repr

from greenroom.agents.signature import checked_arguments
from greenroom.cases.scores import Score
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.records import record
from greenroom.models import provider_model


class Drawer:
    """A place for a record."""

    @record
    class Card:
        """A record inside another class."""

        title: str = ""


@record
class Priced(Usage):
    """A record that begins otherwise than its parent."""

    output: int = 1
    price: float = 0.0


class Report(BaseModel):
    """A model of somebody's own that holds records, one of them twice."""

    said: list[Message]
    first: ToolCall
    then: ToolCall | None = None


def test_a_model_makes_the_records_it_holds() -> None:
    said: Any = [{"role": "user", "calls": [{"tool": "refund"}]}]
    first: Any = {"tool": "find", "args": {"id": 7}}
    report = Report(said=said, first=first, then=ToolCall("stop"))
    assert report.said == [Message("user", calls=(ToolCall("refund"),))]
    assert report.first == ToolCall("find", {"id": 7})
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_a_model_says_what_is_wrong_in_a_record() -> None:
    said: Any = [{"role": "stranger"}]
    with pytest.raises(ValidationError, match=r"said\.0\.role"):
        Report(said=said, first=ToolCall("find"))


def test_a_record_checks_itself_however_it_is_made() -> None:
    assert TypeAdapter(Score).validate_python({"value": 0.25}) == Score(0.25, passed=False)


def test_records_made_by_position_and_by_name_show_all_their_fields() -> None:
    properties = TypeAdapter(Score).json_schema()["properties"]
    assert list(properties)[:3] == ["value", "passed", "threshold"]
    assert list(Score.__annotations__)[:3] == ["value", "passed", "threshold"]


def test_a_record_has_one_schema_of_its_own() -> None:
    schema = Report.model_json_schema()
    assert schema["$defs"].keys() == {"Message", "ToolCall"}
    assert schema["properties"]["first"] == {"$ref": "#/$defs/ToolCall"}


def test_a_tool_may_ask_for_a_record() -> None:
    def bill(used: Usage, times: int) -> None: ...

    assert checked_arguments(bill, {"used": {"input": 3}, "times": 2}) == {
        "used": Usage(3),
        "times": 2,
    }


def test_a_record_inside_a_class_is_found_there_again() -> None:
    card = Drawer.Card("a")
    assert pickle.loads(pickle.dumps(card)) == card
    assert repr(card) == "Drawer.Card(title='a')"


def test_a_child_may_change_a_default_of_its_parent() -> None:
    assert Priced() == Priced(0, 1, 0.0)
    assert Priced(3, 4, 0.5).total == 7


def test_a_record_too_long_for_a_line_can_be_printed() -> None:
    message = Message("user", "x" * 200)
    assert pformat([message]) == f"[{message!r}]"


def test_what_a_record_does_not_show_is_shown_by_nobody() -> None:
    model = provider_model("openai:gpt-4o", api_key="sk-not-to-be-seen")
    assert pretty_repr([model]) == f"[{model!r}]"
    assert "seen" not in pretty_repr(model)


def test_a_record_names_the_field_that_cannot_be_changed() -> None:
    record: Any = Score(0.5)
    with pytest.raises(FrozenInstanceError, match="field 'value' of a Score"):
        record.value = 1.0
    with pytest.raises(FrozenInstanceError, match="field 'value' of a Score"):
        del record.value
    assert record == Score(0.5)
    assert hash(Usage(1)) == hash(Usage(1))
