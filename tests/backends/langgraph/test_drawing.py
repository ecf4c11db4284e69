"""A graph of LangGraph is drawn with the nodes that a trial visited."""

from typing import Any

from langchain_core.messages import AIMessage
from langgraph.graph import MessagesState, StateGraph

from greenroom import Case, simulate
from greenroom.agents.mermaid import mermaid
from greenroom.backends.registry import backend_for


async def test_the_nodes_of_a_trial_are_drawn_though_the_snapshot_draws_none():
    async def first(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("one")]}

    async def second(state: MessagesState) -> dict[str, Any]:
        return {"messages": [AIMessage("two")]}

    building: Any = StateGraph(MessagesState)
    building.add_node("first", first)
    building.add_node("second", second)
    building.set_entry_point("first")
    building.add_edge("first", "second")
    graph = building.compile(name="desk")
    snapshot = backend_for(graph).snapshot
    assert mermaid(snapshot) == (
        'flowchart TD\n    n0(["start"])\n    n1["desk"]\n    n2(["end"])\n'
        "    n0 --> n1\n    n1 --> n2\n"
    )
    chart = mermaid(snapshot, trial=await simulate(Case("one", says="Hi"), graph))
    assert "n0 ==> n1" in chart
    assert '"first<br/>1 visit' in chart
    assert '"second<br/>1 visit' in chart
