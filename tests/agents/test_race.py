"""A race has one winner: its output, its state, and nothing of the others."""

import asyncio
import gc
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Lines,
    Scripted,
    Stop,
    UserAgents,
    call,
    evaluate,
    loop,
    simulate,
    step,
    tool,
)
from greenroom.agents import Flow, Remote, compile_flow, fallback, race, remote
from greenroom.cases import in_turn
from greenroom.errors import BadAgent
from greenroom.ledger import (
    BranchCancelled,
    Decided,
    InvocationEnded,
    NodeEnded,
    NodeStarted,
    ToolCalled,
    messages,
    said,
    state,
)
from rehearsals import end_of


@tool
def look(key: str) -> str:
    """Look something up."""
    raise AssertionError("a tool body ran in a rehearsal")


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


async def played(flow: Flow, ledger: Ledger | None = None, **options: Any) -> Ledger:
    case = Case("race", "begin", stop=Stop(max_seconds=20), **options)
    return await simulate(case, flow, ledger=ledger)


def output(ledger: Ledger) -> Any:
    return ledger.of(InvocationEnded)[-1].output


def after(turns: int, name: str, fails: bool = False) -> Flow:
    """A step that takes so many turns of the event loop, then writes its name and answers with it."""

    async def work(state: Any) -> str:
        for _ in range(turns):
            await asyncio.sleep(0)
        if fails:
            raise RuntimeError(f"{name} broke")
        state.session[name] = True
        return name

    return step(work, name=name)


async def test_the_first_to_end_is_the_outcome_and_the_rest_is_stopped() -> None:
    ledger = await played(race(after(9, "slow"), after(2, "fast"), after(7, "slower")))
    assert output(ledger) == "fast"
    assert [(e.path, e.choice) for e in ledger.of(Decided)] == [("@1/par", "1")]
    assert [e.path for e in ledger.of(BranchCancelled)] == ["@1/par.0/slow", "@1/par.2/slower"]
    assert [e.path for e in ledger.of(NodeEnded)] == ["@1/par.1/fast", "@1/par"]


async def test_a_losers_change_of_state_is_in_no_state() -> None:
    def early(state: Any) -> None:
        state.session["early"] = True

    ledger = await played(race(step(early) >> after(9, "slow"), after(4, "fast")))
    assert next(e.path for e in ledger.of(NodeEnded)) == "@1/par.0/seq.0/early"  # it had written
    assert state(ledger)["session"] == {"fast": True}


async def test_what_ended_in_the_same_moment_as_the_winner_has_lost() -> None:
    ledger = await played(race(after(3, "a"), after(3, "b")) >> after(0, "c"))
    ends = [e.path for e in ledger.of(NodeEnded)]
    assert ends[:2] == ["@1/seq.0/par.0/a", "@1/seq.0/par.1/b"]
    assert [e.choice for e in ledger.of(Decided)] == ["0"]
    assert state(ledger)["session"] == {"a": True, "c": True}


async def test_one_that_fails_leaves_the_race() -> None:
    ledger = await played(race(after(1, "broken", fails=True), after(5, "slow")))
    assert output(ledger) == "slow"


async def test_if_all_fail_the_race_fails_with_every_reason() -> None:
    ledger = await played(race(after(1, "a", fails=True), after(3, "b", fails=True)))
    end = end_of(ledger)
    assert end.error_type == "AgentFailed"
    assert "a broke" in end.error
    assert "b broke" in end.error


async def test_one_that_waits_is_not_ahead() -> None:
    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Asked."), tools=[ask])
    ledger = await played(race(asker, after(9, "slow")))
    assert output(ledger) == "slow"
    assert end_of(ledger).reason == "completed"
    assert ledger.index_of().pending == []  # the question of the one that lost waits for nobody


@pytest.mark.parametrize(
    "asks", [loop(after(1, "asks"), awaits_input=True), remote("asks", "http://far.internal")]
)
async def test_what_a_loser_would_have_said_is_not_said(asks: Flow) -> None:
    mocks = {"asks": {"input_required": "Which order?"}} if isinstance(asks, Remote) else {}
    ledger = await played(race(asks, after(9, "slow")), mocks=mocks)
    opened = [e for e in ledger if e.kind == "yield_opened"]
    assert len(opened) == 1
    assert said(ledger) == ["slow"]
    assert [m.text for m in messages(ledger)] == ["begin", "slow"]


