"""A timeout stops what works too long, by the clock of the machine; a tap only looks."""

import asyncio
import time
from typing import Any

import pytest
from msgspec.structs import replace

from greenroom import Agent, Case, Ledger, Scripted, Stop, UserAgents, call, simulate, step, tool
from greenroom.agents import Flow, compile_flow, tap, timeout
from greenroom.backends.native.guards import worked
from greenroom.errors import BadAgent
from greenroom.ledger import (
    Answered,
    BranchCancelled,
    Event,
    InvocationEnded,
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Noted,
    RunResumed,
    ToolReturned,
    YieldOpened,
    state,
)
from greenroom.ledger.messages import Voice
from greenroom.simulation.hangs.watchdog import keep_watching
from rehearsals import end_of


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


async def played(flow: Flow, ledger: Ledger | None = None, **options: Any) -> Ledger:
    case = Case("timeout", "begin", stop=Stop(max_seconds=20), **options)
    return await simulate(case, flow, ledger=ledger)


def output(ledger: Ledger) -> Any:
    return ledger.of(InvocationEnded)[-1].output


async def hang() -> str:
    await asyncio.sleep(60)
    return "woken"


def note(state: Any) -> str:
    state.session["noted"] = True
    return "noted"


async def test_what_works_too_long_has_failed() -> None:
    ledger = await played(timeout(step(note) >> hang, 0.02))
    end = end_of(ledger)
    assert end.error_type == "AgentFailed"
    assert "TimeoutError: it had worked for 0.02 s" in end.error
    (failed,) = ledger.of(NodeFailed)
    assert (failed.path, failed.error_type) == ("@1/within", "TimeoutError")
    assert [e.path for e in ledger.of(BranchCancelled)] == ["@1/within/seq"]


