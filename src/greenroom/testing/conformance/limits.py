"""Deadlines and cancellation: a trial that hangs is ended, and nothing of it keeps running."""

import asyncio

from greenroom.cases.case import Stop
from greenroom.cases.mocks import fault
from greenroom.ledger import questions as q
from greenroom.ledger.events import RunEnded
from greenroom.testing.blueprints import Desk, Hang
from greenroom.testing.conformance.base import (
    WEATHER,
    Conformance,
    RecordingWorld,
    case,
    describe,
    ledger_of,
    needs,
)
from greenroom.world.world import Pending, Returned, ToolBody, ToolRequest

_SOON = Stop(max_seconds=0.3)


class Stuck(RecordingWorld):
    """A world whose tools never answer, and which signals when it is asked."""

    def __init__(self) -> None:
        super().__init__()
        self.reached = asyncio.Event()

    async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:  # noqa: ARG002
        """Wait forever."""
        self.reached.set()
        await asyncio.Event().wait()
        raise AssertionError("that event is never set")


class Limits(Conformance):
    """Hanging calls time out."""

    def test_a_model_that_hangs_is_cut_at_the_deadline(self) -> None:
        result = self.result(self.agent(Hang()), case(stop=_SOON))
        assert (result.ended, result.passed) == ("max_seconds", False), describe(result)
        assert isinstance(ledger_of(result)[-1], RunEnded)

    @needs(tools=True)
    def test_a_tool_that_hangs_is_cut_at_the_deadline(self, desk: Desk) -> None:
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        slow = case(mocks={"weather": fault(slow=600.0)}, stop=_SOON)
        result = self.result(agent, slow)
        assert (result.ended, result.passed) == ("max_seconds", False), describe(result)
        assert desk.marks == []

    @needs(tools=True)
    def test_a_cancelled_run_stops_where_it_is(self, desk: Desk) -> None:
        backend = self.backend(WEATHER, "done", tools=[desk.weather])

        async def cancelled() -> tuple[bool, int, int]:
            world = Stuck()
            task = asyncio.ensure_future(backend.advance(world.ledger, world))
            await world.reached.wait()
            task.cancel()
            await asyncio.wait([task])
            before = len(world.ledger)
            await asyncio.sleep(0.05)
            return task.cancelled(), before, len(world.ledger)

        was_cancelled, before, after = asyncio.run(cancelled())
        assert was_cancelled
        assert before == after
        assert desk.marks == []

    def test_an_agent_that_was_cut_serves_the_next_case(self) -> None:
        agent = self.agent(Hang())
        cut = self.result(agent, case(stop=_SOON))
        again = self.result(agent, case(stop=_SOON))
        assert [q.ended(ledger_of(r)) is not None for r in (cut, again)] == [True, True]
        assert (cut.ended, again.ended) == ("max_seconds", "max_seconds")
