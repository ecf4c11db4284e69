"""Replay: what a ledger recorded answers for models, tools and users, and nothing differs."""

import asyncio
from collections.abc import Callable

from greenroom.cases.case import Case, Turn
from greenroom.cases.users import Lines, UserAgents
from greenroom.ledger.difference import diff
from greenroom.ledger.events import ModelReplied, ToolReturned
from greenroom.ledger.ledger import Ledger
from greenroom.simulation.recorded.replay import replay
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


class Replays(Conformance):
    """An unchanged agent, replayed from its ledger, does the same."""

    @needs("turns", models=True, tools=True)
    def test_a_replay_asks_nobody_and_differs_in_nothing(self, desk: Desk) -> None:
        def build() -> object:
            return self.agent(WEATHER, "cold", "done", tools=[desk.weather])

        one = case(says="", turns=[Turn("hello"), Turn("and then?")], mocks={"weather": "fine"})
        again = self._replayed(build, one)
        assert {event.source for event in again.of(ModelReplied)} == {"replayed"}
        assert {event.source for event in again.of(ToolReturned)} == {"replayed"}
        assert desk.marks == []

    @needs("parallel_calls", models=True, tools=True)
    def test_calls_side_by_side_are_replayed(self, desk: Desk) -> None:
        def build() -> object:
            return self.agent([WEATHER, PAY], "done", tools=[desk.weather, desk.pay])

        self._replayed(build, case(mocks={"weather": "fine", "pay": "paid"}))
        assert desk.marks == []

    @needs("approvals", models=True, tools=True)
    def test_what_the_user_approved_is_approved_again(self, desk: Desk) -> None:
        def build() -> object:
            return self.agent(PAY, "done", tools=[ToolPlan(desk.pay, "approval")])

        user = UserAgents(tools={"pay": Lines(True)})
        self._replayed(build, case(mocks={"pay": "paid"}, user=user))
        assert desk.marks == []

    def _replayed(self, build: Callable[[], object], one: Case) -> Ledger:
        result = self.result(build(), one)
        assert result.status == "passed", describe(result)
        recorded = Ledger.loads(ledger_of(result).dumps())
        again = asyncio.run(replay(recorded, build()))
        assert [str(difference) for difference in diff(recorded, again)] == []
        return again
