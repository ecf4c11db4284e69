"""Sequence, parallel, loop and route: what runs, on what, and what becomes of the state."""

import asyncio
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
    loop,
    route,
    simulate,
    step,
    tool,
    with_state_change,
)
from greenroom.agents import Flow
from greenroom.ledger import (
    Answered,
    BranchCancelled,
    Decided,
    InvocationEnded,
    NodeEnded,
    NodeStarted,
    StateConflicted,
    messages,
    state,
)
from rehearsals import end_of


async def played(flow: Flow, **options: Any) -> Ledger:
    return await simulate(Case("flow", "begin", stop=Stop(max_seconds=30), **options), flow)


def output(ledger: Ledger) -> Any:
    return ledger.of(InvocationEnded)[-1].output


def says(name: str, text: str) -> Flow:
    return step(lambda: text, name=name)


def writes(name: str, **session: Any) -> Flow:
    def work(state: Any) -> None:
        state.session.update(session)

    return step(work, name=name)


async def test_in_a_sequence_each_output_is_the_next_input() -> None:
    def more(input: str) -> str:
        return f"{input}+"

    assert output(await played(step(more) >> step(more, name="again") >> more)) == "begin+++"


async def test_parallel_branches_get_the_same_input_and_answer_by_name() -> None:
    def one(input: str) -> str:
        return f"{input} 1"

    def two(input: str) -> str:
        return f"{input} 2"

    assert output(await played(step(one) | two)) == {"one": "begin 1", "two": "begin 2"}


async def test_branches_of_one_name_are_told_apart() -> None:
    same = says("same", "x")
    assert output(await played(same | says("same", "y") | says("other", "z"))) == {
        "same.0": "x",
        "same.1": "y",
        "other": "z",
    }


async def test_parallel_branches_run_at_the_same_time() -> None:
    meeting = asyncio.Barrier(2)

    async def meet() -> str:
        await meeting.wait()
        return "met"

    both = step(meet, name="one") | step(meet, name="two")
    assert output(await played(both)) == {"one": "met", "two": "met"}


async def test_a_branch_reads_the_state_as_it_was_at_the_fork() -> None:
    written = asyncio.Event()

    async def writer(state: Any) -> None:
        state.session["n"] = 1
        written.set()

    async def reader(state: Any) -> Any:
        await written.wait()
        for _ in range(5):
            await asyncio.sleep(0)
        return state.session["n"]

    ledger = await played(writes("before", n=0) >> (step(writer) | reader))
    assert output(ledger) == {"writer": None, "reader": 0}
    assert state(ledger) == {"session": {"n": 1}}


async def test_a_branch_reads_what_it_wrote_itself() -> None:
    def read(state: Any) -> Any:
        return state.session["n"]

    flow = (writes("w", n=5) >> step(read)) | says("other", "x")
    assert output(await played(flow)) == {"seq": 5, "other": "x"}


async def test_branches_merge_in_the_order_they_are_declared_whoever_ends_first() -> None:
    first_done = asyncio.Event()

    async def slow(state: Any) -> None:
        await first_done.wait()
        state.session["n"] = "first"
        state.session["a"] = 1

    def quick(state: Any) -> None:
        state.session["n"] = "second"
        state.session["b"] = 2
        first_done.set()

    ledger = await played(step(slow) | quick)
    assert state(ledger) == {"session": {"n": "second", "a": 1, "b": 2}}
    (conflict,) = ledger.of(StateConflicted)
    assert (conflict.scope, conflict.key, conflict.values) == ("session", "n", ["first", "second"])


async def test_branches_that_agree_are_not_in_conflict() -> None:
    ledger = await played(writes("one", n=1) | writes("two", n=1))
    assert ledger.of(StateConflicted) == []
    assert state(ledger) == {"session": {"n": 1}}


async def test_true_and_one_from_two_branches_are_in_conflict() -> None:
    ledger = await played(writes("one", n=True) | writes("two", n=1))
    assert len(ledger.of(StateConflicted)) == 1


async def test_branches_inside_branches_merge_step_by_step() -> None:
    inner = writes("a", x=1) | writes("b", y=2)
    ledger = await played((writes("before", x=0) >> inner) | writes("c", z=3))
    assert state(ledger) == {"session": {"x": 1, "y": 2, "z": 3}}
    assert ledger.of(StateConflicted) == []


