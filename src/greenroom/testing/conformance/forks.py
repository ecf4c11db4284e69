"""Forks: a recorded trial continues with a change if that is sound, and is refused by name if it is not."""

import asyncio

from greenroom.cases.case import Turn
from greenroom.errors import BadInput
from greenroom.ledger import questions as q
from greenroom.ledger.events import Forked, UserSaid
from greenroom.ledger.ledger import Ledger
from greenroom.simulation.recorded.fork import fork
from greenroom.testing.blueprints import Desk
from greenroom.testing.conformance.base import WEATHER, Conformance, case, ledger_of, needs


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
