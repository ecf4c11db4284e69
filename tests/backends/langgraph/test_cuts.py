"""A graph of plain nodes that is cut anywhere: it goes on to the same end, or its ledger is refused."""

import operator
from typing import Annotated, Any

from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command

from greenroom import Case, simulate
from greenroom.ledger import Ledger, ended, state, trajectory


class Notes(MessagesState):
    notes: Annotated[list[str], operator.add]


def graph() -> Any:
    def noting(name: str, **update: Any) -> Any:
        return lambda _state: {"notes": [name], **update}

    def choose(state: Notes) -> Command[Any]:
        return Command(goto="end", update={"notes": ["choose"]})

    built = StateGraph(Notes)
    built.add_node("left", noting("left"))
    built.add_node("right", noting("right"))
    built.add_node("choose", choose, destinations=("end",))
    built.add_node("end", noting("end", messages=[("ai", "done")]))
    built.add_edge(START, "left")
    built.add_edge(START, "right")
    built.add_edge(["left", "right"], "choose")
    return built.compile(name="flow")


def told(ledger: Ledger) -> Any:
    return state(ledger), [(step.type, step.name, step.args) for step in trajectory(ledger)]


async def test_nothing_is_told_or_added_twice() -> None:
    case = Case("one", says="Go")
    whole = await simulate(case, graph())
    assert state(whole) == {"session": {"notes": ["left", "right", "choose", "end"]}}
    reasons: list[str] = []
    for cut in range(1, len(whole)):
        ledger = await simulate(case, graph(), ledger=Ledger(whole[:cut]))
        end = ended(ledger)
        assert end is not None
        reasons.append(end.error_type)
        assert end.error_type == "BadLedger" or told(ledger) == told(whole), cut
    assert {"", "BadLedger"} == set(reasons)