async def test_a_failing_branch_cancels_its_siblings() -> None:
    started, cancelled = asyncio.Event(), asyncio.Event()

    async def hangs() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.set()

    async def fails() -> None:
        await started.wait()
        raise RuntimeError("boom")

    ledger = await played(step(hangs) | fails)
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "agent")
    assert "RuntimeError: boom" in end.error
    assert cancelled.is_set()
    assert [event.path for event in ledger.of(BranchCancelled)] == ["@1/par.0/hangs"]


async def test_what_a_cancelled_branch_did_does_not_reach_the_state() -> None:
    async def fails() -> None:
        for _ in range(5):
            await asyncio.sleep(0)
        raise RuntimeError("boom")

    ledger = await played(writes("done", n=1) | fails)
    assert state(ledger) == {}


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError


def asking(name: str, *then: str) -> Agent:
    return Agent(name, model=Scripted(call("ask", question=name), *(then or ("ok",))), tools=[ask])


async def test_branches_that_wait_are_answered_in_one_round() -> None:
    def echo(ctx: Any) -> str:
        return ctx.input.split('"')[-2]

    user = UserAgents(tools={"ask": echo})
    ledger = await played(asking("one") | asking("two") | says("three", "x"), user=user)
    (round_,) = ledger.of(Answered)
    assert [answer.value for answer in round_.answers] == ["one", "two"]
    assert output(ledger) == {"one": "ok", "two": "ok", "three": "x"}


async def test_what_the_user_changes_outlasts_what_a_branch_wrote_before() -> None:
    def read(state: Any) -> Any:
        return state.session["n"]

    flow = (writes("early", n="branch", kept=1) >> asking("a") >> step(read)) | says("b", "x")
    answer = with_state_change("yes", {"session": {"n": "user"}})
    ledger = await played(flow, user=UserAgents(tools={"ask": lambda: answer}))
    assert output(ledger)["seq"] == "user"
    assert state(ledger) == {"session": {"n": "user", "kept": 1}}
    assert ledger.of(StateConflicted) == []


async def test_what_a_branch_writes_after_the_user_is_kept() -> None:
    flow = (asking("a") >> writes("late", n="branch")) | says("b", "x")
    answer = with_state_change("yes", {"session": {"n": "user"}})
    ledger = await played(flow, user=UserAgents(tools={"ask": lambda: answer}))
    assert state(ledger) == {"session": {"n": "branch"}}


async def test_a_loop_goes_on_until_it_is_told_to_stop() -> None:
    def more(input: str) -> str:
        return f"{input}+"

    def enough(output: str) -> bool:
        return output.endswith("+++")

    ledger = await played(loop(more, until=enough))
    assert output(ledger) == "begin+++"
    assert [event.choice for event in ledger.of(Decided)] == ["again", "again", "stop"]


async def test_a_loop_can_wait_for_a_state() -> None:
    def count(state: Any) -> int:
        state.session["n"] = state.session.get("n", 0) + 1
        return state.session["n"]

    ledger = await played(loop(count, until={"session": {"n": {"$gte": 3}}}))
    assert (output(ledger), state(ledger)) == (3, {"session": {"n": 3}})


async def test_a_loop_over_an_unknown_scope_is_an_error() -> None:
    end = end_of(await played(loop(lambda: 1, until={"sesion": {"n": 1}})))
    assert (end.reason, end.error_type) == ("error", "BadQuery")


async def test_a_loop_that_never_ends_is_stopped() -> None:
    end = end_of(await played(loop(lambda: 1, until=lambda: False, max_rounds=4)))
    assert (end.reason, end.phase, end.error_type) == ("error", "agent", "LoopLimit")
    assert "made 4 rounds" in end.error


async def test_a_loop_that_awaits_input_holds_the_conversation() -> None:
    clerk = Agent("clerk", model=Scripted("Which order?", "Sure?", "Done."))
    flow = loop(clerk, until=lambda output: output == "Done.", awaits_input=True)
    ledger = await played(flow, user=Lines("Order 7.", "Yes."))
    assert end_of(ledger).reason == "finished"
    assert [m.text for m in messages(ledger)] == [
        "begin",
        "Which order?",
        "Order 7.",
        "Sure?",
        "Yes.",
        "Done.",
    ]


