"""A tripwire of a guardrail is an outcome that a case may expect; unexpected, it is an error."""

from typing import Any

import pytest

from agents import (
    Agent,
    GuardrailFunctionOutput,
    function_tool,
    input_guardrail,
    output_guardrail,
)
from backends.keyed_agents import OwnOpenAI
from greenroom import Case, EvalSet, Expect, Scripted, Turn, rehearse
from greenroom.errors import BadCase


@input_guardrail
async def no_homework(ctx: Any, agent: Any, said: Any) -> GuardrailFunctionOutput:
    text = said if isinstance(said, str) else said[-1]["content"]
    return GuardrailFunctionOutput(
        output_info={"said": text}, tripwire_triggered="homework" in text
    )


@output_guardrail
async def no_secrets(ctx: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="4711" in output)


@function_tool
def look(order: int) -> str:
    """Look an order up."""
    raise RuntimeError("never reached in a rehearsal")


tutor: Any = Agent(
    "tutor",
    model=OwnOpenAI(),
    tools=[look],
    input_guardrails=[no_homework],
    output_guardrails=[no_secrets],
)
MODEL = Scripted(then="Hello.")


def test_without_the_expectation_a_tripwire_is_an_error_that_says_how_to_expect_it() -> None:
    case = Case("c", "Do my homework!", expect=Expect(contains="Hello"))
    [result] = rehearse(tutor, [case], model=MODEL).results
    assert result.status == "error"
    assert result.error is not None
    assert result.error.type == "GuardrailTripped"
    assert "'no_homework'" in result.error.message
    assert 'Expect(stopped_by="guardrail")' in result.error.message


@pytest.mark.parametrize("wanted", ["guardrail", "no_homework"])
def test_an_expected_tripwire_passes(wanted: str) -> None:
    case = Case("c", "Do my homework!", expect=Expect(stopped_by=wanted, tools=[]))
    report = rehearse(tutor, [case], model=MODEL)
    assert report.passed, str(report)
    assert report["c"].responses == [""]


def test_a_guardrail_of_the_answer_is_expected_alike() -> None:
    case = Case("c", "The code?", expect=Expect(stopped_by="no_secrets"))
    assert rehearse(tutor, [case], model=Scripted("It is 4711.")).passed


@pytest.mark.parametrize("said, seen", [("Hi", "not stopped"), ("homework", "no_homework")])
def test_another_guardrail_or_none_fails(said: str, seen: str) -> None:
    case = Case("c", said, expect=Expect(stopped_by="no_secrets"))
    [result] = rehearse(tutor, [case], model=MODEL).results
    assert result.status == "failed"
    assert seen in str(result)


def test_the_conversation_goes_on_after_a_turn_that_was_stopped() -> None:
    turns = [
        Turn("Hi", Expect(response="Hello.")),
        Turn("Do my homework!", Expect(stopped_by="guardrail")),
        Turn("Sorry.", Expect(response="Hello.")),
    ]
    report = rehearse(tutor, [Case("c", turns=turns)], model=MODEL)
    assert report.passed, str(report)
    turns[1] = Turn("Do my homework!")
    [result] = rehearse(tutor, [Case("c", turns=turns)], model=MODEL).results
    assert result.status == "error"


def test_files_keep_the_expectation(tmp_path: Any) -> None:
    case = Case("c", "Do my homework!", expect=Expect(stopped_by="guardrail"))
    EvalSet("set", [case]).save(tmp_path / "set.yaml")
    assert EvalSet.load(tmp_path / "set.yaml")["c"].expect == case.expect


@pytest.mark.parametrize("given", ["", " ", 5, ["guardrail"]])
def test_what_names_nothing_is_refused(given: Any) -> None:
    with pytest.raises(BadCase, match="stopped_by"):
        Expect(stopped_by=given)
