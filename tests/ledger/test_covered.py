"""What runs have exercised of an agent is read from their ledgers."""

import asyncio
from typing import Annotated, Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Lines,
    Scripted,
    SimulatedUser,
    call,
    fault,
    route,
    simulate,
    tool,
)
from greenroom.agents import resource
from greenroom.errors import BadInput
from greenroom.ledger import RunEnded, RunStarted, ToolCall, coverage
from greenroom.world import Context


@tool
def look(
    order: int, ctx: Context, db: Annotated[dict[str, Any], resource], deep: bool = False
) -> str:
    """Look an order up."""
    raise AssertionError("mocked")


@tool
def refund(order: int) -> str:
    """Pay an order back."""
    raise AssertionError("mocked")


looks = Agent("looks", model=Scripted(call("look", order=7), "Paid."), tools=[look])
pays = Agent("pays", model=Scripted("No."), tools=[refund])


def way(input: str) -> str:
    return "pay" if "back" in input else "see"


DESK = route(way, see=looks, pay=pays)


def run(mock: Any = "paid", says: str = "Order 7?", **options: Any) -> Ledger:
    return asyncio.run(simulate(Case("c", says=says, mocks={"look": mock}, **options), DESK))


def test_what_no_run_came_to_is_named() -> None:
    found = coverage([run(), run()])
    assert found.trials == 2
    assert found.nodes == {"route.see/looks": 2, "route.pay/pays": 0}
    assert found.tools == {"look": 2, "refund": 0}
    assert found.arguments == {"look.order": 2, "look.deep": 0}
    assert found.untried("failures") == ["look"]
    assert "nodes      1 of 2   never visited: route.pay/pays" in str(found).splitlines()


def test_more_runs_cover_more() -> None:
    person = SimulatedUser("A man in a hurry.", model=Scripted("</finished>"))
    found = coverage(
        [run(fault("closed"), user=person), run(says="Money back!", user=Lines("?", then=person))]
    )
    assert found.untried("nodes") == found.untried("failures") == []
    assert found.untried("tools") == ["refund"]
    assert found.untried("arguments") == ["look.deep", "refund.order"]
    assert found.personas == {"A man in a hurry.": 2}
    assert found.data()["trials"] == 2


@pytest.mark.parametrize(
    "made", [call("find", order=7), call("look", order="x"), call("look", of=7)]
)
def test_a_call_that_never_came_to_a_tool_exercises_nothing(made: ToolCall) -> None:
    agent = Agent("looks", model=Scripted(made, "Paid."), tools=[look])
    found = coverage([asyncio.run(simulate(Case("c", says="?", mocks={"look": "paid"}), agent))])
    assert found.tools == {"look": 0}
    assert found.arguments == {"look.order": 0, "look.deep": 0}
    assert found.failures == {}


def test_snapshots_of_other_frameworks_are_read_too() -> None:
    schema = {"properties": {"x": {}}}
    graphs: list[Any] = [
        {"name": "g", "nodes": {"__start__": "s", "a": "f"}, "tools": [{"name": "t"}]},
        {
            "name": "s",
            "sub_agents": [{"name": "a", "tools": [[{"name": "t", "parameters": schema}]]}],
        },
        {"name": "s", "agents": [{"name": "a", "tools": [{"name": "t"}], "handoffs": []}]},
    ]
    for graph in graphs:
        found = coverage([[RunStarted(run_id="r", agent=graph)]])
        assert (found.nodes, found.tools) == ({"a": 0}, {"t": 0})
    assert coverage([[RunStarted(run_id="r")], []]).trials == 2


@pytest.mark.parametrize(
    "given", [5, "ledger.jsonl", [None], Ledger([RunEnded(reason="completed")])]
)
def test_what_is_no_list_of_ledgers_is_refused(given: Any) -> None:
    with pytest.raises(BadInput, match="needs ledgers, but got"):
        coverage(given)