async def test_two_loops_that_await_input_each_get_a_line_of_their_own() -> None:
    def chat(name: str) -> Flow:
        agent = Agent(name, model=Scripted(then=lambda request: f"{name} {request.last}"))
        return loop(agent, until=lambda output: "begin" not in output, awaits_input=True)

    ledger = await played(chat("x") | chat("y"), user=Lines("a", "b"))
    assert output(ledger) == {"loop.0": "x a", "loop.1": "y b"}


@pytest.mark.parametrize(
    "kind, came", [("billing", "paid"), ("refund", "returned"), ("else", "other"), (None, "other")]
)
async def test_a_route_follows_the_state(kind: Any, came: str) -> None:
    flow = route(
        "session.order.kind",
        billing=says("b", "paid"),
        refund=says("r", "returned"),
        otherwise=says("o", "other"),
    )
    ledger = await played(flow, state={"session": {"order": {"kind": kind} if kind else {}}})
    assert output(ledger) == came


async def test_a_route_follows_a_function_of_input_and_state() -> None:
    def choose(input: str, state: Any) -> str:
        return "long" if len(input) > state.session["limit"] else "short"

    flow = route(choose, long=says("l", "long"), short=says("s", "short"))
    assert output(await played(flow, state={"session": {"limit": 3}})) == "long"
    assert output(await played(flow, state={"session": {"limit": 30}})) == "short"


async def test_a_branch_of_a_route_gets_the_routes_input() -> None:
    def echo(input: str) -> str:
        return f"{input}!"

    assert output(await played(route(lambda: "echo", echo=echo))) == "begin!"


async def test_a_choice_without_a_branch_is_an_error_that_names_the_branches() -> None:
    end = end_of(await played(route(lambda: "nowhere", billing=says("b", "x"))))
    assert (end.reason, end.phase) == ("error", "agent")
    assert "chose 'nowhere', but its branches are ['billing']" in end.error


async def test_a_decision_is_taken_once_even_if_the_run_pauses() -> None:
    decisions: list[str] = []

    def choose() -> str:
        decisions.append("asked")
        return "one" if len(decisions) == 1 else "two"

    flow = route(choose, one=asking("a", "one it was"), two=says("t", "two"))
    ledger = await played(flow, user=UserAgents(tools={"ask": "yes"}))
    assert output(ledger) == "one it was"
    assert decisions == ["asked"]


async def test_a_decision_that_changes_the_state_is_refused() -> None:
    def choose(state: Any) -> str:
        state.session["n"] = 1
        return "one"

    end = end_of(await played(route(choose, one=says("o", "x"))))
    assert (end.reason, end.error_type) == ("error", "BadAgent")
    assert "decide only, or use a step" in end.error


async def test_what_a_decision_does_to_an_output_is_not_done_to_the_ledger() -> None:
    def spoil(output: Any) -> bool:
        output.append("spoilt")
        return True

    ledger = await played(loop(step(lambda: ["fine"], name="fine"), until=spoil))
    assert output(ledger) == ["fine"]


async def test_a_step_that_changes_its_input_does_not_change_what_was_recorded() -> None:
    def spoil(input: Any) -> Any:
        input.append("spoilt")
        return input

    ledger = await played(step(lambda: ["fine"], name="fine") >> spoil)
    started = {event.node: event.input for event in ledger.of(NodeStarted)}
    ended = {event.node: event.output for event in ledger.of(NodeEnded)}
    assert started["seq.1/spoil"] == ended["seq.0/fine"] == ["fine"]
    assert output(ledger) == ["fine", "spoilt"]


async def test_parallel_branches_do_not_share_their_input() -> None:
    def spoil(input: Any) -> Any:
        input.append("spoilt")
        return input

    def read(input: Any) -> Any:
        return input

    ledger = await played(step(lambda: ["fine"], name="fine") >> (step(spoil) | read))
    assert output(ledger) == {"spoil": ["fine", "spoilt"], "read": ["fine"]}


async def test_finished_steps_run_once_however_often_the_run_pauses() -> None:
    runs: list[str] = []

    def once() -> str:
        runs.append("ran")
        return "x"

    flow = step(once) >> asking("a") >> asking("b") >> asking("c")
    await played(flow, user=UserAgents(tools={"ask": "yes"}))
    assert runs == ["ran"]


async def test_a_step_may_ask_for_a_change_of_state_with_its_output() -> None:
    ledger = await played(step(lambda: with_state_change("out", {"session": {"n": 1}}), name="s"))
    assert (output(ledger), state(ledger)) == ("out", {"session": {"n": 1}})