async def test_a_question_that_reaches_the_user_is_said_after_every_branch_has_stopped() -> None:
    flow = loop(after(1, "asks"), awaits_input=True) | after(9, "slow")
    whole = await played(flow, user=Lines("stop"), mocks={})
    heard = next(e for e in whole if e.kind == "agent_said")
    slow = next(e for e in whole.of(NodeEnded) if e.output == "slow")
    assert slow.seq < heard.seq
    for k in range(1, len(whole)):
        again = await played(flow, Ledger.loads(Ledger(whole[:k]).dumps()), user=Lines("stop"))
        assert said(again) == said(whole), k


async def test_if_all_wait_the_user_is_asked_everything_and_the_first_to_go_on_wins() -> None:
    def asker(name: str, *then: Any) -> Agent:
        lines = (call("ask", question=f"{name}?"), *then, f"{name} knows.")
        return Agent(name, model=Scripted(*lines), tools=[ask, look])

    user = UserAgents(
        tools={"ask": Agent("user", model=Scripted(then=lambda request: "an answer"))}
    )
    flow = race(asker("one", call("look", key="a")), asker("two"))

    async def slow_look(key: str) -> str:
        await asyncio.sleep(0.01)
        return "found"

    ledger = await played(flow, user=user, mocks={"look": slow_look})
    opened = [e for e in ledger if e.kind == "yield_opened"]
    assert len(opened) == 2
    assert output(ledger) == "two knows."


async def test_the_race_waits_for_one_that_waits_when_the_others_have_failed() -> None:
    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Asked."), tools=[ask])
    user = UserAgents(tools={"ask": Agent("user", model=Scripted("This."))})
    flow = race(after(1, "broken", fails=True), asker)
    whole = await played(flow, user=user)
    assert output(whole) == "Asked."
    for k in range(1, len(whole)):
        again = await played(flow, Ledger.loads(Ledger(whole[:k]).dumps()), user=user)
        assert output(again) == "Asked.", k


async def test_a_refusal_in_a_race_ends_the_case() -> None:
    caller = Agent("caller", model=Scripted(call("look", key="a"), "Done."), tools=[look])
    ledger = await played(race(caller, after(50, "slow")))
    end = end_of(ledger)
    assert (end.reason, end.error_type) == ("error", "ToolRefused")


@pytest.mark.parametrize(
    "broken, error_type",
    [
        (Agent("b", model=Scripted(call("look", key="a")), tools=[look]), "MockBroke"),
        (Agent("b", model=Scripted()), "ScriptExhausted"),
    ],
)
async def test_what_is_ours_leaves_no_race(broken: Agent, error_type: str) -> None:
    def breaks(key: str) -> str:
        raise ValueError("this mock is broken")

    mocks = {"look": breaks} if broken.tools else {}
    ledger = await played(race(broken, after(50, "slow")), mocks=mocks)
    assert end_of(ledger).error_type == error_type


async def test_a_loser_that_swallows_its_cancellation_holds_up_nothing_and_changes_nothing() -> (
    None
):
    deaf = asyncio.Event()
    heard: list[str] = []

    complaints: list[Any] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))

    async def stubborn(state: Any) -> str:
        while not deaf.is_set():
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                heard.append("cancelled")
        return "late"

    def shout(state: Any) -> str:
        state.session["late"] = True
        return "late"

    flow = race(step(stubborn) >> shout, after(2, "fast")) >> after(3, "next")
    ledger = await played(flow)
    assert heard
    assert end_of(ledger).reason == "completed"
    count = len(ledger)
    deaf.set()
    for _ in range(5):
        await asyncio.sleep(0)
    gc.collect()
    assert complaints == []
    assert len(ledger) == count
    assert state(ledger)["session"] == {"fast": True, "next": True}


