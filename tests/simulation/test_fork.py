"""A recorded trial goes on from any event with a change, as often as one likes."""

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest

from greenroom import Agent, Case, Ledger, Lines, Scripted, call, per_case, simulate, tool
from greenroom.errors import AgentFailed, BadInput, FenceBreach
from greenroom.ledger import (
    AgentSaid,
    Forked,
    ModelReplied,
    ToolReturned,
    UserSaid,
    ended,
    messages,
    response,
    responses,
    tool_calls,
)
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.simulation import deciding_step, fork
from greenroom.world import Middleware


@tool
def status(order: int) -> str:
    """Where an order is."""
    raise AssertionError("a rehearsal runs no tool")


class Clerk:
    """A model that asks for the status and says what it heard."""

    name = "clerk"

    def __init__(self, words: str = "It is") -> None:
        self.words, self.asked = words, 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        last = request.messages[-1]
        if last.role == "user" and "order" in last.text:
            return ModelReply(calls=(call("status", order=7),))
        return ModelReply(f"{self.words} {last.text}.")


CASE = Case("where", says="Where is order 7?", user=Lines("Thanks"), mocks={"status": "lost"})


def clerk(words: str = "It is") -> Agent:
    return Agent("clerk", model=Clerk(words), tools=[status], instructions=words)


def recorded() -> Ledger:
    return Ledger.loads(asyncio.run(simulate(CASE, clerk())).dumps())


def forked(ledger: Ledger, agent: Any, **more: Any) -> list[Ledger]:
    return asyncio.run(fork(ledger, agent, case=CASE, **more))


def test_an_unchanged_fork_comes_to_the_same_end_from_every_event() -> None:
    ledger = recorded()
    for at in range(1, len(ledger)):
        (again,) = forked(ledger, clerk(), at=at)
        assert messages(again) == messages(ledger), at
        assert ended(again).reason == "completed"  # pyright: ignore[reportOptionalMemberAccess]


def test_another_agent_goes_on_from_what_was_recorded() -> None:
    ledger = recorded()
    at = ledger.of(ToolReturned)[0].seq + 1
    agent = clerk("Sadly")
    found = forked(ledger, agent, at=at, n=3)
    assert [response(one) for one in found] == ["Sadly Thanks."] * 3
    assert [said.text for said in found[0].of(AgentSaid)] == ["Sadly lost.", "Sadly Thanks."]
    assert agent.model.asked == 6  # pyright: ignore[reportAttributeAccessIssue]
    (mark,) = found[0].of(Forked)
    assert (mark.from_run, mark.from_seq, mark.changed) == ("where", at, ("agent",))
    assert found[0][:at] == ledger[:at]


def test_another_mock_answers_what_was_not_recorded_yet() -> None:
    ledger = recorded()
    before = ledger.of(ToolReturned)[0].seq - 1
    (found,) = forked(ledger, clerk(), at=before, mocks={"status": "here"})
    assert [c.result for c in tool_calls(found)] == ["here"]
    assert found.of(Forked)[0].changed == ("mocks.status",)
    (late,) = forked(ledger, clerk(), at=before + 2, mocks={"status": "here"})
    assert [c.result for c in tool_calls(late)] == ["lost"]


@pytest.mark.parametrize(
    "kind, answer, said",
    [
        (ModelReplied, "No idea.", ["No idea.", "It is Thanks."]),
        (ModelReplied, call("status", order=8), ["It is lost.", "It is Thanks."]),
        (ToolReturned, "here", ["It is here.", "It is Thanks."]),
        (UserSaid, "Hello", ["It is Hello.", "It is Thanks."]),
    ],
)
def test_another_answer_is_given_in_place_of_the_recorded_one(
    kind: Any, answer: Any, said: list[str]
) -> None:
    ledger = recorded()
    event = ledger.of(kind)[0]
    (found,) = forked(ledger, clerk(), at=event.seq, answer=answer)
    assert [one.text for one in found.of(AgentSaid)] == said
    assert "answer of event" in found.of(Forked)[0].changed[0]


def test_a_fork_that_mends_a_failing_trial_is_written_down_and_read_again() -> None:
    ledger = recorded()
    (found,) = forked(ledger, clerk(), at=ledger.of(ToolReturned)[0].seq, answer="here")
    assert Ledger.loads(found.dumps()).of(Forked) == found.of(Forked)


def test_a_case_of_data_is_read_from_the_ledger() -> None:
    agent = Agent("clerk", model=Scripted("Yes."))
    ledger = asyncio.run(simulate(Case("c", says="Hi"), agent))
    (found,) = asyncio.run(fork(ledger, agent, at=2))
    assert response(found) == "Yes."


