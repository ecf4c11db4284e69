"""Graphs with `ainvoke` or `invoke`, played by hand-written doubles."""

from dataclasses import dataclass, field
from enum import Enum
from types import SimpleNamespace
from typing import Any

import pytest

from greenroom import Case, Turn, evaluate
from greenroom.backends import backend_for
from greenroom.backends.agentflow import GraphBackend
from greenroom.ledger import Ledger, Noted
from greenroom.ledger import questions as q
from greenroom.metrics import contains
from greenroom.results import CaseResult


def case(**options: Any) -> Case:
    given: dict[str, Any] = {"says": "hello", "metrics": [contains("done")], **options}
    return Case("one", **given)


async def played(agent: Any, one: Case | None = None) -> CaseResult:
    return (await evaluate(agent, one or case(), allow_opaque=True)).results[0]


class Mock:
    """Has every attribute and says yes to everything, as test doubles do."""

    def __init__(self, result: Any) -> None:
        self.given: list[Any] = []
        self.result = result

    async def ainvoke(self, state: Any, config: Any) -> Any:
        self.given.append((state, config))
        return self.result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: self


@dataclass
class Said:
    content: Any
    role: str = "assistant"


@pytest.mark.parametrize(
    "result",
    [
        SimpleNamespace(response="all done", messages=[]),
        SimpleNamespace(response=None, messages=["no", "all done"]),
        SimpleNamespace(messages=[Said("no"), Said([{"type": "text", "text": "all done"}])]),
        {"response": "all done"},
        {"messages": [{"role": "assistant", "content": "all done"}]},
        "all done",
        {"response": "", "messages": [Said("all done")]},
    ],
)
async def test_the_answer_is_the_response_else_the_last_message(result: Any):
    played_case = await played(Mock(result))
    assert played_case.status == "passed", played_case.error
    assert isinstance(played_case.ledger, Ledger)
    assert q.response(played_case.ledger) == "all done"


@pytest.mark.parametrize("result", [None, {}, SimpleNamespace(), {"messages": []}, 7])
async def test_a_result_without_an_answer_is_a_clear_error(result: Any):
    broken = await played(Mock(result))
    assert broken.error is not None
    assert "cannot extract response" in broken.error.message
    assert type(result).__name__ in broken.error.message


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "all done"}],
        [Said("no"), Said("all done", role="user")],
        [SimpleNamespace(type="human", content="all done")],
        [SimpleNamespace(role=Enum("Role", {"USER": "user"})("user"), content="all done")],
        [{"role": "system", "content": "all done"}],
    ],
)
async def test_what_a_graph_was_told_is_not_its_answer(messages: Any):
    broken = await played(Mock({"messages": messages}))
    assert broken.error is not None
    assert "no message of its own" in broken.error.message


@pytest.mark.parametrize("result", [" ", {"response": ""}, {"messages": [Said(" \n")]}])
async def test_a_blank_answer_is_none(result: Any):
    broken = await played(Mock(result))
    assert broken.error is not None
    assert "cannot extract response" in broken.error.message


async def test_a_recursion_limit_of_100_is_passed_on():
    graph = Mock({"response": "done"})
    await played(graph)
    (_, config) = graph.given[0]
    assert config["recursion_limit"] == 100
    lower = Mock({"response": "done"})
    await played(GraphBackend(lower, config={"recursion_limit": 5, "thread_id": "t"}))
    (_, config) = lower.given[0]
    assert (config["recursion_limit"], config["thread_id"]) == (5, "t")


@dataclass
class Counting:
    """Keeps a count in its state, and spoils what it is given."""

    states: list[Any] = field(default_factory=list)

    async def ainvoke(self, state: Any, config: Any) -> Any:
        self.states.append([message["content"] for message in state["messages"]])
        count = state.get("count", 0) + 1
        said = [*state["messages"], {"role": "assistant", "content": f"done {count}"}]
        state["messages"].clear()
        return {"messages": said, "count": count}


async def test_state_is_kept_over_turns_and_belongs_to_one_case():
    graph = Counting()
    cases = [
        Case(f"case {n}", turns=[Turn("a"), Turn("b")], metrics=[contains("done 2")])
        for n in range(4)
    ]
    report = await evaluate(graph, cases, allow_opaque=True, concurrency=4)
    assert [result.status for result in report] == ["passed"] * 4
    assert sorted(graph.states) == sorted([["a"], ["a", "done 1", "b"]] * 4)


async def test_what_a_graph_tells_its_callbacks_is_noted():
    class Telling:
        async def ainvoke(self, state: Any, config: Any) -> Any:
            for callback in config["callbacks"]:
                callback({"type": "tool", "name": "weather"})
            return {"response": "done"}

    heard: list[Any] = []
    result = await played(GraphBackend(Telling(), config={"callbacks": [heard.append]}))
    assert result.ledger is not None
    notes = [note.data for note in result.ledger.of(Noted)]
    assert notes == heard == [{"type": "tool", "name": "weather"}]


async def test_a_graph_that_blocks_is_played_too():
    class Blocking:
        def invoke(self, state: Any, config: Any) -> Any:
            return {"response": f"done: {state['messages'][-1]['content']}"}

    assert (await played(Blocking())).status == "passed"


async def test_a_state_of_the_authors_own_kind_can_be_made():
    @dataclass
    class Own:
        context: list[Any]

    class Graph:
        async def ainvoke(self, state: Own, config: Any) -> Any:
            return {"response": f"done with {state.context[-1]['content']}"}

    backend = GraphBackend(Graph(), state=lambda given: Own(given["messages"]))
    assert (await played(backend)).status == "passed"


def test_a_double_with_every_attribute_is_played_as_a_graph():
    assert isinstance(backend_for(Mock({"response": "done"})), GraphBackend)
