"""Graphs, and the issues that a check finds in them."""

from typing import Any

import pytest

from greenroom import Agent, Scripted, loop, route, step, tool, with_state_change
from greenroom.agents import Flow, check, map_over, race, tap, timeout
from greenroom.agents.approvals import approved
from greenroom.agents.transforms import default, drop, keep, put, rename


def writes(*keys: str, name: str = "") -> Flow:
    def write(state: Any) -> None:
        for key in keys:
            state.session[key] = 1

    return step(write, name=name or f"w_{'_'.join(keys)}".replace(".", "_"), writes=keys)


def reads(*keys: str, name: str = "") -> Flow:
    def read(state: Any) -> None:
        for key in keys:
            state.session[key]

    return step(read, name=name or f"r_{'_'.join(keys)}".replace(".", "_"), reads=keys)


def agent(name: str = "agent", **options: Any) -> Agent:
    return Agent(name, model=Scripted("x"), **options)


@step
def anything(state: Any) -> None:
    """Given the state, and says nothing of it."""


@step
def nothing(input: Any) -> Any:
    return input


@step
def by_result(input: Any) -> Any:
    return with_state_change(input, {"session": {"a": 1}})


@tool(writes="a")
def may_write(ctx: Any) -> None: ...


@tool
def may_do_anything(ctx: Any) -> None: ...


@tool(reads="a")
def looks(ctx: Any) -> None: ...


def found(flow: Flow, given: Any = None, schema: Any = None) -> list[str]:
    """The issues in short: severity, kind and place."""
    issues = check(flow, schema=schema, given=given)
    return sorted(f"{i.severity} {i.kind} {i.place}".strip() for i in issues)


NEVER = ["error ReadBeforeWrite session.a"]
NOT_YET = ["warning ReadBeforeWrite session.a"]
GONE = NEVER
EVERY_ITEM = ["note ParallelWrites session.a"]
MAYBE = ["warning MaybeUnwritten session.a"]
CANNOT_TELL = ["note CannotTell session.a"]
w, r = writes("a"), reads("a")
choose = lambda: "x"  # noqa: E731 - a route decides by it


# The five shapes after which a walk over neighbours reports what is not true


