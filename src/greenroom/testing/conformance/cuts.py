"""An interrupted trial: resumed if that is sound, refused if it is not."""

import asyncio

from greenroom.errors import BadLedger
from greenroom.ledger import questions as q
from greenroom.ledger.events import InvocationEnded, ModelReplied, ToolCalled
from greenroom.ledger.ledger import Ledger
from greenroom.simulation.conversation import simulate
from greenroom.testing.blueprints import Desk
from greenroom.testing.conformance.base import WEATHER, Conformance, case, ledger_of, needs


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