async def test_a_loser_that_goes_on_records_nothing_while_the_run_goes_on() -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(30)
        except asyncio.CancelledError:
            return "I do not stop"
        return ""

    def boast(state: Any) -> None:
        state.session["boast"] = True

    ledger = await played(race(step(stubborn) >> boast, after(2, "fast")) >> after(20, "next"))
    assert output(ledger) == "next"
    assert "boast" not in state(ledger)["session"]
    cancelled = ledger.of(BranchCancelled)[0]
    assert not [e for e in ledger if e.seq > cancelled.seq and e.path.startswith("@1/seq.0/par.0")]


async def test_how_far_a_loser_got_changes_nothing_that_comes_after() -> None:
    """The n-th answer of a script, and of a mock, does not depend on what a loser used up."""

    def asked(name: str, *lines: Any) -> Agent:
        return Agent(name, model=Scripted(*lines), tools=[look])

    async def slow_look(key: str) -> str:
        for _ in range(30):
            await asyncio.sleep(0)
        return "never"

    busy = asked("busy", call("look", key="a"), call("look", key="b"), "Late.")
    last = asked("last", call("look", key="z"), "Last.")
    mocks = {"look": in_turn("first", slow_look, "third")}
    ledger = await played(race(busy, after(15, "fast")) >> last, mocks=mocks)
    calls = [e for e in ledger.of(ToolCalled) if "/last" in e.path]
    assert len(ledger.of(ToolCalled)) == 3
    assert [e.n for e in calls] == [0]


async def test_a_branch_that_exits_the_process_fails_like_any_other() -> None:
    def leave() -> None:
        raise SystemExit(0)

    assert output(await played(race(step(leave), after(3, "stays")))) == "stays"
    assert end_of(await played(step(leave) | after(3, "stays"))).reason == "error"


async def test_races_run_in_several_cases_at_once() -> None:
    flow = race(after(9, "slow"), after(2, "fast"))
    report = await evaluate(flow, [Case(f"c{i}", "begin") for i in range(8)], concurrency=8)
    for result in report.results:
        assert result.ledger is not None
        assert [e.path for e in result.ledger.of(NodeEnded)] == ["@1/par.1/fast", "@1/par"]


async def test_the_voice_of_a_user_may_be_a_race() -> None:
    first = Agent("first", model=Scripted("From me."))
    user = UserAgents(tools={"ask": race(after(9, "slow"), first)})
    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Thanks."), tools=[ask])
    ledger = await played(asker, user=user)
    assert output(ledger) == "Thanks."
    assert [e.choice for e in ledger.of(Decided, voice="user")] == ["1"]


def test_a_race_is_part_of_the_graph_like_any_flow() -> None:
    clerk = Agent("clerk", model=Scripted("Hello."))
    graph = compile_flow(race(clerk, after(1, "b")) >> after(1, "c"))
    assert [node.id for node in graph.nodes()] == [
        "seq",
        "seq.0/par",
        "seq.0/par.0/clerk",
        "seq.0/par.1/b",
        "seq.1/c",
    ]
    assert graph.part("clerk") is clerk
    assert (
        repr(race(clerk, fallback(after(1, "b"), after(1, "c")))) == "race(Agent('clerk'), b // c)"
    )


def test_a_race_and_a_parallel_of_the_same_parts_are_two_agents() -> None:
    a, b = after(1, "a"), after(1, "b")
    digests = {compile_flow(flow).digest for flow in (race(a, b), a | b, race(b, a), a // b)}
    assert len(digests) == 4


@pytest.mark.parametrize("name", ["race", "try", "within", "approval", "par", "seq"])
def test_names_that_paths_use_are_refused(name: str) -> None:
    with pytest.raises(BadAgent, match="a reserved word in paths"):
        step(lambda: None, name=name)
    with pytest.raises(BadAgent, match="a reserved word in paths"):
        Agent(name, model=Scripted())


def test_a_race_of_nothing_is_refused() -> None:
    with pytest.raises(BadAgent, match="nothing to run"):
        race()


async def test_a_part_of_a_race_can_be_rehearsed_alone() -> None:
    flow = race(after(9, "slow"), after(2, "fast"))
    assert output(await played(flow, target="slow")) == "slow"
    ledger = await played(flow)
    assert [e.node for e in ledger.of(NodeStarted)] == ["par", "par.0/slow", "par.1/fast"]
