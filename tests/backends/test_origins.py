"""An agent that breaks is told where, whoever plays it."""

import re
from typing import Any

import pytest

from greenroom import Case, rehearse, step


def breaks(*_: Any) -> str:
    return {"order": 7}["oder"]  # pyright: ignore[reportReturnType]


def a_step() -> Any:
    def desk() -> str:
        return breaks()

    return step(desk)


def a_function() -> Any:
    def desk(messages: list[Any]) -> str:
        return breaks(messages)

    return desk


def a_langgraph() -> Any:
    graph = pytest.importorskip("langgraph.graph")
    builder = graph.StateGraph(graph.MessagesState)
    builder.add_node("desk", breaks)
    builder.add_edge(graph.START, "desk")
    return builder.compile()


def a_pydantic_ai() -> Any:
    agents = pytest.importorskip("pydantic_ai")
    functions = pytest.importorskip("pydantic_ai.models.function")
    return agents.Agent(functions.FunctionModel(lambda messages, info: breaks()))


@pytest.mark.parametrize("made", [a_step, a_function, a_langgraph, a_pydantic_ai])
def test_the_line_that_broke_is_named(made: Any) -> None:
    [result] = rehearse(made(), Case("a", says="Hi"), store=False).results
    assert result.status == "error"
    assert result.error is not None
    line = breaks.__code__.co_firstlineno + 1
    assert re.search(rf"KeyError: 'oder' \(\S*test_origins\.py:{line}\)", result.error.message)
