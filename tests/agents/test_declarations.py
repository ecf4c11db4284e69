"""What nodes declare to read and write, and where their outputs go."""

from dataclasses import dataclass
from typing import Any

import pytest
from pydantic import BaseModel

from greenroom import Agent, Case, Scripted, rehearse, step, tool
from greenroom.agents import Flow, compile_flow
from greenroom.errors import BadAgent, BadQuery
from greenroom.ledger import Ledger
from greenroom.ledger.events import NodeEnded
from greenroom.ledger.query import place_text


@dataclass(frozen=True)
class Reference:
    """A stand-in for a schema's field: all that is asked of one."""

    name: str
    scope: str = "session"


class Verdict(BaseModel):
    intent: str
    confidence: float


def rehearsed(flow: Flow, **options: Any) -> Ledger:
    (result,) = rehearse(flow, [Case("c", says="hi", **options)]).results
    assert result.ended == "completed", result.error
    assert result.ledger is not None
    return result.ledger


def facts(flow: Flow) -> Any:
    return compile_flow(flow).snapshot


@pytest.mark.parametrize(
    "given, text",
    [
        ("intent", "session.intent"),
        ("user.tier", "user.tier"),
        ("session.order.id", "session.order.id"),
        (Reference("tier", "user"), "user.tier"),
    ],
)
def test_a_place_is_a_key_a_scope_and_a_key_or_a_field(given: Any, text: str) -> None:
    assert place_text(given) == text


@pytest.mark.parametrize("given", ["", ".", "a.", ".a", "a..b", 7, None, Reference])
def test_what_is_no_place_is_refused(given: Any) -> None:
    with pytest.raises(BadQuery, match="not a place in the state"):
        place_text(given)


def test_one_or_several_places_are_declared_as_texts_or_fields() -> None:
    one = Agent("a", model=Scripted("x"), reads="intent", writes=Reference("tier", "user"))
    assert (one.reads, one.writes) == (("session.intent",), ("user.tier",))
    several = step(
        lambda: {"c": 1}, name="s", reads=["a", "user.b", "a"], writes=("c", Reference("d"))
    )
    assert several.reads == ("session.a", "user.b")
    assert several.writes == ("session.c", "session.d")

    @tool(reads=[Reference("a")], writes="b")
    def look() -> str:
        return "x"

    assert (look.reads, look.writes) == (("session.a",), ("session.b",))


@pytest.mark.parametrize("given", [7, [None], "a..b", [("a",)]])
def test_a_declaration_that_is_no_place_is_a_bad_agent(given: Any) -> None:
    with pytest.raises(BadAgent, match="reads= of agent 'a'"):
        Agent("a", model=Scripted("x"), reads=given)


def test_an_agent_without_a_structured_output_cannot_write_to_several_places() -> None:
    with pytest.raises(BadAgent, match="output= type"):
        Agent("a", model=Scripted("x"), writes=["b", "c"])


def test_agents_that_declare_nothing_new_have_the_snapshot_they_had() -> None:
    agent = Agent("a", model=Scripted("x"), tools=[tool(rehearsed)], writes="answer")
    assert facts(agent)["writes"] == "answer"
    assert facts(Agent("a", model=Scripted("x")))["writes"] == ""
    assert "reads" not in facts(agent)
    assert set(facts(agent)["tools"][0]) == {"name", "signature", "about", "yields"}


def test_what_is_declared_is_in_the_snapshot() -> None:
    @tool(reads="a", writes="user.b")
    def look() -> str:
        return "x"

    agent = Agent("a", model=Scripted("x"), tools=[look], reads="c", writes="user.d")
    assert facts(agent)["reads"] == ["session.c"]
    assert facts(agent)["writes"] == ["user.d"]
    assert facts(agent)["tools"][0]["reads"] == ["session.a"]
    assert facts(agent)["tools"][0]["writes"] == ["user.b"]


def test_a_structured_output_goes_to_several_places_in_one_event() -> None:
    agent = Agent(
        "classify",
        model=Scripted('{"intent": "refund", "confidence": 0.9}'),
        output=Verdict,
        writes=["intent", "user.confidence"],
    )
    ledger = rehearsed(agent)
    state = ledger.fold()
    assert state["session"] == {"intent": "refund"}
    assert state["user"] == {"confidence": 0.9}
    (ended,) = ledger.of(NodeEnded)
    assert len(ended.changes) == 2


def test_a_step_without_a_declared_part_in_its_output_fails() -> None:
    short = step(lambda: {"a": 1}, name="short", writes=["a", "b"])
    result = rehearse(short, [Case("c", says="hi")]).results[0]
    assert result.status == "error"
    assert "its output has no part 'b'" in str(result.error)


def test_a_step_may_change_its_places_itself() -> None:
    @step(writes="ticket")
    def by_hand(state: Any) -> None:
        state.session["ticket"] = "T-1"

    @step(writes=["ticket", "seen"])
    def partly(state: Any) -> dict[str, Any]:
        state.session["ticket"] += "!"
        return {"seen": True, "ticket": "not this"}

    @step(writes="ticket")
    def not_now(state: Any) -> None:
        assert state.session["seen"]

    ledger = rehearsed(by_hand >> partly >> not_now >> (lambda: "done"))
    assert ledger.fold()["session"] == {"ticket": "T-1!", "seen": True}


def test_a_place_may_lie_deep_in_a_scope() -> None:
    ledger = rehearsed(step(lambda: 7, name="s", writes="user.order.id") >> (lambda: "done"))
    assert ledger.fold()["user"] == {"order": {"id": 7}}
