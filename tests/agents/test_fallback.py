"""A fallback goes on with the next part when one fails, and only then."""

import asyncio
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    Stop,
    UserAgents,
    call,
    loop,
    simulate,
    step,
    tool,
)
from greenroom.agents import Flow, compile_flow, fallback, timeout
from greenroom.errors import BadAgent, GarbledReply, ModelBroke
from greenroom.ledger import (
    BranchCancelled,
    Decided,
    InvocationEnded,
    ModelCalled,
    ModelFailed,
    NodeStarted,
    state,
)
from greenroom.models import ModelRequest
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
    case = Case("fallback", "begin", stop=Stop(max_seconds=20), **options)
    return await simulate(case, flow, ledger=ledger)


def output(ledger: Ledger) -> Any:
    return ledger.of(InvocationEnded)[-1].output


def breaks(name: str, error: Exception) -> Flow:
    def work(input: Any, state: Any) -> Any:
        raise error

    return step(work, name=name)


def model_that(error: Exception) -> Scripted:
    def reply(request: ModelRequest) -> Any:
        raise error

    return Scripted(then=reply)


def echo(input: Any) -> str:
    return f"echo {input}"


FAILURES: dict[str, Flow] = {
    "a step": breaks("broken", RuntimeError("no")),
    "a model of anybody's": Agent("broken", model=model_that(ConnectionError("down"))),
    "a model, as ours do": Agent("broken", model=model_that(GarbledReply("no words"))),
    "an agent that says nothing": Agent("broken", model=Scripted("")),
    "an agent that never comes to an end": Agent(
        "broken", model=Scripted(then=lambda request: call("nowhere")), max_steps=2
    ),
    "a loop without end": loop(
        step(lambda: 1, name="one"), until=lambda output: output == 2, max_rounds=3
    ),
    "a branch": breaks("broken", RuntimeError("no")) | echo,
    "a body that is late": timeout(step(lambda: asyncio.sleep(30), name="slow"), 0.01),
    "both before": breaks("broken", RuntimeError("no")) // breaks("too", RuntimeError("no")),
}


