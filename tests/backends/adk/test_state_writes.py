"""Real tools of one reply that write one key: in the order of the calls, and conflicts written down."""

import asyncio
from typing import Any

import pytest
from google.adk.tools import ToolContext

from backends.adk.scripts import agent, case, ledger_of, result_of
from greenroom.ledger import StateConflicted
from greenroom.ledger import questions as q


async def add(amount: int, tool_context: ToolContext) -> str:
    """Add to the total, which takes a while; the first to be called takes longest."""
    total = tool_context.state.get("total", 0)
    await asyncio.sleep(0.03 / amount)
    tool_context.state["total"] = total + amount
    return "added"


def add_at_once(amount: int, tool_context: ToolContext) -> str:
    """Add to the total."""
    tool_context.state["total"] = tool_context.state.get("total", 0) + amount
    return "added"


async def name(value: str, tool_context: ToolContext) -> str:
    """Put a name, whatever stood there; the later call is done first."""
    await asyncio.sleep(0.03 if value == "first" else 0)
    tool_context.state["user:name"] = value
    return "named"


def put(key: str, tool_context: ToolContext) -> str:
    """Put something into the cart."""
    tool_context.state["cart"] = {**tool_context.state.get("cart", {}), key: 1}
    return "put"


async def put_unseen(key: str, tool_context: ToolContext) -> str:
    """Put something into the cart, next to whatever else is put there."""
    await asyncio.sleep(0)
    tool_context.state["cart"] = {key: 1}
    return "put"


Calls = list[tuple[str, dict[str, Any]]]


def calls(tool: Any, key: str, *values: Any) -> Calls:
    return [(tool.__name__, {key: value}) for value in values]


async def played(tool: Any, *rounds: Calls) -> Any:
    clerk = agent("clerk", *rounds, "done", tools=[tool])
    result = await result_of(clerk, case(allow_tools=[tool.__name__]))
    assert result.status == "passed", result.error
    return ledger_of(result)


async def test_an_update_that_is_lost_is_written_down_and_the_later_call_wins():
    ledger = await played(add, calls(add, "amount", 1, 2))
    assert q.state(ledger)["session"]["total"] == 2
    [met] = ledger.of(StateConflicted)
    assert (met.scope, met.key, met.values) == ("session", "total", [1, 2])


async def test_calls_that_write_without_a_look_are_applied_in_their_order():
    ledger = await played(name, calls(name, "value", "first", "second"))
    assert q.state(ledger)["user"]["name"] == "second"
    [met] = ledger.of(StateConflicted)
    assert (met.scope, met.key, met.values) == ("user", "name", ["first", "second"])


async def test_a_call_that_saw_what_the_one_before_it_did_loses_nothing():
    ledger = await played(add_at_once, calls(add_at_once, "amount", 1, 2, 3))
    assert q.state(ledger)["session"]["total"] == 6
    assert ledger.of(StateConflicted) == []


@pytest.mark.parametrize("tool", [put, put_unseen])
async def test_what_the_framework_merges_is_no_conflict(tool: Any):
    ledger = await played(tool, calls(tool, "key", "milk", "salt"))
    assert q.state(ledger)["session"]["cart"] == {"milk": 1, "salt": 1}
    assert ledger.of(StateConflicted) == []


async def test_the_same_words_twice_are_no_conflict():
    ledger = await played(name, calls(name, "value", "same", "same"))
    assert ledger.of(StateConflicted) == []


async def test_calls_of_different_replies_do_not_meet():
    ledger = await played(name, calls(name, "value", "a"), calls(name, "value", "b"))
    assert q.state(ledger)["user"]["name"] == "b"
    assert ledger.of(StateConflicted) == []


async def test_each_round_that_loses_an_update_says_so():
    ledger = await played(add, calls(add, "amount", 1, 2), calls(add, "amount", 3, 4))
    assert [met.values for met in ledger.of(StateConflicted)] == [[1, 2], [5, 6]]


async def test_a_mock_and_a_real_tool_meet_too():
    def mocked(key: str, ctx: Any) -> str:
        ctx.state["user"]["name"] = key
        return "put"

    asked = [*calls(put, "key", "mocked"), *calls(name, "value", "second")]
    clerk = agent("clerk", asked, "done", tools=[put, name])
    result = await result_of(clerk, case(mocks={"put": mocked}, allow_tools=["name"]))
    assert result.status == "passed", result.error
    assert q.state(ledger_of(result))["user"]["name"] == "second"
    [met] = ledger_of(result).of(StateConflicted)
    assert met.values == ["mocked", "second"]
