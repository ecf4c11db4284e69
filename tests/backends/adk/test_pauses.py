"""Pauses inside a run: questions, long-running tools and approvals, answered by user agents."""

from pathlib import Path
from typing import Any

import pytest
from google.adk.tools import AgentTool, FunctionTool, LongRunningFunctionTool, ToolContext

from backends.adk.scripts import WEATHER, agent, case, ledger_of, result_of
from backends.adk.versions import needs_modes, request_input
from greenroom import Ledger, Lines, UserAgents, simulate
from greenroom.ledger import questions as q
from greenroom.ledger.events import Answered, NodeEnded, NodeStarted, YieldOpened
from greenroom.testing import Desk

QUESTION = (request_input.name, {"message": "Which city?"})


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.parametrize("answer", ["Oslo", {"city": "Oslo"}, 7, ["Oslo"]])
async def test_a_question_of_the_agent_is_answered_by_the_user(answer: Any):
    clerk = agent("clerk", QUESTION, "done", tools=[request_input])
    one = case(user=UserAgents(tools={request_input.name: Lines(answer)}))
    result = await result_of(clerk, one)
    assert result.status == "passed", result.error
    ledger = ledger_of(result)
    assert [(call.args, call.result, call.source) for call in q.tool_calls(ledger)] == [
        ({"message": "Which city?"}, answer, "user")
    ]
    begun = Ledger.loads(Ledger(ledger[: ledger.of(Answered)[0].seq + 1]).dumps())
    resumed = await simulate(one, clerk, ledger=begun)
    assert q.response(resumed) == "done"


async def test_a_long_running_tool_may_be_mocked_instead():
    def ask_boss(question: str) -> None:
        """Ask the boss."""

    clerk = agent("clerk", ("ask_boss", {"question": "?"}), "done")
    clerk = clerk.clone(update={"tools": [LongRunningFunctionTool(ask_boss)]})
    result = await result_of(clerk, case(mocks={"ask_boss": {"status": "yes"}}))
    ledger = ledger_of(result)
    assert (result.status, ledger.of(YieldOpened)) == ("passed", []), result.error
    assert q.tool_calls(ledger)[0].source == "mock"


async def test_a_helper_that_waits_is_still_at_work_and_ends_when_it_is_answered():
    helper = agent("helper", QUESTION, "done", tools=[request_input])
    clerk = agent("clerk", ("transfer_to_agent", {"agent_name": "helper"}), sub_agents=[helper])
    one = case(user=UserAgents(tools={request_input.name: Lines("Oslo")}))
    ledger = ledger_of(await result_of(clerk, one))
    opened, answered = ledger.of(YieldOpened)[0].seq, ledger.of(Answered)[0].seq
    assert [e.path for e in ledger.of(NodeStarted)] == ["@1/clerk", "@1/helper"]
    ends = {e.path: e.seq for e in ledger.of(NodeEnded)}
    assert ends["@1/clerk"] < opened < answered < ends["@1/helper"]


@needs_modes
async def test_a_question_inside_a_single_turn_helper_reaches_the_user(desk: Desk):
    helper = agent("helper", QUESTION, "fine", mode="single_turn", tools=[request_input])
    clerk = agent("clerk", ("helper", {"request": "?"}), "done", sub_agents=[helper])
    one = case(user=UserAgents(tools={request_input.name: Lines("Oslo")}))
    result = await result_of(clerk, one)
    assert result.status == "passed", result.error
    calls = {call.tool: call.result for call in q.tool_calls(ledger_of(result))}
    assert calls[request_input.name] == "Oslo"


async def test_an_agent_tool_cannot_wait_and_its_model_hears_so(desk: Desk):
    helper = agent("helper", QUESTION, "fine", tools=[request_input])
    clerk = agent("clerk", ("helper", {"request": "?"}), "done", tools=[AgentTool(helper)])
    result = await result_of(clerk, case())
    assert result.status == "passed", result.error
    assert ledger_of(result).of(YieldOpened) == []


async def test_an_approval_that_depends_on_the_arguments_is_asked_for_only_then(desk: Desk):
    pay = FunctionTool(desk.pay, require_confirmation=lambda amount: amount > 10)
    one = case(mocks={"pay": "ok"}, user=UserAgents(tools={"pay": Lines(True)}))
    for amount, asked in ((5, 0), (50, 1)):
        clerk = agent("clerk", ("pay", {"amount": amount}), "done", tools=[pay])
        result = await result_of(clerk, one)
        assert (result.status, desk.marks) == ("passed", []), result.error
        assert len(ledger_of(result).of(YieldOpened)) == asked


async def test_a_tool_that_asks_for_approval_itself_must_be_named_for_it(desk: Desk):
    def weather(city: str, tool_context: ToolContext) -> Any:
        """The weather."""
        if not tool_context.tool_confirmation:
            tool_context.request_confirmation(hint="really?")
            return {"error": "wait"}
        return desk.mark("looked")

    clerk = agent("clerk", WEATHER, "done", tools=[weather])
    user = UserAgents(tools={"weather": Lines(True)})
    mocked = await result_of(clerk, case(mocks={"weather": "fine"}, user=user))
    assert (mocked.status, ledger_of(mocked).of(YieldOpened), desk.marks) == ("passed", [], [])
    named = await result_of(clerk, case(allow_tools=["weather"], user=user))
    assert (named.status, desk.marks) == ("passed", ["looked"]), named.error
