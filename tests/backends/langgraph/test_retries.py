"""A node with a retry policy: every attempt is in the ledger, as in our own language."""

from typing import Any

import pytest
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import RetryPolicy

from greenroom import Case, simulate
from greenroom.ledger import Ledger, response
from greenroom.ledger.events import NodeEnded, NodeFailed, NodeStarted
from greenroom.metrics import node_sequence
from greenroom.suite import score


def graph_failing(times: int, *, blocking: bool) -> Any:
    tried: list[int] = []

    def work(state: MessagesState) -> dict[str, Any]:
        tried.append(len(tried) + 1)
        if len(tried) <= times:
            raise ConnectionError(f"attempt {len(tried)}")
        return {"messages": [("ai", "done")]}

    async def work_async(state: MessagesState) -> dict[str, Any]:
        return work(state)

    policy = RetryPolicy(initial_interval=0, max_attempts=3, jitter=False)
    graph = StateGraph(MessagesState)
    graph.add_node("work", work if blocking else work_async, retry_policy=policy)
    graph.add_edge(START, "work")
    return graph.compile()


async def played(times: int, *, blocking: bool) -> Ledger:
    return await simulate(Case("one", says="Go"), graph_failing(times, blocking=blocking))


@pytest.mark.parametrize("blocking", [True, False])
async def test_each_failed_attempt_is_told_and_the_last_one_ends(blocking: bool) -> None:
    ledger = await played(2, blocking=blocking)
    paths = ["@1/work", "@1/work~2", "@1/work~3"]
    assert [event.path for event in ledger.of(NodeStarted)] == paths
    failed = [(event.path, event.attempt, event.error) for event in ledger.of(NodeFailed)]
    assert failed == [("@1/work", 1, "attempt 1"), ("@1/work~2", 2, "attempt 2")]
    assert [event.path for event in ledger.of(NodeEnded)] == paths[-1:]
    assert response(ledger) == "done"
    (found,) = (await score(ledger, [node_sequence(["work"])])).values()
    assert found.passed, found


@pytest.mark.parametrize("blocking", [True, False])
async def test_a_node_that_is_given_up_has_failed_as_often_as_it_was_tried(blocking: bool) -> None:
    ledger = await played(9, blocking=blocking)
    assert [event.attempt for event in ledger.of(NodeFailed)] == [1, 2, 3]
    assert len(ledger.of(NodeStarted)) == 3
    assert not ledger.of(NodeEnded)