@pytest.mark.parametrize(
    "flow",
    [
        (w | nothing) >> r,
        route(choose, x=w, otherwise=writes("a", name="other")) >> r,
        race(w, writes("a", name="other")) >> r,
        (w // writes("a", name="other")) >> r,
        loop(w, max_rounds=3) >> r,
    ],
    ids=["parallel", "route", "race", "fallback", "loop"],
)
def test_a_reader_behind_a_fork_finds_what_every_way_writes(flow: Flow) -> None:
    assert found(flow) == []


@pytest.mark.parametrize(
    "flow, issues",
    [
        (r, NEVER),
        (w >> r, []),
        (r >> w, NEVER),
        (nothing >> r >> nothing >> w, NEVER),
        # Branches do not see each other, and are merged when all are done.
        (w | r, NEVER),
        ((w >> r) | nothing, []),
        ((w >> nothing) | (nothing >> r), NEVER),
        # One of several.
        (route(choose, x=w, y=nothing) >> r, MAYBE),
        (route(choose, x=w, otherwise=nothing) >> r, MAYBE),
        (w >> route(choose, x=r, y=r), []),
        (route(choose, first=w, again=r), NOT_YET),
        (race(w, nothing) >> r, MAYBE),
        (race(w, r), NOT_YET),
        (w >> race(r, nothing), []),
        # What a failed try has done stays; a step that failed has done nothing.
        ((w // nothing) >> r, MAYBE),
        (((w >> nothing) // r), MAYBE),
        ((w // r), NOT_YET),
        ((agent(tools=[may_write]) // r), MAYBE),
        (((w | nothing) // r), NOT_YET),
        # Rounds.
        (loop(r >> w, max_rounds=2), NEVER),
        (loop(w >> r, max_rounds=2), []),
        (loop(route(choose, x=w, y=r), max_rounds=2), NOT_YET),
        (loop(nothing, until={"session": {"a": 1}}, max_rounds=2), NEVER),
        (loop(w, until={"session": {"a": 1}}, max_rounds=2), []),
        (loop(route(choose, x=w, y=nothing), until={"session": {"a": 1}}, max_rounds=2), []),
        # A list may be empty, and its items do not see each other.
        (map_over(w) >> r, [*EVERY_ITEM, *MAYBE]),
        (map_over(w >> r), EVERY_ITEM),
        (map_over(r), NEVER),
        (map_over(r >> w), [*EVERY_ITEM, *NOT_YET]),
        (map_over(nothing, "a"), NEVER),
        (w >> map_over(nothing, "a"), []),
        # Cut half-way.
        (timeout(w, 1) >> r, []),
        (timeout(w >> nothing, 1) // r, MAYBE),
        (timeout(w, 1) // r, MAYBE),
        # Approved or not.
        (approved(w, "Well?") >> r, []),
        (approved(w, "Well?", otherwise=nothing) >> r, MAYBE),
        (approved(r, "Well?", otherwise=w), NOT_YET),
        (w >> approved(r, "Well?"), []),
        (approved(nothing, "Pay {state[session][a]}?"), NEVER),
        (w >> approved(nothing, "Pay {state[session][a]}?"), []),
        (approved(nothing, "Well?", when="a"), NEVER),
        (route(choose, x=w, y=nothing) >> approved(nothing, "Well?", when="a"), []),
        # Who only looks.
        (w >> tap(lambda state: None, name="t") >> r, []),
        (tap(lambda state: None, name="t") >> r, NEVER),
        # Routes by a place.
        (route("a", x=nothing), NEVER),
        (route("a", x=nothing, otherwise=nothing), NEVER),
        (w >> route("a", x=nothing), []),
        (route(choose, x=w, y=nothing) >> route("a", x=nothing), MAYBE),
        (route(choose, x=w, y=nothing) >> route("a", x=nothing, otherwise=nothing), []),
        (route("a", x=nothing, otherwise=w), []),
        # Agents and their tools.
        (agent(writes="a") >> r, []),
        (w >> agent(reads="a"), []),
        (agent(reads="a", writes="a"), NEVER),
        (agent(tools=[may_write]) >> r, MAYBE),
        (agent(tools=[may_write], reads="a"), NEVER),
        (agent(tools=[looks]), NEVER),
        (w >> agent(tools=[looks]), []),
        (agent(tools=[looks, may_write]), MAYBE),
        # Transforms.
        (put(a=1) >> r, []),
        (default(a=1) >> r, []),
        ((default(a=1) | nothing) >> r, []),
        (w >> (default(a=1) | drop("a")) >> r, MAYBE),
        (w >> (put(a=1) | nothing) >> r, []),
        (w >> (drop("a") | put(a=1)) >> r, []),
        (w >> (put(a=1) | drop("a")) >> r, MAYBE),
        (w >> drop("a") >> r, GONE),
        (w >> keep("b") >> r, [*GONE, "error ReadBeforeWrite session.b"]),
        (w >> keep("a") >> r, []),
        (w >> rename(a="b") >> reads("b"), []),
        (w >> rename(a="b") >> r, GONE),
        (rename(a="b"), NEVER),
        (w >> route(choose, x=drop("a"), y=nothing) >> r, MAYBE),
        (loop(r >> drop("a"), max_rounds=2), NEVER),
        (w >> loop(r >> drop("a"), max_rounds=2), MAYBE),
        # Teams: one of them answers.
        (agent("x", writes="a", handoffs=[agent("y", writes="a")]) >> r, []),
        (agent("x", writes="a", handoffs=[agent("y")]) >> r, MAYBE),
        (agent("x", handoffs=[agent("y", reads="a")]), NEVER),
        (agent("x", tools=[may_write], handoffs=[agent("y", reads="a")]), MAYBE),
        (agent("x", reads="a", handoffs=[agent("y", writes="a")]), NEVER),
        (agent("x", writes="a", handoffs=[agent("y", reads="a")]), NOT_YET),
        (w >> agent("x", reads="a", handoffs=[agent("y", reads="a")]), []),
        # Who declares nothing and is given the state may do anything.
        (anything >> r, CANNOT_TELL),
        (by_result >> r, CANNOT_TELL),
        (agent(tools=[may_do_anything]) >> r, CANNOT_TELL),
        (r >> anything, NEVER),
        (w >> anything >> r, []),
        ((anything | nothing) >> r, CANNOT_TELL),
        (anything | r, NEVER),
        (route(choose, x=anything, y=r), CANNOT_TELL),
    ],
    ids=str,
)
def test_what_is_read_is_there_or_an_issue_says_that_it_may_not_be(
    flow: Flow, issues: list[str]
) -> None:
    assert found(flow) == issues
