"""Tools that ask for their approval, or leave their result to others, while they run."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, CallDeferred, DeferredToolRequests, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.tools import DeferredToolResults

from greenroom import Case, Ledger, Lines, UserAgents, simulate, tool
from greenroom.ledger.events import Answered, RunEnded, ToolCalled
from greenroom.ledger.questions import ended, tool_calls

RAN: list[str] = []


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    RAN.clear()
    yield
    RAN.clear()


def pay(ctx: RunContext[Any], amount: int) -> str:
    """Pay; much only if somebody says so."""
    RAN.append("approved" if ctx.tool_call_approved else "asked")
    if not ctx.tool_call_approved:
        raise ApprovalRequired
    return f"paid {amount}"


def order(ctx: RunContext[Any]) -> str:
    """Order; the answer comes later."""
    RAN.append("ordered")
    raise CallDeferred


def clerk(name: str, args: dict[str, Any], **options: Any) -> Agent[Any, Any]:
    async def reply(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart(name, args, "call-1")])

    return Agent(FunctionModel(reply), name="clerk", tools=[pay, order], **options)


def end_of(ledger: Ledger) -> RunEnded:
    end = ended(ledger)
    assert end is not None
    return end


def paying(approved: Any) -> Case:
    user = UserAgents(tools={"pay": Lines(approved)})
    return Case("one", "hello", allow_tools=["pay"], user=user)


async def test_an_approved_body_runs_again_as_in_the_framework_and_is_one_call():
    ledger = await simulate(paying(True), clerk("pay", {"amount": 5}))
    assert RAN == ["asked", "approved"]
    assert [(c.tool, c.result, c.error) for c in tool_calls(ledger)] == [("pay", "paid 5", "")]
    assert len(ledger.of(ToolCalled)) == 1
    assert end_of(ledger).reason == "completed"


async def test_a_denied_body_does_not_run_again():
    ledger = await simulate(paying(False), clerk("pay", {"amount": 5}))
    assert RAN == ["asked"]
    assert [c.result for c in tool_calls(ledger)] == [None]
    assert end_of(ledger).reason == "completed"


async def test_a_run_cut_after_the_approval_does_not_run_the_body_again():
    agent, case = clerk("pay", {"amount": 5}), paying(True)
    whole = list(await simulate(case, agent))
    answered = [type(event) for event in whole].index(Answered)
    RAN.clear()
    before = await simulate(case, agent, ledger=Ledger(whole[:answered]))
    assert (RAN, end_of(before).reason) == (["approved"], "completed")
    RAN.clear()
    after = await simulate(case, agent, ledger=Ledger(whole[: answered + 1]))
    assert (RAN, end_of(after).error_type) == ([], "InDoubt")


@pytest.mark.parametrize("named", [{"allow_tools": ["order"]}, {"mocks": {"order": order}}])
async def test_a_body_that_leaves_its_result_to_the_user_is_one_call(named: dict[str, Any]):
    user = UserAgents(tools={"order": Lines("at noon")})
    ledger = await simulate(Case("one", "hello", user=user, **named), clerk("order", {}))
    assert RAN == ["ordered"]
    found = [(c.tool, c.result, c.source) for c in tool_calls(ledger)]
    assert found == [("order", "at noon", "user")]


@tool(yields=True)
def confirm(question: str) -> bool: ...


async def test_a_function_handles_its_agents_approvals_itself_and_asks_its_user():
    agent = clerk("pay", {"amount": 5}, output_type=[str, DeferredToolRequests])

    async def desk(message: str) -> str:
        result = await agent.run(message)
        assert isinstance(result.output, DeferredToolRequests)
        (wanted,) = result.output.approvals
        approved = confirm(f"{wanted.tool_name}?")
        results = DeferredToolResults(approvals={wanted.tool_call_id: approved})
        settled = await agent.run(
            message_history=result.all_messages(), deferred_tool_results=results
        )
        return settled.output

    user = UserAgents(tools={"confirm": Lines(True)})
    ledger = await simulate(Case("one", "hello", allow_tools=["pay"], user=user), desk)
    assert end_of(ledger).reason == "completed", end_of(ledger)
    # The function is begun again after the user's answer, and hears that its agent asked.
    assert RAN == ["asked", "approved"]
    assert tool_calls(ledger)[-1].result == "paid 5"
