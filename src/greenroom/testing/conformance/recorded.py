"""Recorded trials: replayed, forked, and resumed where they were cut. What would not be sound is refused by name."""

import asyncio
from collections.abc import Callable

from greenroom.cases.case import Case, Turn
from greenroom.cases.users import Lines, UserAgents
from greenroom.errors import BadInput, BadLedger
from greenroom.ledger import questions as q
from greenroom.ledger.difference import diff
from greenroom.ledger.events import (
    Forked,
    InvocationEnded,
    ModelReplied,
    ToolCalled,
    ToolReturned,
    UserSaid,
)
from greenroom.ledger.ledger import Ledger
from greenroom.simulation.conversation import simulate
from greenroom.simulation.recorded.fork import fork
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


class Forks(Conformance):
    """What was recorded is kept, and the agent continues from there."""

    @needs("turns", models=True, tools=True, resumption=True)
    def test_a_trial_goes_on_between_turns_with_another_agent_and_another_message(
        self, desk: Desk
    ) -> None:
        def build(**more: object) -> object:
            return self.agent(WEATHER, "cold", "done", tools=[desk.weather], **more)

        one = case(says="", turns=[Turn("hello"), Turn("and then?")], mocks={"weather": "fine"})
        recorded = Ledger.loads(ledger_of(self.result(build(), one)).dumps())
        at = recorded.of(UserSaid)[1].seq
        changed = build(instructions="Be brief.")
        (found,) = asyncio.run(fork(recorded, changed, at=at, answer="what else?", case=one))
        assert [m.text for m in q.messages(found)] == ["hello", "cold", "what else?", "done"]
        assert found[:at] == recorded[:at]
        (mark,) = found.of(Forked)
        assert mark.changed == ("agent", f"answer of event {at} (user_said)")
        assert desk.marks == []

    @needs(models=True, tools=True, resumption=True)
    def test_from_any_event_a_trial_goes_on_or_is_refused_by_name(self, desk: Desk) -> None:
        def build() -> object:
            return self.agent(WEATHER, "done", tools=[desk.weather])

        one = case(mocks={"weather": "fine"})
        recorded = Ledger.loads(ledger_of(self.result(build(), one)).dumps())
        refused: list[str] = []
        for at in range(1, len(recorded)):
            try:
                (found,) = asyncio.run(fork(recorded, build(), at=at, case=one))
            except BadInput as error:
                refused.append(str(error))
            else:
                assert q.response(found) == "done", (at, q.ended(found))
                assert [call.result for call in q.tool_calls(found)] == ["fine"]
        assert all("Fork at one of the events" in why for why in refused)
        assert bool(refused) == (self.harness.backend.resumes == "checkpoint")
        assert desk.marks == []


class Cutting(Conformance):
    """Finished work is not repeated, and the outcome of unfinished work is not guessed."""

    @needs(resumption=True)
    def test_a_run_cut_after_its_answer_is_over_without_asking_again(self) -> None:
        ledger = ledger_of(self.result(self.agent("done"), case()))
        end = ledger.of(InvocationEnded)[0].seq
        for cut in (end, end + 1):
            begun = Ledger.loads(Ledger(ledger[:cut]).dumps())
            opaque = self.harness.backend.tool_calls == "opaque"
            again = simulate(case(), self.agent("done"), ledger=begun, allow_opaque=opaque)
            resumed = asyncio.run(again)
            assert q.responses(resumed) == ["done"]
            assert self.replied(resumed) in (1, None)

    @needs(tools=True, resumption=True)
    def test_a_run_cut_in_the_middle_goes_on_or_is_refused(self, desk: Desk) -> None:
        one = case(mocks={"weather": "3 degrees"})
        ledger = ledger_of(self.result(self.agent(WEATHER, "done", tools=[desk.weather]), one))
        cut = ledger.of(ModelReplied, ToolCalled)[0].seq + 1
        begun = Ledger(ledger[:cut])
        agent = self.agent(WEATHER, "done", tools=[desk.weather])
        resumed = asyncio.run(simulate(one, agent, ledger=begun))
        end = q.ended(resumed)
        assert end is not None
        if end.reason == "error":
            # A backend may refuse to resume; its declaration says whether that is allowed.
            assert self.harness.backend.resumes != "exact"
            assert end.error_type == BadLedger.__name__
        else:
            assert q.response(resumed) == "done"
            assert self.replied(resumed) in (2, None)
            assert [call.result for call in q.tool_calls(resumed)] == ["3 degrees"]
        assert desk.marks == []
