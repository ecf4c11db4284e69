"""A rehearsal move by move: it rests between answers, forks anywhere, and runs no body."""

from typing import Any

import pytest

from greenroom import Agent, Case, Ledger, Lines, call, simulate, tool
from greenroom.cases import harvest
from greenroom.errors import BadInput
from greenroom.ledger import Forked, ModelReplied, ended, messages, tool_calls
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.simulation.rehearsal import Rehearsal


@tool
def look_up(number: int) -> dict[str, Any]:
    """Find an order."""
    raise AssertionError("a rehearsal runs no tool")


@tool(yields=True)
def approve(amount: float) -> bool:
    """Ask the user whether so much may be paid."""
    raise AssertionError("a rehearsal runs no tool")


class Clerk:
    """A model that looks an order up, asks for approval, and says what came of it."""

    name = "clerk"

    def __init__(self) -> None:
        self.asked = 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        last = request.messages[-1]
        if last.role == "user":
            wants = "refund" in last.text
            return ModelReply(calls=(call("look_up", number=7),)) if wants else ModelReply("Hi.")
        if '"state"' in last.text:
            if "lost" in last.text:
                return ModelReply("It is lost.")
            return ModelReply(calls=(call("approve", amount=9.5),))
        return ModelReply(f"Approved: {last.text}.")


def desk(model: Clerk | None = None) -> Agent:
    return Agent("desk", model=model or Clerk(), tools=[look_up, approve])


MOCKS = {"look_up": {"state": "shipped"}}


async def test_it_rests_where_the_agent_waits_and_goes_on_with_an_answer() -> None:
    play = Rehearsal(desk(), mocks=MOCKS)
    assert (await play.say("hello")).waits == ()
    rest = await play.say("a refund please")
    assert [wait.tool for wait in rest.waits] == ["approve"]
    rest = await play.answer({"approve": True})
    assert (rest.waits, rest.ended) == ((), "")
    assert messages(play.ledger)[-1].text == "Approved: true."
    assert ended(play.ledger) is None


async def test_a_play_is_taken_up_from_its_text_in_another_process() -> None:
    play = Rehearsal(desk(), mocks=MOCKS)
    await play.say("a refund please")
    model = Clerk()
    again = Rehearsal(desk(model), mocks=MOCKS, ledger=Ledger.loads(play.ledger.dumps()))
    await again.answer({"approve": False})
    assert messages(again.ledger)[-1].text == "Approved: false."
    assert model.asked == 1


async def test_a_missing_mock_is_asked_for_and_nothing_is_paid_twice() -> None:
    model = Clerk()
    play = Rehearsal(desk(model))
    rest = await play.say("a refund please")
    assert rest.refused == ("look_up",)
    assert "look_up" in rest.error
    rest = await play.go_on(MOCKS)
    assert [wait.tool for wait in rest.waits] == ["approve"]
    assert model.asked == 2


async def test_a_fork_goes_on_with_another_mock_and_asks_nothing_again() -> None:
    model = Clerk()
    play = Rehearsal(desk(model), mocks=MOCKS)
    await play.say("a refund please")
    asked = model.asked
    (record,) = tool_calls(play.ledger)[:1]
    at = next(event.seq for event in play.ledger if event.kind == "tool_returned")
    other = play.fork(at, mocks={"look_up": {"state": "lost"}})
    await other.go_on()
    assert messages(other.ledger)[-1].text == "It is lost."
    assert model.asked == asked + 1
    assert other.ledger.of(Forked)[0].changed == ("mocks.look_up",)
    assert record.tool == "look_up"
    assert len(play.ledger.of(ModelReplied)) == 2


@pytest.mark.parametrize("answers", [{"approve": [1]}, {"nobody": True}, {}])
async def test_an_answer_that_does_not_fit_leaves_everything_as_it_was(answers: Any) -> None:
    play = Rehearsal(desk(), mocks=MOCKS)
    await play.say("a refund please")
    before = play.ledger.dumps()
    with pytest.raises(BadInput):
        await play.answer(answers)
    assert play.ledger.dumps() == before
    assert (await play.answer({"approve": True})).ended == ""


async def test_the_simulated_user_says_one_thing_at_a_time() -> None:
    play = Rehearsal(desk(), Case("x", user=Lines("hello", "a refund please")), mocks=MOCKS)
    await play.let_user_answer()
    assert [message.text for message in messages(play.ledger)] == ["hello", "Hi."]
    rest = await play.let_user_answer()
    assert [wait.tool for wait in rest.waits] == ["approve"]


async def test_what_was_played_becomes_a_case_that_passes() -> None:
    play = Rehearsal(desk(), mocks=MOCKS)
    await play.say("a refund please")
    await play.answer({"approve": True})
    case = harvest(play.ledger, "refund")
    ledger = await simulate(case, desk())
    assert [one.text for one in messages(ledger)] == [one.text for one in messages(play.ledger)]
    assert [one.name for one in tool_calls(ledger)] == [one.name for one in tool_calls(play.ledger)]


async def test_an_empty_message_is_refused() -> None:
    with pytest.raises(BadInput, match="empty"):
        await Rehearsal(desk()).say("  ")


async def test_what_a_case_allows_does_not_run_when_it_is_played_by_hand() -> None:
    play = Rehearsal(desk(), Case("x", says="hi", allow_tools=[look_up]))
    assert (await play.say("a refund please")).refused == ("look_up",)
