"""Calls made at once that change one place of the state, and what state outlasts its turn."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    Stop,
    Turn,
    call,
    simulate,
    step,
    tool,
    with_state_change,
)
from greenroom.ledger import (
    StateConflicted,
    ToolReturned,
    append,
    delete,
    ended,
    replace,
    state,
    state_changes,
)


@tool
def put(key: str, turns: int = 0) -> str:
    """Put something away."""
    raise AssertionError("a tool body ran in a rehearsal")


def clerk(*calls: Any, then: str = "done") -> Agent:
    return Agent("clerk", model=Scripted(list(calls), then), tools=[put])


async def rehearsed(
    agent: Any, mock: Any, held: Any = None, ledger: Ledger | None = None
) -> Ledger:
    case = Case("c", says="go", mocks={"put": mock}, state={"session": held or {}})
    return await simulate(case, agent, ledger=ledger)


async def waits(turns: int) -> None:
    for _ in range(turns):
        await asyncio.sleep(0)


async def added(key: str, turns: int, ctx: Any) -> str:
    items = [*ctx.state.session.get("items", []), key]
    await waits(turns)
    ctx.state.session["items"] = items
    return key


async def counted(key: str, turns: int, ctx: Any) -> str:
    n = ctx.state.session.get("n", 0)
    await waits(turns)
    ctx.state.session["n"] = n + 1
    return key


async def chosen(key: str, turns: int, ctx: Any) -> str:
    await waits(turns)
    ctx.state.session["last"] = key
    return key


def conflicts(ledger: Ledger) -> list[tuple[str, Any]]:
    return [(f"{e.scope}.{e.key}", e.values) for e in ledger.of(StateConflicted)]


SLOW_FIRST = (call("put", key="a", turns=9), call("put", key="b", turns=1))
FAST_FIRST = (call("put", key="a", turns=1), call("put", key="b", turns=9))


@pytest.mark.parametrize("calls", [SLOW_FIRST, FAST_FIRST])
async def test_the_last_call_of_a_reply_wins_whichever_ends_first(calls: Any) -> None:
    ledger = await rehearsed(clerk(*calls), chosen)
    assert state(ledger)["session"] == {"last": "b"}
    assert conflicts(ledger) == [("session.last", ["a", "b"])]


@pytest.mark.parametrize("calls", [SLOW_FIRST, FAST_FIRST])
async def test_an_update_that_is_lost_between_calls_is_written_down(calls: Any) -> None:
    ledger = await rehearsed(clerk(*calls), added)
    assert state(ledger)["session"] == {"items": ["b"]}
    assert conflicts(ledger) == [("session.items", [["a"], ["b"]])]
    assert conflicts(await rehearsed(clerk(*calls), counted)) == [("session.n", [1, 1])]


async def test_calls_that_change_the_state_one_after_the_other_lose_nothing() -> None:
    def sync(key: str, turns: int, ctx: Any) -> str:
        ctx.state.session["items"] = [*ctx.state.session.get("items", []), key]
        return key

    ledger = await rehearsed(clerk(*SLOW_FIRST), sync)
    assert state(ledger)["session"] == {"items": ["a", "b"]}
    assert conflicts(ledger) == []


async def test_answers_that_set_one_key_differently_in_one_reply_are_a_conflict() -> None:
    def answer(key: str, turns: int = 0) -> Any:
        return with_state_change(key, {"session": {"order": {"last": key, key: True}}})

    ledger = await rehearsed(clerk(*SLOW_FIRST), answer)
    assert state(ledger)["session"] == {"order": {"last": "b", "a": True, "b": True}}
    assert conflicts(ledger) == [("session.order.last", ["a", "b"])]


async def test_lists_are_appended_to_in_the_order_of_the_calls() -> None:
    async def answer(key: str, turns: int = 0) -> Any:
        await waits(turns)
        return with_state_change(key, {"session": {"items": append(key)}})

    calls = [call("put", key=str(n), turns=9 - 2 * n) for n in range(4)]
    ledger = await rehearsed(clerk(*calls), answer, {"items": ["first"]})
    assert state(ledger)["session"] == {"items": ["first", "0", "1", "2", "3"]}
    assert [e.call_id for e in ledger.of(ToolReturned)] != [
        c.call_id for c in ledger.index_of().issued
    ]
    assert conflicts(ledger) == []


async def test_true_and_one_are_two_words() -> None:
    async def answer(key: str, turns: int, ctx: Any) -> str:
        await waits(turns)
        ctx.state.session["paid"] = True if key == "a" else 1
        return key

    ledger = await rehearsed(clerk(*SLOW_FIRST), answer)
    assert conflicts(ledger) == [("session.paid", [True, 1])]


async def test_the_same_word_from_two_calls_is_no_conflict() -> None:
    async def answer(key: str, turns: int, ctx: Any) -> str:
        await waits(turns)
        ctx.state.session["status"] = "done"
        return key

    ledger = await rehearsed(clerk(*SLOW_FIRST), answer)
    assert conflicts(ledger) == []


async def test_calls_of_two_replies_are_no_conflict() -> None:
    model = Scripted(call("put", key="a", turns=1), call("put", key="b", turns=1), "done")
    ledger = await rehearsed(Agent("clerk", model=model, tools=[put]), chosen)
    assert state(ledger)["session"] == {"last": "b"}
    assert conflicts(ledger) == []


THREE = tuple(call("put", key=key, turns=n) for key, n in (("a", 9), ("b", 5), ("c", 1)))


@pytest.mark.parametrize("mock", [added, counted, chosen])
async def test_a_run_cut_between_calls_that_meet_comes_to_the_same_state(mock: Any) -> None:
    whole = await rehearsed(clerk(*THREE), mock)
    lines = whole.dumps().splitlines(keepends=True)
    for k in range(len(lines)):
        again = await rehearsed(clerk(*THREE), mock, ledger=Ledger.loads("".join(lines[:k])))
        assert state(again) == state(whole), k
        assert len(conflicts(again)) == len(conflicts(whole)), k


@pytest.mark.parametrize("held", ["a text", 7, {"a": 1}, True])
async def test_appending_to_what_is_no_list_is_refused_and_loses_nothing(held: Any) -> None:
    def answer(key: str, turns: int = 0) -> Any:
        return with_state_change(key, {"session": {"notes": append("b")}})

    ledger = await rehearsed(clerk(call("put", key="a")), answer, {"notes": held})
    end = ended(ledger)
    assert end is not None
    assert end.reason == "error"
    assert "session.notes" in end.error
    assert "not a list" in end.error
    assert state(ledger)["session"] == {"notes": held}


async def test_a_step_may_not_append_to_a_text_either() -> None:
    @step
    def work() -> Any:
        return with_state_change("x", {"session": {"notes": append("b")}})

    ledger = await simulate(Case("c", says="go", state={"session": {"notes": "a"}}), work)
    assert "not a list" in ended(ledger).error  # pyright: ignore[reportOptionalMemberAccess]


Wish = Callable[[], Any]


@pytest.mark.parametrize(
    "wish, stands",
    [
        (dict, {}),
        (lambda: {"b": 2}, {"a": 1, "b": 2}),
        (lambda: replace({}), {}),
        (lambda: {"a": delete()}, {}),
        (lambda: {"a": {"deep": {}}}, {"a": {"deep": {}}}),
    ],
)
async def test_a_mapping_merges_unless_it_is_empty_or_said_to_replace(
    wish: Wish, stands: Any
) -> None:
    def answer(key: str, turns: int = 0) -> Any:
        return with_state_change(key, {"session": {"held": wish()}})

    ledger = await rehearsed(clerk(call("put", key="a")), answer, {"held": {"a": 1}})
    assert state(ledger)["session"] == {"held": stands}


async def test_temporary_state_lasts_as_long_as_its_turn() -> None:
    def noted(key: str, ctx: Any) -> Any:
        found = dict(ctx.state.temp)
        ctx.state.temp[key] = True
        ctx.state.session[key] = sorted(found)
        return sorted(found)

    model = Scripted(call("put", key="a"), call("put", key="b"), "one", call("put", key="c"), "two")
    case = Case(
        "c",
        turns=[Turn("go"), Turn("on")],
        mocks={"put": noted},
        state={"temp": {"given": 1}},
        stop=Stop(max_turns=2),
    )
    ledger = await simulate(case, Agent("clerk", model=model, tools=[put]))
    assert state(ledger)["session"] == {"a": ["given"], "b": ["a", "given"], "c": []}
    assert state(ledger).get("temp", {}) == {}
    olds = {step.key: step.old for step in state_changes(ledger) if step.scope == "temp"}
    assert olds == {"a": None, "b": None, "c": None}
    again = Ledger.loads(ledger.dumps())
    assert state(again) == state(ledger)
