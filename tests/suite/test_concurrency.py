"""Many cases at once come to the same as one after the other."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Ledger,
    Lines,
    Report,
    Scripted,
    Stop,
    Turn,
    UserAgents,
    call,
    evaluate,
    fault,
    loop,
    rehearse,
    route,
    step,
    tool,
    with_state_change,
)
from greenroom.cases import in_turn
from greenroom.ledger import messages, state, tool_calls
from greenroom.metrics import called, contains


@tool
def look(key: str) -> str:
    """Look."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError


async def unhurried(key: str, ctx: Any) -> str:
    """A mock that lets others go first, and counts in the state."""
    for _ in range(len(key)):
        await asyncio.sleep(0)
    ctx.state.session["n"] = ctx.state.session.get("n", 0) + 1
    return f"{key} {ctx.state.session['n']}"


def reveal() -> Any:
    return with_state_change("Fever.", {"patient": {"fever": True}})


def choose(ctx: Any) -> str:
    return "ask" if "ask" in ctx.input else "look"


def count(ctx: Any) -> Any:
    ctx.state.session["rounds"] = ctx.state.session.get("rounds", 0) + 1
    return ctx.input


LOOKER = Agent(
    "looker",
    model=Scripted(
        call("look", key="aaa"), [call("look", key="b"), call("look", key="c")], "Found."
    ),
    tools=[look],
    retries=1,
)
ASKER = Agent("asker", model=Scripted(call("ask", question="?"), "Thanks."), tools=[ask])
AGENT = route(choose, ask=ASKER >> count, look=(LOOKER | step(lambda: "x", name="s")) >> count)
LOOP = loop(
    Agent("chat", model=Scripted("One?", "Two?", "Done.")),
    until=lambda output: output == "Done.",
    awaits_input=True,
)


def cases() -> list[Case]:
    """One of every kind of end, in an order that mixes them."""
    mocks: dict[str, Any] = {"look": unhurried}
    user = UserAgents(tools={"ask": reveal})
    return [
        Case("found", "look", mocks=mocks, metrics=[contains("Found")]),
        Case("asked", "ask", user=user, metrics=[contains("Thanks")], state={"patient": {}}),
        Case("missing", "look", mocks=mocks, metrics=[contains("nowhere")]),
        Case("unmocked", "look", metrics=[contains("Found")]),
        Case("turns", turns=[Turn("ask"), Turn("look")], user=user, mocks=mocks),
        Case("nobody", "ask", metrics=[contains("Thanks")]),
        Case("faulty", "look", mocks={"look": fault("down")}, metrics=[called("look")]),
        Case("in turn", "look", mocks={"look": in_turn(1, 2, 3)}, expect=Expect(contains="Found")),
        Case("short", "look", mocks={"look": in_turn(1)}, expect=Expect(contains="Found")),
        Case("nothing", "look", mocks=mocks),
        Case("loop", "Hi", agent=LOOP, user=Lines("a", "b"), metrics=[contains("Done")]),
        Case("used up", "Hi", agent=LOOP, user=Lines("a"), metrics=[contains("Done")]),
        Case(
            "limit",
            "look",
            mocks=mocks,
            user=Lines(then="ask"),
            stop=Stop(max_turns=1),
            metrics=[contains("Found")],
        ),
        Case(
            "goal",
            "look",
            mocks=mocks,
            stop=Stop(state_matches={"session": {"rounds": 1}}),
            metrics=[contains("Found")],
        ),
        Case("again", "look", mocks=mocks, metrics=[contains("Found")]),
        Case("once more", "look", mocks=mocks, metrics=[contains("Found")]),
    ]


def told(ledger: Ledger | None) -> Any:
    assert ledger is not None
    calls = [(c.tool, c.args, c.result, c.error, c.source) for c in tool_calls(ledger)]
    return [messages(ledger), state(ledger), state(ledger, "user"), sorted(map(repr, calls))]


def facts(report: Report) -> list[Any]:
    """Everything about a report that does not depend on time."""
    return [
        (r.case_id, r.status, r.ended, r.error, r.turns, repr(r.scores), told(r.ledger))
        for r in report
    ]


@pytest.fixture(scope="module")
def one_by_one() -> list[Any]:
    return facts(rehearse(AGENT, cases(), concurrency=1))


def test_the_cases_come_to_every_kind_of_end(one_by_one: list[Any]) -> None:
    assert [fact[1] for fact in one_by_one] == [
        "passed",
        "passed",
        "failed",
        "error",
        "error",
        "error",
        "passed",
        "passed",
        "error",
        "error",
        "passed",
        "error",
        "terminated",
        "passed",
        "passed",
        "passed",
    ]


@pytest.mark.parametrize("width", [2, 8, 64])
async def test_cases_at_once_come_to_the_same_as_one_by_one(
    one_by_one: list[Any], width: int
) -> None:
    assert facts(await evaluate(AGENT, cases(), concurrency=width)) == one_by_one


async def test_sixteen_cases_on_one_agent_object_do_not_meet() -> None:
    everyone = [
        Case(f"c{i}", "look", mocks={"look": unhurried}, state={"session": {"n": 100 * i}})
        for i in range(16)
    ]
    report = await evaluate(AGENT, everyone, concurrency=16, metrics=[contains("Found")])
    assert report.passed
    for index, result in enumerate(report):
        assert result.ledger is not None
        assert {"aaa": f"aaa {100 * index + 1}"}.items() <= {
            c.args["key"]: c.result for c in tool_calls(result.ledger)
        }.items()


async def test_several_evaluations_in_one_loop_come_to_the_same(one_by_one: list[Any]) -> None:
    reports = await asyncio.gather(*(evaluate(AGENT, cases(), concurrency=4) for _ in range(4)))
    for report in reports:
        assert facts(report) == one_by_one


def test_several_evaluations_in_threads_come_to_the_same(one_by_one: list[Any]) -> None:
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(rehearse, AGENT, cases(), concurrency=4) for _ in range(4)]
        for run in runs:
            assert facts(run.result(timeout=60)) == one_by_one


async def test_no_more_cases_are_under_way_than_allowed() -> None:
    under_way: list[int] = [0, 0]

    async def busy() -> str:
        under_way[0] += 1
        under_way[1] = max(under_way)
        await asyncio.sleep(0.01)
        under_way[0] -= 1
        return "ok"

    everyone = [Case(f"c{i}", "Go.") for i in range(12)]
    await evaluate(step(busy), everyone, concurrency=3, metrics=[contains("ok")])
    assert under_way == [0, 3]


async def test_results_come_in_the_order_of_the_cases_whoever_ends_first() -> None:
    done = [asyncio.Event() for _ in range(9)]
    done[8].set()

    async def after_the_next(ctx: Any) -> str:
        await done[int(ctx.input) + 1].wait()
        return "ok"

    def ended(result: Any) -> None:
        order.append(result.case_id)
        done[int(result.case_id)].set()

    order: list[str] = []
    everyone = [Case(str(i), str(i)) for i in range(8)]
    report = await evaluate(
        step(after_the_next),
        everyone,
        concurrency=8,
        metrics=[contains("ok")],
        on_case_complete=ended,
    )
    assert [result.case_id for result in report] == ["0", "1", "2", "3", "4", "5", "6", "7"]
    assert order == ["7", "6", "5", "4", "3", "2", "1", "0"]
