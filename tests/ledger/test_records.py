"""Values of a run are frozen dataclasses or structs; pydantic, pickle and printers know both."""

import copy
import pickle
from dataclasses import dataclass, field, replace
from pprint import pformat
from typing import Any

import pytest
from msgspec import Struct, structs
from pydantic import BaseModel, TypeAdapter, ValidationError
from rich.pretty import pretty_repr

from greenroom import Case
from greenroom.agents.signature import checked_arguments
from greenroom.backends.foreign import jsonable
from greenroom.cases.scores import Score
from greenroom.ledger.events import AgentSaid
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import plain
from greenroom.ledger.records import changed, field_names, given_names, is_record
from greenroom.models import provider_model


class Report(BaseModel):
    """A user's own model that holds structs, one of them twice."""

    said: list[Message]
    first: ToolCall
    then: ToolCall | None = None


@dataclass
class Order:
    id: int
    paid: bool = False


@dataclass
class Bill:
    net: int
    gross: int = field(init=False)

    def __post_init__(self) -> None:
        self.gross = self.net * 2


class Ticket(Struct):
    id: int
    seat: str = ""


class Parcel(Struct):
    content: Any


def test_a_model_makes_the_structs_it_holds() -> None:
    said: Any = [{"role": "user", "calls": [{"tool": "refund"}]}]
    first: Any = {"tool": "find", "args": {"id": 7}}
    report = Report(said=said, first=first, then=ToolCall("stop"))
    assert report.said == [Message("user", calls=(ToolCall("refund"),))]
    assert report.first == ToolCall("find", {"id": 7})
    assert Report.model_validate_json(report.model_dump_json()) == report


def test_a_model_says_what_is_wrong_in_a_struct() -> None:
    said: Any = [{"role": "stranger"}]
    with pytest.raises(ValidationError, match=r"said\.0\n.*stranger.*\$\.role"):
        Report(said=said, first=ToolCall("find"))


def test_a_score_checks_itself_however_it_is_made() -> None:
    assert TypeAdapter(Score).validate_python({"value": 0.25}) == Score(0.25, passed=False)


def test_a_struct_has_a_schema_for_models() -> None:
    schema = Report.model_json_schema()
    assert schema["properties"]["first"] == {"$ref": "#/$defs/ToolCall"}
    assert schema["$defs"]["ToolCall"]["required"] == ["tool"]
    assert schema["$defs"].keys() == {"Message", "ToolCall"}


def test_a_tool_may_ask_for_a_struct() -> None:
    def bill(used: Usage, times: int) -> None: ...

    assert checked_arguments(bill, {"used": {"input": 3}, "times": 2}) == {
        "used": Usage(3),
        "times": 2,
    }


def test_a_long_struct_can_be_printed() -> None:
    message = Message("user", "x" * 200)
    assert pformat([message]) == f"[{message!r}]"


def test_no_printer_shows_a_key() -> None:
    model = provider_model("openai:gpt-4o", api_key="sk-not-to-be-seen")
    for text in (repr(model), str([model]), pformat(model), pretty_repr(model)):
        assert "openai:gpt-4o" in text or "gpt-4o" in text
        assert "seen" not in text


@pytest.mark.parametrize("value", [Score(0.5), Case("a", "Hi"), Usage(1), AgentSaid(text="Hi")])
def test_values_of_a_run_cannot_be_edited(value: Any) -> None:
    for name in field_names(type(value)):
        with pytest.raises(AttributeError):
            setattr(value, name, None)
        with pytest.raises(AttributeError):
            delattr(value, name)


@pytest.mark.parametrize("value", [Score(0.5), Case("a", "Hi"), Usage(1), AgentSaid(text="Hi")])
def test_values_of_a_run_are_copied_and_pickled(value: Any) -> None:
    assert copy.copy(value) == copy.deepcopy(value) == value
    assert pickle.loads(pickle.dumps(value)) == value


def test_dataclasses_and_structs_are_read_and_changed_alike() -> None:
    for value in (Order(1), Ticket(1)):
        assert is_record(value)
        assert field_names(type(value))[0] == "id"
        assert changed(value, {"id": 2}).id == 2
        assert value.id == 1
    assert not is_record(Order)
    assert not is_record({"id": 1})


def test_fields_that_a_record_makes_itself_are_kept_too() -> None:
    assert plain(Bill(2)) == {"net": 2, "gross": 4}
    assert (field_names(Bill), given_names(Bill)) == (("net", "gross"), ("net",))


def test_an_object_in_a_struct_of_a_tool_becomes_its_text() -> None:
    assert jsonable([Parcel(3j)]) == [{"content": "3j"}]


def test_a_tool_takes_the_counts_of_a_struct_as_models_write_them() -> None:
    def bill(used: Usage) -> None: ...

    assert checked_arguments(bill, {"used": {"input": "3"}}) == {"used": Usage(3)}


def test_what_users_write_is_changed_as_any_dataclass() -> None:
    assert replace(Case("a", "Hi"), id="b") == Case("b", "Hi")
    assert structs.replace(AgentSaid(text="Hi"), text="Bye") == AgentSaid(text="Bye")
