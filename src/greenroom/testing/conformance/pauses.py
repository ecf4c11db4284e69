"""Waits for the user inside a run: approvals, questions and messages, answered and resumed."""

import asyncio
from typing import Any

import pytest

from greenroom.cases.case import Case
from greenroom.cases.users import Lines, UserAgents
from greenroom.ledger import questions as q
from greenroom.ledger.events import Answered, YieldOpened
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import called, contains
from greenroom.simulation.conversation import simulate
from greenroom.testing.blueprints import Desk, ToolPlan
from greenroom.testing.conformance.base import (
    PAY,
    WEATHER,
    Conformance,
    case,
    describe,
    ledger_of,
    needs,
)

ASK = ToolCall("ask_boss", {"question": "may I?"}, "call-boss")


class Pauses(Conformance):
    """An agent that waits for the user is answered and continues."""

    def payer(self, desk: Desk, *lines: Any) -> Any:
        """An agent whose payments the user approves."""
        tools = [ToolPlan(desk.pay, "approval"), desk.weather]
        return self.agent(*(lines or (PAY, "done")), tools=tools)

    @needs("approvals", tools=True)
    @pytest.mark.parametrize("answer", [True, "yes", {"confirmed": True}])
    def test_an_approved_tool_runs_its_mock(self, desk: Desk, answer: object) -> None:
        one = case(
            mocks={"pay": {"paid": 5}},
            user=UserAgents(tools={"pay": Lines(answer)}, validate="coerce"),
            metrics=[contains("done"), called("pay")],
        )
        result = self.result(self.payer(desk), one)
        assert (result.status, result.turns, desk.marks) == ("passed", 2, []), describe(result)
        (opened,) = ledger_of(result).of(YieldOpened)
        assert (opened.tool, opened.type, opened.args) == ("pay", "tool", {"amount": 5})
        (paid,) = q.tool_calls(ledger_of(result))
        assert (paid.result, paid.source) == ({"paid": 5}, "mock")

    @needs("approvals", tools=True)
    def test_a_denied_tool_does_not_run_and_the_agent_goes_on(self, desk: Desk) -> None:
        one = case(mocks={"pay": {"paid": 5}}, user=UserAgents(tools={"pay": Lines(False)}))
        result = self.result(self.payer(desk, PAY, "done, not paid"), one)
        assert (result.status, desk.marks) == ("passed", []), describe(result)
        assert q.tool_calls(ledger_of(result)) == []
        assert q.response(ledger_of(result)) == "done, not paid"

    @needs("approvals", tools=True)
    def test_approval_does_not_replace_a_mock(self, desk: Desk) -> None:
        result = self.result(self.payer(desk), case(user=UserAgents(tools={"pay": Lines(True)})))
        assert (result.status, desk.marks) == ("error", [])

    @needs("approvals", "parallel_calls", tools=True)
    def test_several_approvals_are_answered_at_once(self, desk: Desk) -> None:
        calls = [
            ToolCall("pay", {"amount": 1}, "call-1"),
            WEATHER,
            ToolCall("pay", {"amount": 2}, "call-2"),
        ]
        mocks = {"pay": "ok", "weather": "fine"}
        one = case(mocks=mocks, user=UserAgents(tools={"pay": Lines(True, False)}))
        result = self.result(self.payer(desk, calls, "done"), one)
        assert result.status == "passed", describe(result)
        assert result.turns == 2
        made = [(call.tool, call.args) for call in q.tool_calls(ledger_of(result))]
        assert sorted(made, key=str) == [("pay", {"amount": 1}), ("weather", {"city": "Oslo"})]
        assert desk.marks == []

    @needs("approvals", tools=True, resumption=True)
    def test_an_approval_resumes_from_bytes_with_fresh_objects(self, desk: Desk) -> None:
        one = case(mocks={"pay": {"paid": 5}}, user=UserAgents(tools={"pay": Lines(True)}))
        ledger = ledger_of(self.result(self.payer(desk), one))
        resumed = self._resumed(one, ledger, lambda: self.payer(desk))
        assert {self.replied(again) for again in resumed} <= {2, None}
        assert [q.response(again) for again in resumed] == ["done", "done"]
        assert desk.marks == []

    @needs("questions", tools=True)
    def test_a_question_waits_for_the_users_answer(self, desk: Desk) -> None:
        one = case(user=UserAgents(tools={"ask_boss": Lines("you may")}))
        result = self.result(self._asking(desk), one)
        assert (result.status, desk.marks) == ("passed", []), describe(result)
        (boss,) = q.tool_calls(ledger_of(result))
        assert (boss.args, boss.result, boss.source) == ({"question": "may I?"}, "you may", "user")

    @needs("questions", tools=True, resumption=True)
    def test_a_question_resumes_from_bytes_with_fresh_objects(self, desk: Desk) -> None:
        one = case(user=UserAgents(tools={"ask_boss": Lines("you may")}))
        ledger = ledger_of(self.result(self._asking(desk), one))
        resumed = self._resumed(one, ledger, lambda: self._asking(desk))
        assert {self.replied(again) for again in resumed} <= {2, None}
        assert [q.tool_calls(again)[0].result for again in resumed] == ["you may", "you may"]
        assert desk.marks == []

    @needs("questions", tools=True)
    def test_a_mock_may_answer_in_the_users_place(self, desk: Desk) -> None:
        result = self.result(self._asking(desk), case(mocks={"ask_boss": "mocked"}))
        assert (result.status, desk.marks) == ("passed", []), describe(result)
        assert q.tool_calls(ledger_of(result))[0].source == "mock"

    @needs("questions", "parallel_calls", tools=True)
    def test_a_question_the_mock_answers_does_not_wait_beside_one_that_does(
        self, desk: Desk
    ) -> None:
        bank = ToolCall("ask_bank", {"account": 7}, "call-bank")
        plans = [ToolPlan(desk.ask_boss, "question"), ToolPlan(desk.ask_bank, "question")]
        agent = self.agent([bank, ASK], "done", tools=plans)
        user = UserAgents(tools={"ask_boss": Lines("you may")})
        result = self.result(agent, case(mocks={"ask_bank": "enough"}, user=user))
        assert (result.status, desk.marks) == ("passed", []), describe(result)
        answers = {
            call.tool: (call.result, call.source) for call in q.tool_calls(ledger_of(result))
        }
        assert answers == {"ask_boss": ("you may", "user"), "ask_bank": ("enough", "mock")}

    @needs("message_waits")
    def test_a_wait_for_a_message_is_answered_inside_the_run(self) -> None:
        one = case(user=UserAgents(loop=Lines("Ada")))
        result = self.result(self.agent("your name?", "done", awaits_input=True), one)
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        assert [event.type for event in ledger.of(YieldOpened)] == ["message"]
        assert q.responses(ledger) == ["your name?", "done"]

    @needs("message_waits", resumption=True)
    def test_a_wait_for_a_message_resumes_from_bytes_with_fresh_objects(self) -> None:
        one = case(user=UserAgents(loop=Lines("Ada")))

        def built() -> object:
            return self.agent("your name?", "done", awaits_input=True)

        ledger = ledger_of(self.result(built(), one))
        resumed = self._resumed(one, ledger, built)
        assert [q.responses(again) for again in resumed] == [["your name?", "done"]] * 2

    def _asking(self, desk: Desk) -> object:
        return self.agent(ASK, "done", tools=[ToolPlan(desk.ask_boss, "question")])

    def _resumed(self, one: Case, ledger: Ledger, built: Any) -> list[Ledger]:
        """The trial continued from just before and just after its user answered."""
        pause = ledger.of(Answered)[0].seq
        cuts = [Ledger.loads(Ledger(ledger[:cut]).dumps()) for cut in (pause, pause + 1)]
        opaque = self.harness.backend.tool_calls == "opaque"
        return [
            asyncio.run(simulate(one, built(), ledger=cut, allow_opaque=opaque)) for cut in cuts
        ]
