"""The state after each node of a LangGraph graph, as it goes along."""

from typing import Annotated, Any

import pytest
from langgraph.graph import END, START, StateGraph
from langgraph.graph.message import add_messages
from typing_extensions import TypedDict

from greenroom import Case, Turn, evaluate
from greenroom.ledger import StateChanged
from greenroom.metrics import state_is
from greenroom.results import CaseResult


class Desk(TypedDict, total=False):
    messages: Annotated[list[Any], add_messages]
    intent: str
    seen: list[int]


def first(state: Desk) -> Desk:
    return {"intent": "one"}


def left(state: Desk) -> Desk:
    return {"intent": state.get("intent", "") + "two"}


def right(state: Desk) -> Desk:
    return {"seen": [*state.get("seen", []), 1]}


def last(state: Desk) -> Desk:
    return {"messages": [{"role": "assistant", "content": "done"}], "intent": "three"}


def desk() -> Any:
    graph: Any = StateGraph(Desk)
    for node in (first, left, right, last):
        graph.add_node(node.__name__, node)
    graph.add_edge(START, "first")
    graph.add_edge("first", "left")
    graph.add_edge("first", "right")
    graph.add_edge(["left", "right"], "last")
    graph.add_edge("last", END)
    return graph.compile()


async def result_of(metric: Any, **options: Any) -> CaseResult:
    given: dict[str, Any] = {"says": "hi", **options}
    case = Case("c", metrics=[metric], allow_tools=["first", "left", "right", "last"], **given)
    return (await evaluate(desk(), [case])).results[0]


@pytest.mark.parametrize(
    "node, key, value",
    [
        ("first", "intent", "one"),
        ("left", "intent", "onetwo"),
        ("right", "seen", [1]),
        ("last", "intent", "three"),
    ],
)
async def test_the_state_after_each_node_is_known(node: str, key: str, value: Any) -> None:
    result = await result_of(state_is("session", key, value, after=node))
    assert result.status == "passed", (result.error, result.scores)


async def test_what_a_later_node_did_is_not_there_yet() -> None:
    metric = state_is("session", "seen", query={"$exists": False}, after="first")
    assert (await result_of(metric)).status == "passed"
    wrong = state_is("session", "intent", "three", after="first")
    assert (await result_of(wrong)).status == "failed"


async def test_two_turns_end_with_the_state_of_the_graph() -> None:
    turns = [Turn("hi"), Turn("again")]
    result = await result_of(state_is("session", "seen", [1, 1]), says="", turns=turns)
    assert result.status == "passed", (result.error, result.scores)
    assert result.ledger is not None
    assert len(result.ledger.of(StateChanged)) == 6
