"""Events: facts that nobody edits, with the fields of their class and no others."""

import copy
import pickle

import pytest
from msgspec.structs import replace

from greenroom.ledger import Ledger
from greenroom.ledger.events import AgentSaid, Event, ModelReplied, ToolCalled, ToolReturned

SAID = AgentSaid(path="@1", text="Hello.")


def test_an_event_cannot_be_edited():
    with pytest.raises(AttributeError):
        SAID.text = "Goodbye."  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        del SAID.text  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(AttributeError):
        SAID.mood = "glad"  # pyright: ignore[reportAttributeAccessIssue]


def test_an_event_that_was_written_down_cannot_be_edited_either():
    ledger = Ledger()
    ledger.append(AgentSaid(text="Hello."), at=1.0)
    with pytest.raises(AttributeError):
        ledger[0].seq = 7  # pyright: ignore[reportAttributeAccessIssue]


def test_what_is_not_said_has_its_default():
    assert (SAID.voice, SAID.seq, SAID.at, SAID.kind) == ("agent", -1, 0.0, "agent_said")
    assert ModelReplied().calls == ()


def test_a_default_that_is_said_makes_no_other_event():
    said = AgentSaid(path="@1", text="Hello.", voice="agent", seq=-1)
    assert said == SAID
    assert hash(said) == hash(SAID)
    assert said != AgentSaid(path="@1", text="Hello.", voice="user")


def test_an_event_shows_all_its_fields():
    assert repr(SAID) == (
        "AgentSaid(path='@1', voice='agent', at=0.0, seq=-1, text='Hello.', attachments=())"
    )


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda it: pickle.loads(pickle.dumps(it))]
)
def test_a_copy_of_an_event_is_equal_and_frozen(copied):
    twin = copied(SAID)
    assert twin == SAID
    with pytest.raises(AttributeError):
        twin.text = "Goodbye."


def test_an_event_with_another_text_is_another_event():
    assert replace(SAID, text="Goodbye.") == AgentSaid(path="@1", text="Goodbye.")
    assert SAID.text == "Hello."


@pytest.mark.parametrize(
    "event, problem",
    [
        (lambda: AgentSaid(path="@1", tekst="Hello."), "'tekst'"),  # pyright: ignore[reportCallIssue]
        (lambda: AgentSaid(path="@1"), "'text'"),  # pyright: ignore[reportCallIssue]
        (lambda: ToolReturned(call_id="c", tool="refund"), "'source'"),  # pyright: ignore[reportCallIssue]
    ],
)
def test_an_event_with_wrong_names_cannot_be_made(event, problem):
    with pytest.raises(TypeError, match=problem):
        event()


def test_values_are_copied_whatever_the_order_of_the_names():
    args = {"order": 7}
    ledger = Ledger()
    ledger.append(ToolCalled(call_id="a", tool="refund", args=args), at=0.0)
    ledger.append(ToolCalled(args=args, tool="refund", call_id="b"), at=0.0)
    args["order"] = 8
    assert [event.args for event in ledger.of(ToolCalled)] == [{"order": 7}, {"order": 7}]


def test_an_event_of_somebodys_own_type_is_kept_in_its_place():
    class Knocked(Event, frozen=True):
        """Nothing the trail knows."""

    ledger = Ledger()
    ledger.append(AgentSaid(text="Who is there?"), at=1.0)
    ledger.append(Knocked(path="@1"), at=2.0)
    assert [(event.seq, event.at) for event in ledger] == [(0, 1.0), (1, 2.0)]


def test_an_empty_ledger_has_neither_first_nor_last():
    assert Ledger().first is None
    assert Ledger().last is None
