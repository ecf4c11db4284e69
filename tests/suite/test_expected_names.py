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


def test_misspelt_mocks_are_named_with_the_misspelt_expected_tools() -> None:
    case = Case("a", "Pay", expect=Expect(tools=["refnd"]), mocks={"reffund": 1, "refundd": 2})
    with pytest.raises(BadCase) as refused:
        rehearse(clerk(), [case])
    expected, first, second = str(refused.value).splitlines()
    assert "expects a call of 'refnd'" in expected
    assert "mocks tool 'reffund', but the agent offers ['refund']. Did you mean 'refund'?" in first
    assert "mocks tool 'refundd'" in second


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


def pay_back(order: int) -> str:
    """Pay back."""
    raise AssertionError(f"a real call for {order}")


def of_adk() -> Any:
    agents = pytest.importorskip("google.adk.agents")
    return agents.LlmAgent(name="clerk", model="gemini-2.5-flash", tools=[pay_back])


def of_openai() -> Any:
    agents = pytest.importorskip("agents")
    return agents.Agent("clerk", model="gpt-4o", tools=[agents.function_tool(pay_back)])


def of_pydantic_ai() -> Any:
    return pytest.importorskip("pydantic_ai").Agent(name="clerk", tools=[pay_back])


def of_langchain() -> Any:
    agents, models = map(
        pytest.importorskip, ("langchain.agents", "langchain_core.language_models")
    )
    model = type("Bound", (models.FakeListChatModel,), {"bind_tools": lambda self, *_, **__: self})
    return agents.create_agent(model(responses=[]), [pay_back], name="clerk")


FRAMEWORKS = pytest.mark.parametrize("make", [of_adk, of_openai, of_pydantic_ai, of_langchain])


@FRAMEWORKS
def test_it_is_found_in_agents_of_every_framework(make: Any) -> None:
    misspelt = Case("a", "Pay", mocks={"pay_back": "ok"}, expect=Expect(tools=["pay_bakc"]))
    with pytest.raises(BadCase, match="Did you mean 'pay_back'"):
        rehearse(make(), [misspelt], model=Scripted("No."))


@FRAMEWORKS
def test_in_every_framework_a_tool_that_was_not_called_is_another_matter(make: Any) -> None:
    cases = [
        Case(name, "Pay", mocks={"pay_back": "ok"}, expect=Expect(tools=[name]))
        for name in ("pay_back", "send_letter")
    ]
    report = rehearse(make(), cases, model=Scripted("No."))
    called, unknown = report["pay_back"].blame, report["send_letter"].blame
    assert called is not None
    assert unknown is not None
    assert called.whom == "agent"
    assert (unknown.whom, "the agent offers ['pay_back']" in str(unknown)) == ("expectation", True)


def test_a_tool_of_an_inner_agent_that_the_case_mocks_is_no_misspelt_one() -> None:
    case = Case("a", "Pay", mocks={"refunds": "ok"}, expect=Expect(tools=["refunds"]))
    [result] = rehearse(lambda message: "No.", [case])
    assert result.status == "failed"
