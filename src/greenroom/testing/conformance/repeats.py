"""Repeated trials: in parallel, one after another, and from a recording."""

import asyncio

from greenroom.backends.backend import TurnOver
from greenroom.cases.users import Lines, UserAgents
from greenroom.ledger import questions as q
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.testing.blueprints import Desk, ToolPlan
from greenroom.testing.conformance.base import (
    PAY,
    WEATHER,
    Conformance,
    RecordingWorld,
    case,
    ledger_of,
    needs,
)
from greenroom.testing.ledgers import timeless
from greenroom.world.records import answer_model


class StoredRun(RecordingWorld):
    """A world that answers for models itself."""

    async def call_model(
        self,
        request: ModelRequest,
        body: ModelBody,  # noqa: ARG002
        on_delta: OnDelta | None = None,
    ) -> ModelReply:
        """The recorded reply."""
        return await answer_model(self, request, _recording, on_delta, "replayed")


async def _recording(*_: object) -> ModelReply:
    return ModelReply("from the recording", model="recorded")


class Repeating(Conformance):
    """One agent object serves many trials, and equal trials have equal ledgers."""

    @needs("parallel_calls", tools=True)
    def test_sixteen_cases_share_one_agent_object(self, desk: Desk) -> None:
        agent = self.agent([WEATHER, PAY], "done", tools=[desk.weather, desk.pay])
        cases = [
            case(f"case {n}", says=f"hello {n}", mocks={"weather": f"{n} degrees", "pay": n})
            for n in range(16)
        ]
        results = self.results(agent, cases, concurrency=16)
        assert [result.status for result in results] == ["passed"] * 16
        for n, result in enumerate(results):
            answers = {call.tool: call.result for call in q.tool_calls(ledger_of(result))}
            assert answers == {"weather": f"{n} degrees", "pay": n}
        assert desk.marks == []

    def test_sixteen_conversations_do_not_mix(self) -> None:
        agent = self.agent("all done")
        cases = [case(f"case {n}", says=f"hello {n}") for n in range(16)]
        results = self.results(agent, cases, concurrency=16)
        assert [result.status for result in results] == ["passed"] * 16
        said = [q.messages(ledger_of(result)) for result in results]
        assert [[m.text for m in messages] for messages in said] == [
            [f"hello {n}", "all done"] for n in range(16)
        ]

    @needs("approvals", tools=True)
    def test_sixteen_pauses_are_answered_each_by_its_own_user(self, desk: Desk) -> None:
        agent = self.agent(PAY, "done", tools=[ToolPlan(desk.pay, "approval")])
        cases = [
            case(
                f"case {n}",
                mocks={"pay": n},
                user=UserAgents(tools={"pay": Lines(n % 2 == 0)}),
            )
            for n in range(16)
        ]
        results = self.results(agent, cases, concurrency=16)
        assert [result.status for result in results] == ["passed"] * 16
        paid = [[c.result for c in q.tool_calls(ledger_of(result))] for result in results]
        assert paid == [[n] if n % 2 == 0 else [] for n in range(16)]
        assert desk.marks == []

    def test_equal_runs_have_equal_ledgers(self, desk: Desk) -> None:
        routed = self.harness.backend.tool_calls == "routed"
        lines: tuple[object, ...] = (WEATHER, "done") if routed else ("done",)
        one = case(mocks={"weather": "fine"} if routed else {})
        agent = self.agent(*lines, tools=[desk.weather])
        runs = [self.result(agent, one) for _ in range(2)]
        runs.append(self.result(self.agent(*lines, tools=[desk.weather]), one))
        first, second, fresh = (timeless(ledger_of(run)) for run in runs)
        assert first == second == fresh

    @needs(models=True)
    def test_a_world_that_answers_by_itself_never_asks_the_model(self) -> None:
        backend, world = self.backend(RuntimeError("the model was asked")), StoredRun()
        outcome = asyncio.run(backend.advance(world.ledger, world))
        assert outcome == TurnOver("from the recording")
