"""The tool gate: no body runs unless it was named, whatever the framework does with the refusal."""

import asyncio
import sys
from typing import Any

import pytest

from greenroom.errors import BadAgent, ToolRefused
from greenroom.ledger import questions as q
from greenroom.ledger.events import ToolBlocked
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import called, contains
from greenroom.suite import rehearse
from greenroom.testing.blueprints import Blueprint, Bypass, Desk, HandOver, ToolPlan
from greenroom.testing.conformance.base import (
    PAY,
    WEATHER,
    Conformance,
    RecordingWorld,
    case,
    describe,
    ledger_of,
    needs,
)
from greenroom.world.world import Pending, Returned, ToolBody, ToolRequest


def _exits(**_: Any) -> None:
    sys.exit(0)


class Closed(RecordingWorld):
    """A world that refuses every tool."""

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:  # noqa: ARG002
        raise ToolRefused("closed")


class TheGate(Conformance):
    """Bodies do not run, and forgetting a mock is an error."""

    def pytest_generate_tests(self, metafunc: pytest.Metafunc) -> None:
        """One test for each way around the tool gate."""
        if "bypass" in metafunc.fixturenames:
            known = type(self).harness.bypasses()
            metafunc.parametrize("bypass", known.values(), ids=list(known))

    @needs(tools=True)
    def test_the_canaries_fire_when_the_framework_runs_the_agent_itself(self, desk: Desk) -> None:
        later = ToolCall("later", {"minutes": 2}, "call-later")
        for call, tool in ((WEATHER, desk.weather), (later, desk.later)):
            agent = self.agent(call, "done", tools=[tool])
            asyncio.run(self.harness.run_bare(agent, "hello"))
        assert desk.marks == ["weather Oslo 1", "later 2"]

    @needs(tools=True)
    def test_a_mocked_tool_answers_and_its_body_never_runs(self, desk: Desk) -> None:
        one = case(mocks={"weather": "3 degrees"}, metrics=[contains("done"), called("weather")])
        result = self.result(self.agent(WEATHER, "done", tools=[desk.weather]), one)
        assert result.status == "passed", describe(result)
        (call,) = q.tool_calls(ledger_of(result))
        assert (call.tool, call.args, call.result) == ("weather", {"city": "Oslo"}, "3 degrees")
        assert call.source == "mock"
        assert desk.marks == []

    @needs(tools=True)
    def test_an_async_tool_is_mocked_too(self, desk: Desk) -> None:
        later = ToolCall("later", {"minutes": 2}, "call-later")
        result = self.result(
            self.agent(later, "done", tools=[desk.later]), case(mocks={"later": {"at": "noon"}})
        )
        assert result.status == "passed", describe(result)
        assert q.tool_calls(ledger_of(result))[0].result == {"at": "noon"}
        assert desk.marks == []

    @needs(tools=True)
    def test_a_mock_that_ends_the_process_breaks_its_case(self, desk: Desk) -> None:
        one = case(mocks={"weather": _exits}, metrics=[contains("done")])
        result = self.result(self.agent(WEATHER, "done", tools=[desk.weather]), one)
        assert result.status == "error", describe(result)
        assert "tried to end the process" in str(result.error)
        assert desk.marks == []

    @needs(tools=True)
    def test_a_tool_without_a_mock_is_refused_and_ends_the_case(self, desk: Desk) -> None:
        result = self.result(self.agent(WEATHER, "done", tools=[desk.weather]), case())
        assert result.status == "error"
        assert result.error is not None
        assert (result.error.type, result.error.phase) == ("ToolRefused", "system")
        assert "'weather': ...,  # weather(city" in result.error.message
        assert [event.tool for event in ledger_of(result).of(ToolBlocked)] == ["weather"]
        assert q.tool_calls(ledger_of(result)) == []
        assert desk.marks == []

    @needs("parallel_calls", tools=True)
    def test_a_refused_tool_ends_the_case_beside_a_mocked_one(self, desk: Desk) -> None:
        agent = self.agent([WEATHER, PAY], "done", tools=[desk.weather, desk.pay])
        result = self.result(agent, case(mocks={"weather": "fine"}))
        assert (result.status, desk.marks) == ("error", []), describe(result)

    @needs("error_handlers", tools=True)
    def test_a_handler_that_swallows_the_refusal_changes_nothing(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather], swallows=True)
        result = self.result(agent, case())
        assert result.error is not None
        assert (result.status, result.error.type, desk.marks) == ("error", "ToolRefused", [])

    @needs("error_handlers", tools=True)
    def test_the_backend_itself_raises_a_swallowed_refusal(self, desk: Desk) -> None:
        backend = self.backend(WEATHER, "done", tools=[desk.weather], swallows=True)

        async def advance() -> Any:
            world = Closed()
            return await backend.advance(world.ledger, world)

        with pytest.raises(ToolRefused, match="closed"):
            asyncio.run(advance())
        assert desk.marks == []

    @needs(tools=True)
    def test_the_tool_itself_as_its_own_mock_really_runs(self, desk: Desk) -> None:
        weather = desk.weather
        result = self.result(
            self.agent(WEATHER, "done", tools=[weather]), case(mocks={"weather": weather})
        )
        assert (result.status, desk.marks) == ("passed", ["weather Oslo 1"]), describe(result)
        (call,) = q.tool_calls(ledger_of(result))
        assert (call.source, call.result) == ("live", "really weather Oslo 1")

    @needs(tools=True)
    def test_an_allowed_tool_really_runs(self, desk: Desk) -> None:
        result = self.result(
            self.agent(WEATHER, "done", tools=[desk.weather]), case(allow_tools=["weather"])
        )
        assert (result.status, desk.marks) == ("passed", ["weather Oslo 1"]), describe(result)

    @needs("argument_checks", tools=True)
    def test_arguments_that_do_not_fit_never_reach_the_mock(self, desk: Desk) -> None:
        reached: list[dict[str, Any]] = []

        def mock(**given: object) -> None:
            reached.append(given)

        wrong = ToolCall("weather", {"days": "many"}, "call-wrong")
        agent = self.agent(wrong, "done", tools=[desk.weather])
        result = self.result(agent, case(mocks={"weather": mock}))
        assert (result.status, reached, desk.marks) == ("passed", [], []), describe(result)

    @needs("handoffs", tools=True)
    def test_the_tool_of_a_helper_is_gated_too(self, desk: Desk) -> None:
        helper = Blueprint(name="helper", lines=[WEATHER, "done"], tools=[ToolPlan(desk.weather)])
        agent = self.agent(HandOver("helper"), helpers=[helper])
        refused = self.result(agent, case("refused"))
        passed = self.result(agent, case(mocks={"weather": "fine"}))
        assert (refused.status, passed.status) == ("error", "passed"), describe(passed)
        assert desk.marks == []

    def test_a_way_around_the_gate_leads_nowhere(self, bypass: Bypass, desk: Desk) -> None:
        asyncio.run(self.harness.run_bare(bypass.build(desk), "hello"))
        fired = desk.marks
        assert fired, "the canary of this bypass does not fire even without a gate"
        one = case(mocks=bypass.mocks, allow_tools=bypass.allow_tools)
        many = [case(f"case {n}", mocks=one.mocks, allow_tools=one.allow_tools) for n in range(8)]
        try:
            statuses = {result.status for result in self.results(bypass.build(desk), [one])}
            agent = bypass.build(desk)
            statuses |= {result.status for result in self.results(agent, many, concurrency=8)}
        except BadAgent:
            # A refusal before the run is as good as one during it.
            statuses = {"error"}
        assert (statuses, desk.marks) == ({"error"}, fired)

    def test_calls_that_cannot_be_seen_must_be_allowed(self) -> None:
        if self.harness.backend.tool_calls != "opaque":
            pytest.skip(f"the tool calls of {self.harness.backend.name} can be seen")
        with pytest.raises(BadAgent, match="allow_opaque=True"):
            rehearse(self.agent("done"), [case()])
        result = self.result(self.agent("done"), case())
        assert any("not intercepted" in note for note in result.notes)
