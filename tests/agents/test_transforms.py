"""Transforms: what they do to the state, and what is known of them before they run."""

from collections.abc import Callable
from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, simulate
from greenroom.agents import (
    Flow,
    Transform,
    compile_flow,
    default,
    drop,
    keep,
    merge,
    put,
    rename,
)
from greenroom.agents.mermaid import mermaid
from greenroom.errors import BadAgent
from greenroom.ledger import NodeEnded, append, delete, responses, state
from rehearsals import end_of

BEFORE = {"session": {"a": 1, "b": [2]}, "user": {"tier": "gold", "age": 7}}


async def after(flow: Flow, **before: Any) -> dict[str, Any]:
    ledger = await simulate(Case("c", "hello", state=before or BEFORE), flow)
    assert end_of(ledger).reason == "completed", end_of(ledger).error
    assert responses(ledger) == ["hello"]  # the input is passed on
    return dict(state(ledger))


def shouted(input: str) -> str:
    return input.upper()


def total(a: int, b: list[int]) -> int:
    return a + sum(b)


@pytest.mark.parametrize(
    "transform, session, user",
    [
        (put(c=3), {"a": 1, "b": [2], "c": 3}, None),
        (put({"user.tier": "blue"}), None, {"tier": "blue", "age": 7}),
        (put({"deep.er": 1}, a=5), {"a": 5, "b": [2]}, None),
        (put(c=shouted), {"a": 1, "b": [2], "c": "HELLO"}, None),
        (put(c=lambda state, ctx: state.session["a"] + 1), {"a": 1, "b": [2], "c": 2}, None),
        (put(b=append(3)), {"a": 1, "b": [2, 3]}, None),
        (default(a=9, c=9), {"a": 1, "b": [2], "c": 9}, None),
        (drop("a", "nothing"), {"b": [2]}, None),
        (drop("user.tier"), None, {"age": 7}),
        (keep("a"), {"a": 1}, None),
        (keep("user.age", "nothing"), {}, {"age": 7}),
        (rename(a="z"), {"z": 1, "b": [2]}, None),
        (rename(a="b", b="a"), {"a": [2], "b": 1}, None),
        (rename({"session.a": "user.a"}), {"b": [2]}, {"tier": "gold", "age": 7, "a": 1}),
        (
            merge("a", "user.tier", into="both"),
            {**BEFORE["session"], "both": {"a": 1, "tier": "gold"}},
            None,
        ),
        (merge("a", "b", into="sum", by=total), {"a": 1, "b": [2], "sum": 3}, None),
    ],
    ids=repr,
)
async def test_a_transform_changes_the_state(transform: Transform, session: Any, user: Any) -> None:
    found = await after(transform)
    assert found["session"] == (BEFORE["session"] if session is None else session)
    assert found["user"] == (BEFORE["user"] if user is None else user)


async def test_only_what_changes_is_recorded() -> None:
    ledger = await simulate(Case("c", "hello", state=BEFORE), default(a=5) >> drop("nothing"))
    assert [event.changes for event in ledger.of(NodeEnded)] == [(), (), ()]


async def test_a_value_is_made_anew_in_every_run() -> None:
    held: list[int] = [1]
    flow = put(x=held) >> put(x=append(2))
    for _ in range(2):
        assert (await after(flow))["session"]["x"] == [1, 2]
    assert held == [1]


def test_what_a_transform_touches_is_known_before_it_runs() -> None:
    assert put({"user.x": 1}, y=2).writes == ("user.x", "session.y")
    assert (drop("x").removes, drop("x").writes) == (("session.x",), ())
    assert keep("x", "user.y").removes == ("session.*", "user.*")
    moved = rename(a="b", b="c")
    assert moved.reads == ("session.a", "session.b")
    assert moved.writes == ("session.b", "session.c")
    assert moved.removes == ("session.a",)
    merged = merge("a", "b", into="temp.c")
    assert (merged.reads, merged.writes) == (("session.a", "session.b"), ("temp.c",))


@pytest.mark.parametrize("what", [rename(missing="b"), merge("missing", into="b")], ids=repr)
async def test_what_must_be_there_is_named_when_it_is_not(what: Flow) -> None:
    ledger = await simulate(Case("c", "hello", state=BEFORE), what)
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "agent")
    assert "needs session.missing, but session holds a, b" in end.error


async def test_a_function_of_a_transform_may_only_look() -> None:
    def sly(state: Any) -> int:
        state.session["z"] = 1
        return 1

    ledger = await simulate(Case("c", "hello"), put(x=sly))
    assert "changed the state; use a step" in end_of(ledger).error


async def later() -> int:
    return 1


WRONG: list[tuple[Callable[[], object], str]] = [
    (put, "put(...) names no place"),
    (drop, "drop(...) names no place"),
    (lambda: keep("a.b.c"), "keep whole keys: 'b'"),
    (lambda: put({5: 1}), "5 is not a place in the state"),
    (lambda: put(x=b"raw"), "put(...)"),
    (lambda: put(x=later), "is async"),
    (lambda: put(x=lambda other: other), "'other'"),
    (lambda: put(x=delete()), "use drop('session.x')"),
    (lambda: rename(a="c", b="c"), "several places to one"),
    (lambda: merge("a", "user.a", into="b"), "two places of the same name"),
    (lambda: merge("a", into="b", by=later), "is async"),
]


@pytest.mark.parametrize("make, why", WRONG, ids=[why for _, why in WRONG])
def test_what_cannot_be_meant_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(BadAgent) as refused:
        make()
    assert why in str(refused.value)


def test_a_transform_is_in_snapshot_digest_and_drawing() -> None:
    flows = [put(x=1), put(x=2), put(y=1), default(x=1), drop("x"), put(x=lambda: 1)]
    flows += [put(x=lambda: 2), merge("x", into="y"), merge("x", into="y", by=total)]
    agent = Agent("clerk", model=Scripted("Hi."))
    assert len({compile_flow(agent >> flow).digest for flow in flows}) == len(flows)
    assert compile_flow(put(x=1)).snapshot == {
        "id": "put",
        "kind": "transform",
        "name": "put",
        "writes": ["session.x"],
        "values": {"session.x": 1},
    }
    assert '["put"]' in mermaid(compile_flow(agent >> put(x=1)).snapshot)
    assert compile_flow(agent >> put(x=1)).part("put").segment == "put"