@pytest.mark.parametrize(
    "agent, case",
    [
        (Agent("first", model=Scripted("A")) >> clerk(), replace(CASE, target="clerk")),
        (clerk(), replace(CASE, model=Scripted("In its place."))),
        (per_case(clerk), CASE),
    ],
    ids=["target", "model", "per_case"],
)
def test_what_a_case_makes_of_the_agent_goes_on_unchanged(agent: Any, case: Case) -> None:
    ledger = asyncio.run(simulate(case, agent))
    (again,) = asyncio.run(fork(ledger, agent, at=4, case=case))
    assert [one.changed for one in again.of(Forked)] == [()]
    assert responses(again) == responses(ledger)


def test_an_agent_that_is_made_for_each_case_is_made_inside_the_fence_to_look_for_steps() -> None:
    def make() -> Agent:
        socket.create_connection(("192.0.2.1", 9), timeout=0.01)
        return clerk()

    with pytest.raises((FenceBreach, AgentFailed), match="refused"):
        asyncio.run(deciding_step(recorded(), per_case(make), bool, case=CASE, n=1))


def test_what_cannot_be_meant_is_refused() -> None:
    ledger = recorded()
    for words, wrong in [
        ("at=0 should be", {"at": 0}),
        ("at=99", {"at": 99}),
        ("n=0", {"at": 2, "n": 0}),
        ("cannot have the answer", {"at": 2, "answer": "x"}),
    ]:
        with pytest.raises(BadInput, match=words):
            forked(ledger, clerk(), **wrong)


def test_middleware_stands_around_what_goes_on() -> None:
    class Loud(Middleware):
        async def after_model(self, request: ModelRequest, reply: ModelReply) -> str | None:
            return reply.text.upper() or None

    ledger = recorded()
    at = ledger.of(UserSaid)[1].seq
    (found,) = forked(ledger, clerk(), at=at, middleware=[Loud()])
    assert [said.text for said in found.of(AgentSaid)] == ["It is lost.", "IT IS THANKS."]


def test_a_real_tool_runs_in_a_fork_where_it_is_named() -> None:
    ran: list[int] = []

    @tool
    def status(order: int) -> str:
        """Where an order is."""
        ran.append(order)
        return "really here"

    agent = Agent("clerk", model=Clerk(), tools=[status], instructions="It is")
    ledger, bare = recorded(), Case("where", says="Where is order 7?")
    at = ledger.of(ToolReturned)[0].seq - 1
    (refused,) = asyncio.run(fork(ledger, agent, at=at, case=bare))
    assert ended(refused).error_type == "ToolRefused"  # pyright: ignore[reportOptionalMemberAccess]
    (found,) = asyncio.run(fork(ledger, agent, at=at, case=bare, allow_tools=["status"]))
    assert (ran, response(found)) == ([7], "It is really here.")


# The step that decided


class Wavering:
    """A model that mostly chooses well, but chose badly in the trial that was recorded."""

    name = "wavering"

    def __init__(self, first: str) -> None:
        self.first = first

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        last = request.messages[-1].text
        if last == "Hello":
            return ModelReply("Hi.")
        if last == "Which way?":
            return ModelReply(self.first)
        chosen = [m.text for m in request.messages if m.role == "assistant"][-1]
        return ModelReply("Arrived." if chosen == "Left." else "Lost.")


WAY = Case("way", says="Hello", user=Lines("Which way?", "And then?"))


def arrived(ledger: Ledger) -> bool:
    return response(ledger) == "Arrived."


def guide(first: str) -> Agent:
    return Agent("guide", model=Wavering(first))


def test_the_step_is_named_with_which_the_pass_rate_changes() -> None:
    failed = asyncio.run(simulate(WAY, guide("Right.")))
    assert not arrived(failed)
    found = asyncio.run(deciding_step(failed, guide("Left."), arrived, case=WAY, n=6))
    assert isinstance(found.event, ModelReplied)
    assert found.event.text == "Right."
    assert str(found) == (
        f"event {found.event.seq} (model_replied) decided: of 6 forks 6 pass before it, 0 after it"
    )
    (mended,) = asyncio.run(
        fork(failed, guide("Right."), at=found.event.seq, answer="Left.", case=WAY)
    )
    assert arrived(mended)


def test_where_the_forks_do_not_differ_it_cannot_tell() -> None:
    failed = asyncio.run(simulate(WAY, guide("Right.")))
    always = asyncio.run(deciding_step(failed, guide("Right."), arrived, case=WAY, n=4))
    assert always.event is None
    assert str(always).startswith("cannot tell")
    few = asyncio.run(deciding_step(failed, guide("Left."), arrived, case=WAY, n=1))
    assert few.event is None, "one fork on either side shows nothing"
