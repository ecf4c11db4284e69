"""A failing case is made as short as it can be, and still fails."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Case, Ledger, Lines, SimulatedUser, Stop, Turn, call, simulate, tool
from greenroom.errors import BadInput
from greenroom.ledger import ModelReplied, response, responses, tool_calls
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.simulation import Allowance, Shrinking, Shrunk, shrink
from greenroom.world import Middleware


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
    assert (found.trials, found.is_minimal, found.stopped) == (3, False, "3 trials were run")
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
    with pytest.raises(BadInput, match="1 <= fails_in <= trials"):
        shrunk(fails_in=2)
    with pytest.raises(BadInput, match="should be 0 or more"):
        Allowance(model_calls=-1)
    assert response(asyncio.run(simulate(Case("c", says="Hello"), AGENT))) == "Fine"


# What is left is minimal, whatever it takes to fail


TOOLS = ("one", "two", "three")


class Picky:
    """A model that calls a tool for each message that names one, and notes what it was told."""

    name = "picky"

    def __init__(self) -> None:
        self.asked = 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        last = request.messages[-1]
        if last.role == "user" and last.text in TOOLS:
            return ModelReply(calls=(call(last.text),), cost=0.01)
        said = [m.text for m in request.messages if m.role in ("user", "tool")]
        return ModelReply(f"heard {sorted(set(said))}", cost=0.01)


def picky() -> tuple[Agent, Picky]:
    def body() -> str:
        """Do it."""
        raise AssertionError("a rehearsal runs no tool")

    model = Picky()
    tools = [tool(name=name)(body) for name in TOOLS]
    return Agent("picky", model=model, tools=tools), model


def fails_with(needed: frozenset[str]) -> Any:
    def fails(ledger: Ledger) -> bool:
        heard = {m for call in tool_calls(ledger) for m in [f"{call.tool} mocked"] if call.result}
        said = {m.text for m in _messages(ledger)}
        return needed <= heard | said

    return fails


def _messages(ledger: Ledger) -> Sequence[Any]:
    from greenroom.ledger import messages

    return messages(ledger)


@given(
    said=st.lists(st.sampled_from(["a", "b", "c", "d", *TOOLS]), min_size=1, max_size=9),
    data=st.data(),
)
def test_removing_any_one_message_or_mock_makes_it_pass(said: list[str], data: Any) -> None:
    possible = sorted({*said, *(f"{word} mocked" for word in said if word in TOOLS)})
    needed = frozenset(data.draw(st.lists(st.sampled_from(possible), min_size=1, max_size=4)))
    agent, _ = picky()
    mocks: dict[str, Any] = dict.fromkeys(TOOLS, "ok")
    case = Case("c", turns=[Turn(word) for word in said], mocks=mocks, stop=Stop(max_turns=20))
    fails = fails_with(needed)
    found = asyncio.run(shrink(case, agent, fails))
    assert found.is_minimal
    assert fails(asyncio.run(simulate(found.case, agent)))
    turns = list(found.case.turns)
    for place in range(len(turns) if len(turns) > 1 else 0):
        fewer = replace(found.case, turns=[*turns[:place], *turns[place + 1 :]])
        assert not _still_fails(fewer, agent, fails)
    for name in found.case.mocks:
        rest = {tool: mock for tool, mock in found.case.mocks.items() if tool != name}
        assert not _still_fails(replace(found.case, mocks=rest), agent, fails)


def _still_fails(case: Case, agent: Agent, fails: Any) -> bool:
    ledger = asyncio.run(simulate(case, agent))
    end = ledger.last
    return getattr(end, "reason", "error") != "error" and fails(ledger)


# What was answered before is not asked again


def test_a_recorded_trial_is_not_asked_again() -> None:
    agent, model = picky()
    case = Case("c", turns=[Turn("one")], mocks={"one": "ok"})
    ledger = asyncio.run(simulate(case, agent))
    asked = model.asked
    found = asyncio.run(shrink(case, agent, fails_with(frozenset({"one"})), ledger=ledger))
    assert found.is_minimal
    assert (model.asked - asked, found.model_calls, found.cost) == (0, 0, 0.0)
    live = asyncio.run(shrink(case, agent, fails_with(frozenset({"one"}))))
    assert live.model_calls == model.asked - asked == 2


def test_the_same_question_is_asked_once_in_the_whole_search() -> None:
    agent, model = picky()
    case = Case("c", turns=[Turn(word) for word in "abcdefgh"])
    found = asyncio.run(shrink(case, agent, fails_with(frozenset({"a"}))))
    assert [turn.says for turn in found.case.turns] == ["a"]
    assert found.model_calls == model.asked
    assert model.asked < found.trials * 4


def test_models_are_asked_as_often_as_is_allowed_and_not_once_more() -> None:
    agent, model = picky()
    case = Case("c", turns=[Turn(word) for word in "abcdefgh"])
    ledger = asyncio.run(simulate(case, agent))
    model.asked = 0
    fails = fails_with(frozenset({"b", "g"}))
    allowed = Allowance(model_calls=5)
    found = asyncio.run(shrink(case, agent, fails, ledger=ledger, allowance=allowed))
    assert (model.asked, found.model_calls, found.is_minimal) == (5, 5, False)
    assert found.stopped == "models were asked 5 times, and may be asked 5 times"
    assert fails(asyncio.run(simulate(found.case, agent)))
    money = Allowance(usd=0.035)
    found = asyncio.run(shrink(case, agent, fails, ledger=ledger, allowance=money))
    assert (found.model_calls, found.is_minimal) == (4, False)
    # What the recording answers is found without asking: the end of the conversation can go.
    none = Allowance(model_calls=0)
    found = asyncio.run(shrink(case, agent, fails, ledger=ledger, allowance=none))
    assert found.model_calls == 0
    assert [turn.says for turn in found.case.turns] == [*"abcdefg"]


def test_a_price_that_is_unknown_keeps_no_budget() -> None:
    case = Case("c", turns=[Turn("I am Ada"), Turn("Look it up"), Turn("Who am I?")])
    case = replace(case, mocks={"look": "found"})
    ledger = asyncio.run(simulate(case, AGENT))
    found = asyncio.run(shrink(case, AGENT, forgot, ledger=ledger, allowance=Allowance(usd=1.0)))
    assert found.stopped == "the price of forgetful is unknown, so no amount can be kept"


def test_a_flaky_failure_must_fail_in_k_of_n() -> None:
    class Flaky:
        """Fails in three of four trials if it is told to, in one of four if not."""

        name = "flaky"

        def __init__(self) -> None:
            self.trial = 0

        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            said = [m.text for m in request.messages if m.role == "user"]
            self.trial += 1
            share = 3 if "fail" in said else 1
            return ModelReply("Nobody" if self.trial % 4 < share else "Ada")

    case = Case("c", turns=[Turn("hello"), Turn("fail")])
    agent = Agent("clerk", model=Flaky())
    found = asyncio.run(shrink(case, agent, forgot, fails_in=2, trials=4))
    assert [turn.says for turn in found.case.turns] == ["fail"]


def test_the_messages_of_a_simulated_user_are_taken_from_the_ledger() -> None:
    class Person:
        name = "person"

        async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
            n = sum(message.role == "assistant" for message in request.messages)
            lines = ["I am Ada", "Look it up", "Who am I?", "<bye>"]
            return ModelReply(lines[min(n - 1, 3)])  # its first words are those of the case

    user = SimulatedUser(goals=["be known"], model=Person(), stop_signal="<bye>")
    case = replace(CASE, user=user)
    ledger = asyncio.run(simulate(case, AGENT))
    assert forgot(ledger), responses(ledger)
    found = asyncio.run(shrink(case, AGENT, forgot, ledger=ledger))
    assert [turn.says for turn in found.case.turns] == ["I am Ada", "Look it up", "Who am I?"]


def test_real_tools_run_where_they_are_named_and_once_for_the_same_arguments() -> None:
    ran: list[str] = []

    @tool
    def look() -> str:
        """Look it up."""
        ran.append("look")
        return "found"

    agent = Agent("clerk", model=Forgetful(), tools=[look])
    case = replace(CASE, mocks={})
    ledger = asyncio.run(simulate(case, agent, allow_tools=["look"]))
    assert ran == ["look"]
    found = asyncio.run(shrink(case, agent, forgot, ledger=ledger, allow_tools=["look"]))
    assert (ran, found.is_minimal, dict(found.case.mocks)) == (["look"], True, {})
    # Without their names, what they answered stands in for them.
    found = asyncio.run(shrink(case, agent, forgot, ledger=ledger))
    assert (ran, list(found.case.mocks)) == (["look"], ["look"])


def test_progress_and_middleware_are_heard() -> None:
    steps: list[Shrinking] = []

    class Heard(Middleware):
        events = 0

        async def on_event(self, event: Any) -> None:
            Heard.events += isinstance(event, ModelReplied)

    found = shrunk(on_step=steps.append, middleware=[Heard()])
    assert [step.turns for step in steps] == sorted((s.turns for s in steps), reverse=True)
    assert (steps[-1].turns, steps[-1].mocks) == (3, 1)
    assert steps[-1].trials <= found.trials
    assert Heard.events > 0
