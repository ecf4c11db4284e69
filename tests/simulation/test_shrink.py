"""A failing case is made as short as it can be, and still fails."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from greenroom import Agent, Case, Ledger, Lines, SimulatedUser, call, simulate, tool
from greenroom.errors import BadInput
from greenroom.ledger import response
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.simulation import Shrunk, shrink


@tool
def look() -> str:
    """Look it up."""
    raise AssertionError("a rehearsal runs no tool")


@tool
def unused() -> str:
    """Not needed."""
    raise AssertionError("a rehearsal runs no tool")


class Forgetful:
    """A model that looks when told to, and then forgets the name it was given."""

    name = "forgetful"

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        said = [m.text for m in request.messages if m.role == "user"]
        looked = any(m.role == "tool" for m in request.messages)
        if request.messages[-1].text == "Look it up":
            return ModelReply(calls=(call("look"),))
        if said[-1] == "Who am I?":
            knows = "I am Ada" in said and not looked
            return ModelReply("Ada" if knows else "Nobody" if "I am Ada" in said else "Tell me")
        return ModelReply("Fine")


AGENT = Agent("clerk", model=Forgetful(), tools=[look, unused])
CASE = Case(
    "who",
    says="Hello",
    user=Lines("I am Ada", "Nice day", "Look it up", "Thanks", "Who am I?", "Bye"),
    mocks={"look": "found", "unused": "never"},
)


def forgot(ledger: Ledger) -> bool:
    from greenroom.ledger import responses

    return "Nobody" in responses(ledger)


def shrunk(case: Case = CASE, **more: Any) -> Shrunk:
    return asyncio.run(shrink(case, AGENT, forgot, **more))


def test_what_is_left_is_minimal() -> None:
    found = shrunk()
    assert [turn.says for turn in found.case.turns or ()] == ["I am Ada", "Look it up", "Who am I?"]
    assert dict(found.case.mocks) == {"look": "found"}
    assert found.is_minimal
    turns = list(found.case.turns or ())
    for place in range(len(turns)):
        fewer = replace(found.case, turns=[*turns[:place], *turns[place + 1 :]])
        assert not forgot(asyncio.run(simulate(fewer, AGENT)))


def test_a_spent_budget_is_said() -> None:
    found = shrunk(max_trials=3)
    assert (found.trials, found.is_minimal) == (3, False)
    assert forgot(asyncio.run(simulate(found.case, AGENT)))


def test_a_failure_by_chance_does_not_count() -> None:
    class Sometimes:
        name = "sometimes"

        def __init__(self) -> None:
            self.asked = 0

        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            self.asked += 1
            return ModelReply("Nobody" if self.asked == 1 else "Ada")

    flaky = Agent("clerk", model=Sometimes())
    with pytest.raises(BadInput, match="does not fail in 3 of 4 trials"):
        asyncio.run(shrink(Case("c", says="Hi"), flaky, forgot, fails_in=3, trials=4))


def test_what_cannot_be_shrunk_is_refused() -> None:
    with pytest.raises(BadInput, match="nothing to shrink"):
        shrunk(Case("c", says="Hello"))
    person = Case("c", says="Hi", user=SimulatedUser(goals=["a"], model=Forgetful()))
    with pytest.raises(BadInput, match="not made of messages"):
        shrunk(person)
    assert response(asyncio.run(simulate(Case("c", says="Hello"), AGENT))) == "Fine"
