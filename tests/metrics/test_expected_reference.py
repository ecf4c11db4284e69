"""A case that has references expects each of its turns to resemble its own."""

import pytest

from greenroom import Agent, Case, Expect, Scripted, Turn, rehearse

LONG = "the parcel leaves tomorrow morning and arrives on friday afternoon"


def played(*answers: str, second: Expect | None = None) -> "dict[str, object]":
    case = Case(
        "parcel",
        turns=[
            Turn("When?", expect=Expect(reference=LONG)),
            Turn("Sure?", expect=second or Expect(reference="yes quite sure")),
        ],
    )
    [result] = rehearse(Agent("clerk", model=Scripted(*answers)), [case], store=False)
    return {"status": result.status, **result.measured}


def test_a_good_turn_does_not_make_up_for_another() -> None:
    found = played(LONG, "no idea at all")
    assert found["status"] == "failed"


def test_every_turn_may_be_in_other_words_as_long_as_it_is_near() -> None:
    found = played(LONG.replace("leaves", "leaving"), "yes, quite sure!")
    assert found["status"] == "passed"
    assert found["expected_reference"].value == pytest.approx(1.0)  # pyright: ignore[reportAttributeAccessIssue]


def test_a_turn_that_wants_a_response_word_for_word_is_not_compared_by_likeness() -> None:
    found = played(LONG, "yes", second=Expect(response="yes"))
    assert set(found) == {"status", "expected_reference", "expected_response"}
    assert found["status"] == "passed"
