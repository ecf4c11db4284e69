"""A misspelt expected tool is found before the run, and told apart from one that was not called."""

from typing import Any

import pytest

from greenroom import Agent, Case, Expect, Scripted, call, rehearse, tool
from greenroom.cases import Score
from greenroom.errors import BadCase


@tool
def refund(order: int) -> str:
    """Pay back."""
    raise AssertionError(f"a real call for {order}")


def clerk(*script: Any) -> Agent:
    return Agent("clerk", model=Scripted(*script), tools=[refund])


def test_a_misspelt_expected_tool_is_found_before_anything_runs() -> None:
    cases = [
        Case("a", "Pay", expect=Expect(tools=["refnd"])),
        Case("b", "Pay", expect=Expect(tools=[call("refunds", order=7)])),
        Case("c", "Pay", expect=Expect(tools=["refund"])),
    ]
    with pytest.raises(BadCase) as refused:
        rehearse(clerk(), cases)
    message = str(refused.value)
    assert "case 'a' expects a call of 'refnd'" in message
    assert "Did you mean 'refund'?" in message
    assert "case 'b' expects a call of 'refunds'" in message
    assert "case 'c'" not in message


def test_a_tool_that_was_not_called_is_another_matter() -> None:
    [result] = rehearse(clerk("No."), [Case("a", "Pay", expect=Expect(tools=["refund"]))])
    assert not result.passed
    score = result.scores["expected_tools"]
    assert isinstance(score, Score)
    assert "refund" in score.reason


def test_a_tool_that_the_agent_is_still_to_get_fails_and_says_so() -> None:
    [result] = rehearse(clerk("No."), [Case("a", "Pay", expect=Expect(tools=["send_letter"]))])
    assert not result.passed
    assert "the agent offers ['refund']" in str(result.blame)


def test_a_scope_that_looks_misspelt_is_noted() -> None:
    case = Case("a", "Hi", state={"sesion": {"order": 7}}, expect=Expect(contains="Hello"))
    report = rehearse(clerk("Hello"), [case])
    assert any("'sesion'" in note and "Did you mean 'session'?" in note for note in report.notes)
