"""A conversation ends at its goal, at a limit, or when there is no more to say."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Lines,
    Scripted,
    Stop,
    Turn,
    UserAgents,
    call,
    evaluate,
    fault,
    loop,
    simulate,
    step,
    tool,
    with_state_change,
)
from greenroom.errors import BadCase, BadLedger
from greenroom.ledger import ModelCalled, RunResumed, messages, seconds, turns
from greenroom.metrics import contains
from greenroom.models import ModelRequest
from rehearsals import caller, end_of

CHATTY = Agent("chatty", model=Scripted(then=lambda request: f"You said {request.last}"))
PATIENT = loop(CHATTY, awaits_input=True)


@pytest.mark.parametrize("agent", [CHATTY, PATIENT])
@pytest.mark.parametrize("limit", [1, 2, 5])
async def test_a_conversation_is_cut_at_its_limit_of_turns(agent: Any, limit: int) -> None:
    ledger = await simulate(
        Case("c", "Hi", user=lambda: "More.", stop=Stop(max_turns=limit)), agent
    )
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", limit)
    assert messages(ledger)[-1].role == "assistant"


async def test_a_limit_that_nobody_wants_to_pass_is_not_reached() -> None:
    for user in (None, Lines("one", "two")):
        case = Case("c", "Hi", user=user, stop=Stop(max_turns=3 if user else 1))
        assert end_of(await simulate(case, CHATTY)).reason == "completed"


async def test_scripted_turns_beyond_the_limit_are_not_played() -> None:
    case = Case("c", turns=[Turn("a"), Turn("b"), Turn("c")], stop=Stop(max_turns=2))
    ledger = await simulate(case, CHATTY)
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", 2)


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError


async def test_answers_to_tools_are_turns_too() -> None:
    agent = Agent("a", model=Scripted(then=call("ask", question="?")), tools=[ask])
    case = Case("c", "Hi", user=UserAgents(tools={"ask": "yes"}), stop=Stop(max_turns=4))
    ledger = await simulate(case, agent)
    assert (end_of(ledger).reason, turns(ledger)) == ("max_turns", 4)


async def test_several_answers_of_one_round_are_one_turn() -> None:
    two = [call("ask", question="a"), call("ask", question="b")]
    agent = Agent("a", model=Scripted(two, "Done."), tools=[ask])
    ledger = await simulate(Case("c", "Hi", user=UserAgents(tools={"ask": "yes"})), agent)
    assert (end_of(ledger).reason, turns(ledger)) == ("completed", 2)


@pytest.mark.parametrize("stop", [Stop(max_turns=2), Stop(max_seconds=1)])
async def test_a_run_cut_at_a_limit_is_measured_but_never_passes(stop: Stop) -> None:
    async def slow(ctx: Any) -> str:
        await asyncio.sleep(0.05)
        return "More."

    def answer(ctx: Any) -> str:
        return f"You said {ctx.input}"

    agent = step(answer) >> step(slow) >> (lambda: "You said so.")
    case = Case("c", "Hi", user=Lines(then="More."), stop=stop)
    report = await evaluate(agent, [case], metrics=[contains("You said")])
    (result,) = report
    assert result.status == "terminated"
    assert [score.passed for score in result.measured.values()] == [True]
    assert not report.passed
    assert report.summary.pass_rate == 0.0


# Goals


def counting(ctx: Any) -> str:
    ctx.state.session["n"] = ctx.state.session.get("n", 0) + 1
    return f"{ctx.state.session['n']}"


def until_n(n: int) -> dict[str, Any]:
    return {"session": {"n": {"$gte": n}}}


@pytest.mark.parametrize("agent", [step(counting), loop(counting, awaits_input=True)])
async def test_a_conversation_ends_when_its_goal_is_reached(agent: Any) -> None:
    stop = Stop(state_matches=until_n(3), max_turns=9)
    ledger = await simulate(Case("c", "Hi", user=Lines(then="More."), stop=stop), agent)
    assert (end_of(ledger).reason, turns(ledger)) == ("state_matches", 3)


async def test_a_reached_goal_is_judged_by_the_metrics() -> None:
    stop = Stop(state_matches=until_n(2))
    case = Case("c", "Hi", user=Lines(then="More."), stop=stop)
    for text, status in (("2", "passed"), ("9", "failed")):
        (result,) = await evaluate(step(counting), [case], metrics=[contains(text)])
        assert (result.status, result.ended) == (status, "state_matches")


async def test_a_goal_reached_by_the_users_answer_ends_it_before_the_agent_goes_on() -> None:
    def reveal() -> Any:
        return with_state_change("Fever.", {"patient": {"fever": True}})

    agent = Agent("a", model=Scripted(call("ask", question="?")), tools=[ask])
    stop = Stop(state_matches={"patient": {"fever": True}})
    case = Case("c", "Hi", user=UserAgents(tools={"ask": reveal}), stop=stop, state={"patient": {}})
    ledger = await simulate(case, agent)
    assert end_of(ledger).reason == "state_matches"
    assert len(ledger.of(ModelCalled)) == 1


async def test_a_goal_reached_with_the_last_turn_is_reached() -> None:
    stop = Stop(state_matches=until_n(2), max_turns=2)
    ledger = await simulate(Case("c", "Hi", user=Lines(then="More."), stop=stop), step(counting))
    assert end_of(ledger).reason == "state_matches"


async def test_a_goal_that_is_never_reached_leaves_the_limit_to_end_it() -> None:
    stop = Stop(state_matches=until_n(9), max_turns=3)
    ledger = await simulate(Case("c", "Hi", user=Lines(then="More."), stop=stop), step(counting))
    assert end_of(ledger).reason == "max_turns"


async def test_one_is_not_a_goal_of_true() -> None:
    stop = Stop(state_matches={"session": {"n": True}})
    ledger = await simulate(Case("c", "Hi", user=Lines("More."), stop=stop), step(counting))
    assert end_of(ledger).reason == "completed"


async def test_a_goal_in_an_unknown_scope_is_an_error_and_no_match() -> None:
    for query in ({"sesion": {"n": 1}}, {"patient": {"n": {"$exists": False}}}):
        end = end_of(await simulate(Case("c", "Hi", stop=Stop(state_matches=query)), CHATTY))
        assert (end.reason, end.phase, end.error_type) == ("error", "system", "BadQuery")
        assert next(iter(query)) in end.error


async def test_a_goal_in_a_scope_with_a_fixture_is_known() -> None:
    stop = Stop(state_matches={"patient": {"n": {"$exists": False}}})
    ledger = await simulate(Case("c", "Hi", stop=stop, state={"patient": {}}), CHATTY)
    assert end_of(ledger).reason == "state_matches"


# Time


@tool
def work(how: str) -> str:
    """Work."""
    time.sleep(30)
    return how


@tool
async def work_async(how: str) -> str:
    """Work."""
    await asyncio.sleep(30)
    return how


async def sleeps_alone() -> str:
    await asyncio.sleep(30)
    return "late"


def blocks_alone() -> str:
    time.sleep(30)
    return "late"


def spins_alone() -> str:
    until = time.monotonic() + 30
    while time.monotonic() < until:
        pass
    return "late"


async def sleeps(_: Any) -> str:
    return await sleeps_alone()


def blocks(_: Any) -> str:
    return blocks_alone()


WORK = caller(work, {"how": "x"})
WORK_ASYNC = caller(work_async, {"how": "x"})
HANGING: dict[str, Callable[[], tuple[Any, dict[str, Any]]]] = {
    "an async mock": lambda: (WORK, {"mocks": {"work": lambda how: sleeps_alone()}}),
    "a sync mock": lambda: (WORK, {"mocks": {"work": lambda how: blocks_alone()}}),
    "a spinning mock": lambda: (WORK, {"mocks": {"work": lambda how: spins_alone()}}),
    "a live sync tool": lambda: (WORK, {"allow_tools": ["work"]}),
    "a live async tool": lambda: (WORK_ASYNC, {"allow_tools": ["work_async"]}),
    "an async model": lambda: (Agent("a", model=Scripted(sleeps)), {}),
    "a sync model": lambda: (Agent("a", model=Scripted(blocks)), {}),
    "an async step": lambda: (step(sleeps_alone, name="s"), {}),
    "a sync step": lambda: (step(blocks_alone, name="s"), {}),
    "a spinning step": lambda: (step(spins_alone, name="s"), {}),
    "a decision": lambda: (loop(lambda: 1, until=blocks_alone), {}),
    "a slow fault": lambda: (WORK, {"mocks": {"work": fault(slow=30, value="late")}}),
    "one of two branches": lambda: (step(sleeps_alone, name="s") | CHATTY, {}),
}


@pytest.mark.parametrize("what", HANGING)
async def test_whatever_hangs_is_cut_at_the_limit_of_time(what: str) -> None:
    agent, options = HANGING[what]()
    begun = time.monotonic()
    ledger = await simulate(Case("c", "Hi", stop=Stop(max_seconds=0.2), **options), agent)
    assert end_of(ledger).reason == "max_seconds"
    assert time.monotonic() - begun < 20  # well before it would have ended by itself


@pytest.mark.parametrize("user", [sleeps_alone, blocks_alone, spins_alone])
async def test_a_user_that_hangs_is_cut_and_blamed(user: Any) -> None:
    begun = time.monotonic()
    case = Case("c", "Hi", user=step(user, name="ada"), stop=Stop(max_seconds=1))
    end = end_of(await simulate(case, CHATTY))
    assert (end.reason, end.phase) == ("error", "user_agent")
    assert time.monotonic() - begun < 20  # well before it would have ended by itself


async def test_a_cut_case_does_not_cut_those_beside_it() -> None:
    agent = Agent("a", model=Scripted("Done.", latency=0.4))
    slow = Case("slow", "Hi", stop=Stop(max_seconds=0.1))
    cases = [slow, *(Case(f"c{i}", "Hi") for i in range(4))]
    ledgers = await asyncio.gather(*(simulate(case, agent) for case in cases))
    reasons = [end_of(ledger).reason for ledger in ledgers]
    assert reasons == ["max_seconds", *["completed"] * 4]


async def test_what_was_said_before_the_cut_is_kept() -> None:
    def answer(request: ModelRequest) -> Any:
        return "Hello." if request.n == 0 else sleeps_alone()

    case = Case("c", "Hi", user=Lines("More."), stop=Stop(max_seconds=1))
    ledger = await simulate(case, Agent("a", model=Scripted(then=answer)))
    assert [m.text for m in messages(ledger)] == ["Hi", "Hello.", "More."]
    assert end_of(ledger).reason == "max_seconds"


# Going on


def cut(ledger: Ledger, count: int, later: float = 0.0) -> Ledger:
    """The first events of a run, as another process finds them, so much later apart."""
    lines = [json.loads(line) for line in ledger.dumps().splitlines()[:count]]
    for index, line in enumerate(lines):
        line["at"] += later * index
    return Ledger.loads("".join(f"{json.dumps(line)}\n" for line in lines))


TIMED = Case("c", "Hi", user=Lines("More."), stop=Stop(max_seconds=60))


async def test_time_spent_before_a_cut_counts_and_time_between_does_not() -> None:
    whole = await simulate(TIMED, CHATTY)
    ledger = await simulate(TIMED, CHATTY, ledger=cut(whole, 5, later=1.0))
    assert end_of(ledger).reason == "completed"
    assert 4 <= seconds(ledger) < 60


async def test_a_run_whose_time_is_used_up_cannot_go_on() -> None:
    whole = await simulate(TIMED, CHATTY)
    ledger = await simulate(TIMED, CHATTY, ledger=cut(whole, 5, later=30.0))
    assert end_of(ledger).reason == "max_seconds"


async def test_a_finished_run_is_not_played_again() -> None:
    case = Case("c", "Hi")
    whole = await simulate(case, CHATTY)
    again = await simulate(case, CHATTY, ledger=whole.copy())
    assert again == whole
    assert again.of(RunResumed) == []


async def test_another_agents_run_is_not_continued() -> None:
    case = Case("c", "Hi")
    whole = await simulate(case, CHATTY)
    other = Agent("other", model=Scripted(then="x"))
    with pytest.raises(BadLedger, match="recorded with another agent"):
        await simulate(case, other, ledger=cut(whole, 3))


async def test_a_case_without_an_agent_is_refused() -> None:
    with pytest.raises(BadCase, match="case 'c' has no agent"):
        await simulate(Case("c", "Hi"))


async def test_a_cases_own_agent_comes_first() -> None:
    own = Agent("own", model=Scripted("Mine."))
    ledger = await simulate(Case("c", "Hi", agent=own), CHATTY)
    assert messages(ledger)[-1].text == "Mine."