async def test_what_is_in_time_goes_on_and_the_fixed_clock_of_a_case_has_no_say() -> None:
    for now in (None, 1_700_000_000.0):
        assert output(await played(timeout(note, 30), now=now)) == "noted"
        late = await played(timeout(hang, 0.02) // note, now=now)
        assert output(late) == "noted"


async def test_what_timed_out_stays_timed_out_and_every_cut_comes_to_the_same_end() -> None:
    flow = timeout(step(note) >> hang, 0.02) // step(lambda: "else", name="other")
    whole = await played(flow)
    assert output(whole) == "else"
    for k in range(1, len(whole)):
        again = await played(flow, Ledger.loads(Ledger(whole[:k]).dumps()))
        assert output(again) == "else", k
        assert len(again.of(NodeFailed)) == 1
        assert [e.path for e in again.of(BranchCancelled)] == ["@1/try.0/within/seq"]
        assert state(again) == state(whole)


async def test_what_ended_before_the_cut_is_not_late_after_it() -> None:
    flow = timeout(step(note), 30)
    whole = await played(flow)
    ended = next(e.seq for e in whole.of(NodeEnded))
    a_minute_ago = [replace(e, at=e.at - 60) for e in whole[: ended + 1]]
    assert output(await played(flow, Ledger(a_minute_ago))) == "noted"


async def test_the_time_a_user_takes_does_not_count() -> None:
    class Slow:
        """A user who thinks for longer than the agent may work."""

        name = "slow"

        async def respond(self, request: Any, on_delta: Any = None) -> Any:
            await asyncio.sleep(1.2)
            return await Scripted("This one.").respond(request, on_delta)

    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Thanks."), tools=[ask])
    user = UserAgents(tools={"ask": Agent("user", model=Slow())})
    ledger = await played(timeout(asker, 1.0), user=user)
    assert output(ledger) == "Thanks."
    opened, answered = ledger.of(YieldOpened)[0], ledger.of(Answered)[0]
    assert answered.at - opened.at >= 1.2  # the time was there to be counted


def ledger_of(*events: tuple[float, Event]) -> Ledger:
    ledger = Ledger()
    for at, event in events:
        ledger.append(event, at)
    return ledger


def begun(path: str, voice: Voice = "agent") -> NodeStarted:
    return NodeStarted(path=path, node="n", voice=voice)


def test_a_node_has_worked_from_one_event_of_its_own_to_the_next() -> None:
    ledger = ledger_of(
        (0, begun("@1/seq")),
        (10, begun("@1/seq.0/within")),
        (11, begun("@1/seq.0/within/a")),
        (14, begun("@1/seq.0/within/a/x")),
        (15, begun("@1/seq.0/within2")),
        (16, begun("@1/seq.0/within/a", "user")),
        (90, begun("@1/seq.1/b")),
    )
    assert worked(ledger, "agent", "@1/seq.0/within") == 4
    assert worked(ledger, "agent", "@1/seq.1/within") == 0


def test_neither_an_answer_nor_a_resumption_is_waited_for() -> None:
    ledger = ledger_of(
        (10, begun("@1/within")),
        (12, begun("@1/within/a")),
        (50, Answered(answers=())),
        (53, begun("@1/within/b")),
        (99, RunResumed()),
        (100, begun("@1/within/c")),
        (90, begun("@1/within/d")),
    )
    assert worked(ledger, "agent", "@1/within") == 2 + 3 + 1


async def test_time_before_a_cut_counts_after_it() -> None:
    flow = timeout(step(note) >> step(note, name="again"), 6)
    whole = await played(flow)
    assert output(whole) == "noted"
    last = whole.of(NodeEnded)[0].seq
    for taken, is_late in ((3, False), (7, True)):
        # The same events, but the first step took this long.
        cut = [replace(e, at=e.at - taken) if e.seq < last else e for e in whole[: last + 1]]
        again = await played(flow, Ledger(cut))
        assert ("TimeoutError" in end_of(again).error) == is_late


async def test_what_is_left_of_the_time_is_less_after_a_cut() -> None:
    flow = timeout(step(note) >> hang, 1000)
    case = Case("left", "begin", stop=Stop(max_seconds=1))
    cut = await simulate(case, flow)
    assert end_of(cut).reason == "max_seconds"
    last = cut.of(NodeEnded)[0].seq
    slow = [replace(e, at=e.at - 999.9) if e.seq < last else e for e in cut[: last + 1]]
    case = Case("left", "begin", stop=Stop(max_seconds=1005))
    assert "TimeoutError" in end_of(await simulate(case, flow, ledger=Ledger(slow))).error


async def test_a_step_that_holds_up_the_event_loop_is_late_when_it_is_done() -> None:
    def block(state: Any) -> str:
        time.sleep(0.05)
        state.session["blocked"] = True
        return "late"

    ledger = await played(timeout(block, 0.01) // (lambda: "else"))
    assert output(ledger) == "else"


async def test_time_for_which_another_case_holds_up_the_event_loop_does_not_count() -> None:
    """The limit is short compared with the block, and long compared with what the waiting step does."""

    async def wait(input: str) -> str:
        await asyncio.sleep(60 if input == "hang" else 0.01)
        return "in time"

    async def block() -> str:
        await asyncio.sleep(0)
        time.sleep(2.0)  # noqa: ASYNC251
        return "done"

    flow = timeout(step(wait), 1.5) // (lambda: "too late")
    with keep_watching():
        waited, hung, _ = await asyncio.gather(
            simulate(Case("waits", "wait"), flow),
            simulate(Case("hangs", "hang"), flow),
            simulate(Case("blocks", "block"), step(block)),
        )
    assert output(waited) == "in time"
    assert output(hung) == "too late"


async def test_a_body_that_swallows_its_cancellation_holds_up_nothing_and_changes_nothing() -> None:
    async def deaf(state: Any) -> str:
        while True:
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                state.session["heard"] = True
                return "I go on"

    flow = timeout(step(deaf) >> note, 0.02) // (lambda: "else")
    ledger = await played(flow >> hang_a_little)
    assert end_of(ledger).reason == "completed"
    assert not state(ledger).get("session")


@step
async def hang_a_little(input: Any) -> Any:
    await asyncio.sleep(0.05)
    return input


async def test_a_tool_that_returns_late_changes_nothing() -> None:
    async def slow_look(key: str, ctx: Any) -> str:
        ctx.state.session["looked"] = True
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            return "found all the same"
        return "found"

    seeker = Agent("seeker", model=Scripted(call("look", key="a"), "Found."), tools=[look])
    flow = timeout(seeker, 0.02) // hang_a_little
    ledger = await played(flow, mocks={"look": slow_look})
    assert output(ledger) == "begin"
    assert ledger.of(ToolReturned) == []
    assert not state(ledger).get("session")


async def test_the_wait_of_a_body_whose_time_was_up_is_over() -> None:
    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Thanks."), tools=[ask])
    ledger = await played(timeout(asker | step(hang), 0.05) // (lambda: "else"))
    assert ledger.of(YieldOpened)
    assert output(ledger) == "else"
    assert ledger.index_of().pending == []


@pytest.mark.parametrize("seconds", [0, -1, True, float("inf"), float("nan"), "5", None])
def test_a_time_that_is_none_is_refused(seconds: Any) -> None:
    with pytest.raises(BadAgent, match="seconds above 0"):
        timeout(note, seconds)


def test_a_timeout_is_part_of_the_graph_like_any_flow() -> None:
    clerk = Agent("clerk", model=Scripted("Hello."))
    graph = compile_flow(timeout(clerk, 20))
    assert [node.id for node in graph.nodes()] == ["within", "within/clerk"]
    assert graph.digest != compile_flow(timeout(clerk, 21)).digest
    assert repr(timeout(clerk, 20)) == "timeout(Agent('clerk'), 20)"
    assert graph.part("clerk") is clerk


def shout(input: Any) -> str:
    return f"{input}!"


async def test_a_tap_looks_and_what_it_returns_is_not_heard() -> None:
    seen: list[Any] = []

    def look_on(input: Any, state: Any, ctx: Any) -> str:
        seen.append((input, dict(state.session), ctx.run_id))
        return "not heard"

    ledger = await played(step(note) >> tap(look_on) >> shout)
    assert output(ledger) == "noted!"
    assert seen == [("noted", {"noted": True}, "timeout")]


async def test_a_tap_may_await_and_cannot_change_its_input() -> None:
    async def spoil(input: Any) -> None:
        await asyncio.sleep(0)
        input.append("spoilt")

    assert output(await played(step(lambda: ["whole"], name="a") >> tap(spoil))) == ["whole"]


async def test_an_exception_in_a_tap_is_a_note_and_once_whatever_is_cut() -> None:
    def stumble(input: Any) -> None:
        raise RuntimeError("I fell")

    flow = tap(stumble) >> step(note)
    whole = await played(flow)
    assert end_of(whole).reason == "completed"
    (noted,) = whole.of(Noted)
    assert noted.name == "tap_failed"
    assert noted.data["error_type"] == "RuntimeError"
    assert "I fell" in noted.data["error"]
    for k in range(1, len(whole)):
        again = await played(flow, Ledger.loads(Ledger(whole[:k]).dumps()))
        assert len(again.of(Noted)) == 1, k


async def test_a_tap_that_changes_the_state_is_an_error_even_if_it_also_raises() -> None:
    def meddle(state: Any) -> None:
        state.session["x"] = 1

    def meddle_and_fall(state: Any) -> None:
        state.session["x"] = 1
        raise RuntimeError("too late")

    for fn in (meddle, meddle_and_fall):
        ledger = await played(tap(fn) // (lambda: "else"))
        assert end_of(ledger).error_type == "BadAgent"
        assert "may only look" in end_of(ledger).error
        assert not state(ledger).get("session")


async def test_an_error_of_ours_in_a_tap_is_no_note() -> None:
    def wrong() -> None:
        raise BadAgent("this cannot work")

    ledger = await played(tap(wrong))
    assert end_of(ledger).error_type == "BadAgent"
    assert ledger.of(Noted) == []


async def test_a_refusal_in_a_tap_ends_the_case() -> None:
    def act() -> None:
        look("a")

    assert end_of(await played(tap(act))).error_type == "ToolRefused"


def test_a_tap_is_another_agent_than_the_step_of_its_function() -> None:
    def look_on(input: Any) -> Any:
        return input

    assert compile_flow(tap(look_on)).digest != compile_flow(step(look_on)).digest
    with pytest.raises(BadAgent, match="needs a function"):
        tap(Agent("a", model=Scripted()))  # pyright: ignore[reportArgumentType]
