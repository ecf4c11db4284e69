"""What an agent returns: turns, structured answers, streams, failures."""

import asyncio

import pytest

from greenroom.backends.backend import Backend
from greenroom.cases.case import Turn
from greenroom.cases.mocks import fault, in_turn
from greenroom.ledger import questions as q
from greenroom.ledger.events import (
    AgentSaid,
    InvocationEnded,
    InvocationStarted,
    ModelCalled,
    ModelReplied,
    ToolFailed,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import contains
from greenroom.simulation.performance import perform
from greenroom.testing.blueprints import Desk, Structured, Verdict
from greenroom.testing.conformance.base import (
    WEATHER,
    Conformance,
    RecordingWorld,
    ToolError,
    case,
    describe,
    ledger_of,
    needs,
)

AGAIN = ToolCall("weather", {"city": "Oslo", "days": 2}, "call-again")


class Replies(Conformance):
    """Turns, answers and failures."""

    @needs("turns")
    def test_every_turn_has_its_answer(self) -> None:
        one = case(says="", turns=[Turn("hello"), Turn("and tomorrow?")])
        result = self.result(self.agent("cold", "done"), one)
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        assert q.responses(ledger) == ["cold", "done"]
        given = [event.input for event in ledger.of(InvocationStarted)]
        assert given == ["hello", "and tomorrow?"]

    @needs("turns", models=True)
    def test_a_later_turn_knows_the_earlier_ones(self) -> None:
        backend, world = self.backend("cold", "done"), RecordingWorld()
        asyncio.run(self._two_turns(backend, world))
        texts = [message.text for message in world.asked[-1].messages]
        assert [text for text in texts if text in ("hello", "cold", "and tomorrow?")] == [
            "hello",
            "cold",
            "and tomorrow?",
        ]

    async def _two_turns(self, backend: Backend, world: RecordingWorld) -> None:
        await backend.advance(world.ledger, world)
        world.record(UserSaid(text="and tomorrow?"))
        await backend.advance(world.ledger, world)

    @needs("turns", models=True, tools=True)
    def test_calls_are_counted_over_all_turns(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "cold", AGAIN, "done", tools=[desk.weather])
        one = case(
            says="", turns=[Turn("hello"), Turn("and then?")], mocks={"weather": in_turn(1, 2)}
        )
        result = self.result(agent, one)
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        assert [call.result for call in q.tool_calls(ledger)] == [1, 2]
        assert [event.n for event in ledger.of(ModelCalled)] == [0, 1, 2, 3]
        sizes = [event.messages for event in ledger.of(ModelCalled)]
        assert sizes == sorted(set(sizes))

    @needs("speaks_first")
    def test_the_agent_may_speak_first(self) -> None:
        result = self.result(self.agent("done"), case(says=""))
        assert (result.status, q.responses(ledger_of(result))) == ("passed", ["done"]), describe(
            result
        )

    @needs("structured_output")
    def test_an_answer_that_is_data_is_the_turns_output(self) -> None:
        agent = self.agent(Structured({"ok": True}), output=Verdict)
        result = self.result(agent, case(metrics=[contains("true")]))
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        assert [event.output for event in ledger.of(InvocationEnded)] == [{"ok": True}]
        assert [event.text for event in ledger.of(AgentSaid)] == ['{"ok": true}']

    @needs("streaming", tools=True)
    def test_a_streamed_reply_is_recorded_whole_and_once(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "it is all done", tools=[desk.weather], streams=True)
        result = self.result(agent, case(mocks={"weather": "fine"}))
        assert result.status == "passed", describe(result)
        ledger = ledger_of(result)
        if self.sees_models:
            assert [event.text for event in ledger.of(ModelReplied)] == ["", "it is all done"]
        assert [event.text for event in ledger.of(AgentSaid)] == ["it is all done"]
        assert desk.marks == []

    @needs("pieces")
    def test_the_pieces_of_a_reply_reach_who_listens(self) -> None:
        heard: list[str] = []

        async def performed() -> Ledger:
            agent = self.agent("it is all done", streams=True)
            return await perform(agent, "hello", store=False, on_delta=heard.append)

        ledger = asyncio.run(performed())
        assert "".join(heard) == "it is all done"
        assert len(heard) > 1, "the reply came in one piece"
        assert [event.text for event in ledger.of(AgentSaid)] == ["it is all done"]
        (reply,) = ledger.of(ModelReplied)
        assert reply.first is not None

    @needs(tools=True)
    def test_a_declared_fault_is_the_agents_to_live_with(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        result = self.result(agent, case(mocks={"weather": fault("station is down")}))
        assert result.status == "passed", describe(result)
        (failed,) = ledger_of(result).of(ToolFailed)
        assert (failed.tool, failed.error, failed.source) == ("weather", "station is down", "mock")
        assert desk.marks == []

    @needs(tools=True, models=True)
    def test_a_tools_failure_reaches_the_model(self, desk: Desk) -> None:
        backend = self.backend(WEATHER, "done", tools=[desk.weather])
        world = RecordingWorld({"weather": ToolError("station is down")})  # pyright: ignore[reportArgumentType]
        asyncio.run(backend.advance(world.ledger, world))
        assert "station is down" in world.heard()

    @pytest.mark.filterwarnings("default")
    def test_a_model_that_breaks_is_the_agents_error(self) -> None:
        result = self.result(self.agent(RuntimeError("no tokens left")), case())
        assert result.error is not None
        assert (result.status, result.error.phase) == ("error", "agent")
        assert "no tokens left" in result.error.message