@pytest.mark.parametrize("broken", FAILURES.values(), ids=FAILURES)
async def test_the_next_part_gets_the_same_input_when_one_fails(broken: Flow) -> None:
    ledger = await played(broken // echo)
    assert end_of(ledger).reason == "completed"
    assert output(ledger) == "echo begin"
    fallen = [e for e in ledger.of(Decided) if e.choice == "next"]
    assert fallen
    assert all(e.path.startswith("@1/try.") and e.why for e in fallen)


@pytest.mark.parametrize("broken", FAILURES.values(), ids=FAILURES)
async def test_what_fell_back_cut_at_any_event_comes_to_the_same_end(broken: Flow) -> None:
    whole = await played(broken // echo)
    for k in range(1, len(whole)):
        again = await played(broken // echo, Ledger.loads(Ledger(whole[:k]).dumps()))
        assert output(again) == "echo begin", k
        assert (
            len([e for e in again.of(Decided) if e.path == "@1/try.0"])
            == (0 if broken is FAILURES["both before"] else 1)
            or broken is FAILURES["both before"]
        )


async def test_a_part_that_does_not_fail_is_the_last() -> None:
    ledger = await played(step(echo) // breaks("never", RuntimeError()))
    assert output(ledger) == "echo begin"
    assert [e.node for e in ledger.of(NodeStarted)] == ["try", "try.0/echo"]


async def test_if_all_fail_the_last_failure_is_the_outcome() -> None:
    ledger = await played(breaks("a", RuntimeError("first")) // breaks("b", RuntimeError("second")))
    assert "second" in end_of(ledger).error
    assert end_of(ledger).error_type == "AgentFailed"


async def test_a_branch_that_was_stopped_waits_for_nothing_though_it_had_mended_a_failure() -> None:
    tries: list[int] = []

    def flaky() -> None:
        tries.append(1)
        if len(tries) == 1:
            raise RuntimeError("once")

    async def late() -> None:
        await asyncio.sleep(0.02)
        raise RuntimeError("late")

    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Thanks."), tools=[ask])
    flow = ((step(flaky, retries=1) >> asker) | step(late)) // echo
    ledger = await played(flow)
    assert output(ledger) == "echo begin"
    assert [e.path for e in ledger.of(BranchCancelled)] == ["@1/try.0/par.0/seq"]
    assert ledger.index_of().pending == []


async def test_what_a_failed_part_did_to_the_state_stays() -> None:
    def note(state: Any) -> None:
        state.session["noted"] = True

    ledger = await played((step(note) >> breaks("b", RuntimeError())) // echo)
    assert state(ledger)["session"] == {"noted": True}


def mock_that_breaks(key: str) -> str:
    raise ValueError("this mock is broken")


def changes_nothing(state: Any) -> bool:
    state.session["x"] = 1
    return True


OURS: dict[str, tuple[Flow, dict[str, Any], str]] = {
    "a refusal": (
        Agent("a", model=Scripted(call("look", key="a"), "Done."), tools=[look]),
        {},
        "ToolRefused",
    ),
    "a broken mock": (
        Agent("a", model=Scripted(call("look", key="a"), "Done."), tools=[look]),
        {"look": mock_that_breaks},
        "MockBroke",
    ),
    "a script that ran out": (Agent("a", model=Scripted()), {}, "ScriptExhausted"),
    "a wrong expression": (
        loop(step(lambda: 1, name="one"), until=changes_nothing),
        {},
        "BadAgent",
    ),
}


@pytest.mark.parametrize("name", OURS)
async def test_what_is_ours_never_falls_through(name: str) -> None:
    flow, mocks, error_type = OURS[name]
    whole = await played(flow // echo, mocks=mocks)
    assert (end_of(whole).reason, end_of(whole).error_type) == ("error", error_type)
    assert not [e for e in whole.of(NodeStarted) if e.node == "try.1/echo"]
    for k in range(1, len(whole)):
        again = await played(flow // echo, Ledger.loads(Ledger(whole[:k]).dumps()), mocks=mocks)
        assert end_of(again).error_type == error_type, k


async def test_a_part_that_waits_has_not_failed() -> None:
    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), ""), tools=[ask])
    user = UserAgents(tools={"ask": Agent("user", model=Scripted("This."))})
    ledger = await played(asker // echo, user=user)
    assert output(ledger) == "echo begin"
    assert len(ledger.of(Decided)) == 1


async def test_a_script_goes_on_with_its_next_line_after_a_failed_try() -> None:
    """As with retries: a failure is an answer too, whoever took over."""
    shy = Agent("shy", model=Scripted("", "Now I speak."))
    ledger = await played(loop(shy // echo, max_rounds=2))
    assert [e.n for e in ledger.of(ModelCalled)] == [0, 1]
    assert output(ledger) == "Now I speak."


class Down(ModelBroke):
    """A failure that an author made of one of ours."""


class NotFound(Exception):
    """A failure of an author's own."""


@pytest.mark.parametrize("error", [Down("down"), NotFound("nothing"), GarbledReply("no words")])
@pytest.mark.parametrize("beside", [False, True])
async def test_behind_a_failed_model_a_cut_run_ends_as_the_whole_one(
    error: Exception, beside: bool
) -> None:
    def flow() -> Flow:
        agent = Agent("agent", model=model_that(error), retries=1)
        return agent | echo if beside else agent

    whole = await played(flow())
    assert whole.of(ModelFailed)
    for k in range(1, len(whole)):
        again = await played(flow(), Ledger.loads(Ledger(whole[:k]).dumps()))
        end, uncut = end_of(again), end_of(whole)
        assert (end.error, end.error_type, end.phase) == (
            uncut.error,
            uncut.error_type,
            uncut.phase,
        )
        assert len(again.of(ModelFailed)) == len(whole.of(ModelFailed)), k


def test_a_fallback_reads_as_it_is_written() -> None:
    a, b, c = (step(echo, name=name) for name in "abc")
    assert repr(a // b // c) == "a // b // c"
    assert repr((a >> b) // c) == "(a >> b) // c"
    assert repr(fallback(a, fallback(b, c))) == "a // b // c"
    assert repr(a // (b | c) >> a) == "a // (b | c) >> a"
    nodes = [node.id for node in compile_flow(a // echo).nodes()]
    assert nodes == ["try", "try.0/a", "try.1/echo"]


def test_a_fallback_of_nothing_is_refused() -> None:
    with pytest.raises(BadAgent, match="nothing to try"):
        fallback()
