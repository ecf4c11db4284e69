"""What a model was asked is in the ledger, by reference, and can be read as it was put."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom import Agent, Case, Ledger, Lines, Scripted, loop, rehearse, simulate, tool
from greenroom.agents import history, map_over
from greenroom.ledger import (
    Message,
    ModelCalled,
    ToolCall,
    call,
    model_interactions,
    tool_interactions,
)
from greenroom.ledger.interactions import model_inputs
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world.captures import captured
from greenroom.world.live import LiveWorld


class Listening:
    """A model that keeps every request it gets, to be compared with what the ledger says."""

    name = "listening"

    def __init__(self, *replies: Any) -> None:
        self.heard: list[ModelRequest] = []
        self._replies = replies

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.heard.append(request)
        reply = self._replies[request.n % len(self._replies)]
        return ModelReply(calls=(reply,)) if isinstance(reply, ToolCall) else ModelReply(reply)


@tool
def order_of(customer: str) -> dict[str, int]:
    """The open order of a customer."""
    raise AssertionError("a rehearsal runs no tool")


MOCKS = {"order_of": {"order": 7}}


def clerk(*replies: Any, **more: Any) -> tuple[Agent, Listening]:
    model = Listening(*replies)
    return Agent("clerk", model=model, instructions="Be kind.", tools=[order_of], **more), model


def played(case: Case, agent: Any, **more: Any) -> Ledger:
    return asyncio.run(simulate(case, agent, **more))


def assert_as_heard(ledger: Ledger, model: Listening) -> None:
    """The ledger, read from its bytes too, says word for word what the model was asked."""
    for one in (ledger, Ledger.loads(ledger.dumps())):
        found = [i.request for i in model_interactions(one)]
        assert len(found) == len(model.heard)
        for request, heard in zip(found, model.heard, strict=True):
            assert request is not None
            assert request.messages == heard.messages
            assert request.instructions == heard.instructions
            assert [t.name for t in request.tools] == [t.name for t in heard.tools]


def test_a_ledger_says_what_the_model_was_asked_and_what_it_answered() -> None:
    agent, model = clerk(call("order_of", customer="Ada"), "Order 7.")
    ledger = played(Case("c", says="Where is it?", mocks=MOCKS), agent)
    assert_as_heard(ledger, model)
    first, second = model_interactions(ledger)
    assert (first.agent, first.model, first.turn, first.source) == ("clerk", "listening", 1, "live")
    assert [c.tool for c in first.calls] == ["order_of"]
    assert second.reply == "Order 7."
    assert second.request is not None
    assert [m.role for m in second.request.messages] == ["user", "assistant", "tool"]
    assert second.request.messages[2].text == '{"order": 7}'
    offered = second.request.tools[0]
    assert (offered.name, offered.description) == ("order_of", "The open order of a customer.")
    assert offered.takes == "(customer: str) -> dict[str, int]"
    found = tool_interactions(ledger)
    assert [(t.tool, t.args, t.result, t.source) for t in found] == [
        ("order_of", {"customer": "Ada"}, {"order": 7}, "mock")
    ]
    assert found[0].call_id == first.calls[0].id


@pytest.mark.parametrize("context", [(), (history(last=1),)])
def test_every_question_of_a_long_conversation_is_read_as_it_was_put(context: Any) -> None:
    more = {"context": context} if context else {}
    agent, model = clerk(call("order_of", customer="Ada"), "Order 7.", **more)
    user = Lines(*[f"Once more, {n}" for n in range(6)])
    ledger = played(Case("c", says="Hello", user=user, mocks=MOCKS), agent)
    assert len(model.heard) == 14
    assert_as_heard(ledger, model)


def test_instructions_that_change_with_the_state_are_those_of_each_question() -> None:
    model = Listening("Yes.", "Yes.")
    agent = Agent("clerk", model=model, instructions="Serve {name}.", reads="name", writes="name")
    case = Case("c", says="Hello", user=Lines("Again"), state={"session": {"name": "Ada"}})
    ledger = played(case, agent)
    assert [r.instructions for r in model.heard] == ["Serve Ada.", "Serve Yes.."]
    assert_as_heard(ledger, model)


def test_branches_refer_to_their_own_questions_only() -> None:
    agent, model = clerk("Done.", "Again.")
    flow = loop(map_over(agent), until=lambda state: False, max_rounds=2)
    ledger = played(Case("c", says='["a", "b", "c"]'), flow)
    del model
    assert all(i.request is not None for i in model_interactions(ledger))


def test_a_ledger_grows_with_the_words_said_and_not_with_their_square() -> None:
    def size(turns: int) -> int:
        agent = Agent("clerk", model=Scripted(*["x" * 500] * turns), instructions="y" * 500)
        user = Lines(*["z" * 500] * (turns - 1))
        return len(played(Case("c", says="z" * 500, user=user), agent).dumps())

    assert size(41) - size(21) < 1.2 * (size(21) - size(1))


def test_what_was_asked_is_left_out_where_that_is_wished() -> None:
    agent, _ = clerk("Order 7.")
    case = Case("c", says="Where is it?")
    assert "Be kind." in str(played(case, agent).of(ModelCalled))
    without = played(case, agent, omit_questions=True)
    assert "Be kind." not in str(without.of(ModelCalled))
    assert [i.request for i in model_interactions(without)] == [None]
    assert model_interactions(without)[0].reply == "Order 7."
    report = rehearse(agent, [case], omit_questions=True)
    assert report.results[0].ledger is not None
    assert report.results[0].ledger.of(ModelCalled)[0].question is None


def test_a_secret_in_a_question_is_redacted_with_the_rest() -> None:
    secret = "sk-proj-" + "a1B2c3D4e5F6g7H8" * 3
    agent = Agent("clerk", model=Scripted("Hm."), instructions=f"Use the key {secret}.")
    ledger = played(Case("c", says=f"my key is {secret}"), agent)
    assert secret in ledger.dumps()
    clean = ledger.redacted()
    assert secret not in clean.dumps()
    request = model_interactions(clean)[0].request
    assert request is not None
    assert "[redacted:" in request.instructions
    assert "[redacted:" in request.messages[0].text


def test_a_question_that_a_function_asks_in_its_own_words_can_be_read_again() -> None:
    def desk(message: str, ctx: Any) -> str:
        said = [{"role": "developer", "content": "be brief"}, {"role": "user", "content": message}]
        return ctx.ask(Scripted("Hello."), said).text

    ledger = Ledger.loads(played(Case("c", says="Hi"), desk).dumps())
    (asked,) = model_interactions(ledger)
    assert asked.request is not None
    assert [m.text for m in asked.request.messages] == ["developer: be brief", "Hi"]


def test_an_older_ledger_is_read_and_says_nothing_of_the_question() -> None:
    agent, _ = clerk("Order 7.")
    lines = played(Case("c", says="Hi"), agent).dumps().splitlines()
    older = [json.loads(line) for line in lines]
    for event in older:
        event.pop("question", None)
    ledger = Ledger.loads("\n".join(map(json.dumps, older)))
    assert [i.request for i in model_interactions(ledger)] == [None]


def test_a_lost_reference_is_said_and_not_made_up() -> None:
    agent, _ = clerk("Order 7.")
    ledger = played(Case("c", says="Hi"), agent)
    part = [event for event in ledger if isinstance(event, ModelCalled)]
    ((_, request),) = model_inputs(part)
    assert request is not None
    assert request.messages[0].text == "[said:0 is not in this ledger]"


MESSAGES = st.lists(
    st.builds(Message, st.sampled_from(["user", "assistant"]), st.sampled_from("abcd")), max_size=8
)


@given(st.lists(st.tuples(MESSAGES, st.sampled_from(["", "i"])), min_size=1, max_size=6))
def test_any_row_of_questions_is_read_as_it_was_put(rows: list[tuple[list[Message], str]]) -> None:
    ledger = Ledger()
    world = LiveWorld(ledger)
    for n, (messages, instructions) in enumerate(rows):
        request = ModelRequest("a", tuple(messages), instructions, path="@1/a", node="a", n=n)
        question = captured(world, request)
        world.record(ModelCalled(path="@1/a", node="a", agent="a", n=n, question=question))
    again = Ledger.loads(ledger.dumps())
    found = [(w.messages, w.instructions) for _, w in model_inputs(again) if w is not None]
    assert found == [(tuple(m), i) for m, i in rows]
    # A run that is continued from its bytes refers to the same questions.
    request = ModelRequest("a", (), path="@1/a", node="a", n=len(rows))
    assert captured(LiveWorld(again), request) == captured(world, request)
