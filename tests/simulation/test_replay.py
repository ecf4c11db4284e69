"""A recorded trial is run again from its ledger: nobody is asked, and what differs is said in words."""
# ruff: noqa: A006 - what a step is given is called input

import asyncio
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Lines,
    Scripted,
    UserAgents,
    loop,
    route,
    simulate,
    step,
    tool,
)
from greenroom.agents import map_over, race
from greenroom.errors import BadInput, BadLedger, ReplayDrifted
from greenroom.ledger import (
    ModelReplied,
    ToolCall,
    ToolReturned,
    call,
    diff,
    ended,
    state,
    with_state_change,
)
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.simulation import replay
from greenroom.world import Middleware


class Counting:
    """A model that says its lines and counts how often it was asked."""

    name = "counting"

    def __init__(self, *lines: Any) -> None:
        self.lines = lines
        self.asked = 0

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        line = self.lines[min(request.n, len(self.lines) - 1)]
        return ModelReply(calls=(line,)) if isinstance(line, ToolCall) else ModelReply(line)


ran: list[str] = []


@tool
def refund(order: int) -> str:
    """Refund an order."""
    ran.append("refund")
    return "really refunded"


@tool(yields=True)
def approve(amount: int) -> bool:
    """Ask the customer."""
    raise AssertionError


def recorded(case: Case, agent: Any, **more: Any) -> Ledger:
    # Another process has its bytes only.
    return Ledger.loads(asyncio.run(simulate(case, agent, **more)).dumps())


def replayed(ledger: Ledger, agent: Any, **more: Any) -> Ledger:
    return asyncio.run(replay(ledger, agent, **more))


def clerk(*lines: Any, instructions: str = "Be kind.", **more: Any) -> Agent:
    return Agent("clerk", model=Counting(*lines), instructions=instructions, **more)


REFUND = call("refund", order=7)
MOCKS = {"refund": with_state_change("ok", {"session": {"refunded": 7}})}


def counted(agent: Any) -> int:
    return agent.model.asked


def test_a_replay_asks_nobody_and_comes_to_the_same_end() -> None:
    agent = clerk(REFUND, "Done.", tools=[refund])
    ledger = recorded(Case("c", says="Refund 7", mocks=MOCKS), agent)
    asked = counted(agent)
    again = replayed(ledger, agent)
    assert counted(agent) == asked == 2
    assert diff(ledger, again) == []
    assert {e.source for e in again.of(ModelReplied)} == {"replayed"}
    assert {e.source for e in again.of(ToolReturned)} == {"replayed"}
    assert state(again) == state(ledger) == {"session": {"refunded": 7}}
    assert ended(again) is not None
    assert ran == []


def test_a_tool_that_really_ran_does_not_run_again() -> None:
    agent = clerk(REFUND, "Done.", tools=[refund])
    ledger = recorded(Case("c", says="Refund 7"), agent, allow_tools=["refund"])
    assert ran == ["refund"]
    assert diff(ledger, replayed(ledger, agent)) == []
    assert ran == ["refund"]
    ran.clear()


def test_a_user_and_their_answers_are_repeated() -> None:
    customer = Agent("customer", model=Counting("true"), output=bool)
    agent = clerk(call("approve", amount=5), "Done.", tools=[approve])
    user = UserAgents(tools={"approve": customer})
    ledger = recorded(Case("c", says="Refund 7", user=user), agent)
    assert diff(ledger, replayed(ledger, agent)) == []
    assert counted(customer) == 1
    lines = recorded(Case("c", says="Hello", user=Lines("And now?", "Bye")), clerk("A", "B", "C"))
    assert diff(lines, replayed(lines, clerk("A", "B", "C"))) == []


class Slow(Counting):
    """A model that never answers."""

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> ModelReply:
        self.asked += 1
        await asyncio.sleep(60)
        raise AssertionError


FLOWS: dict[str, Any] = {
    "lost race": lambda: race(Agent("slow", model=Slow()), clerk("A")),
    "branches": lambda: clerk("A") | Agent("other", model=Counting("B")),
    "race": lambda: race(clerk("A"), Agent("other", model=Counting("B"))),
    "map": lambda: step(lambda input: ["a", "b"], name="split") >> map_over(clerk("A", "B")),
    "loop": lambda: loop(clerk("A", "B"), until=lambda state: False, max_rounds=2),
    "route": lambda: route(lambda input: "a", a=clerk("A"), b=clerk("B")),
    "steps": lambda: clerk("A") >> step(lambda input: input.lower(), name="lower"),
}


@pytest.mark.parametrize("name", FLOWS)
def test_an_unchanged_flow_has_an_empty_difference(name: str) -> None:
    flow = FLOWS[name]()
    ledger = recorded(Case("c", says="Hello"), flow)
    assert diff(ledger, replayed(ledger, flow)) == [], ledger.dumps()


def test_a_run_that_failed_fails_the_same_way() -> None:
    agent = Agent("clerk", model=Scripted(REFUND), tools=[refund])
    ledger = recorded(Case("c", says="Refund 7", mocks={"refund": "ok"}), agent)
    assert ended(ledger).reason == "error"  # pyright: ignore[reportOptionalMemberAccess]
    assert diff(ledger, replayed(ledger, agent)) == []
    refused = recorded(Case("c", says="Refund 7"), agent)
    assert diff(refused, replayed(refused, agent)) == []


CHANGES: dict[str, Any] = {
    "instructions: 'Be kind.' when recorded, 'Be brief.' now": lambda: clerk(
        REFUND, "Done.", instructions="Be brief.", tools=[refund]
    ),
    "tools: ['refund'] when recorded, ['refund', 'approve'] now": lambda: clerk(
        REFUND, "Done.", tools=[refund, approve]
    ),
    "message 1 (user): 'Refund 7' when recorded, 'refund 7' now": lambda: (
        step(lambda input: input.lower(), name="lower") >> clerk(REFUND, "Done.", tools=[refund])
    ),
}


@pytest.mark.parametrize("words", CHANGES)
def test_drift_names_the_first_difference_in_words(words: str) -> None:
    before: Any = clerk(REFUND, "Done.", tools=[refund])
    if "message" in words:
        before = step(lambda input: input, name="lower") >> before
    ledger = recorded(Case("c", says="Refund 7", mocks=MOCKS), before)
    with pytest.raises(ReplayDrifted) as drift:
        replayed(ledger, CHANGES[words]())
    assert words in str(drift.value)


def test_a_question_that_is_not_asked_any_more_is_drift_too() -> None:
    ledger = recorded(Case("c", says="Hi"), clerk("A") >> Agent("two", model=Counting("B")))
    fewer = clerk("A") >> step(lambda input: input, name="two")
    with pytest.raises(ReplayDrifted, match="was asked when recorded, and is not asked now"):
        replayed(ledger, fewer)


def test_where_it_drifts_the_model_may_be_asked() -> None:
    ledger = recorded(Case("c", says="Hi"), clerk("Old."))
    changed = clerk("New.", instructions="Be brief.")
    again = replayed(ledger, changed, on_drift="live")
    assert [e.source for e in again.of(ModelReplied)] == ["live"]
    assert counted(changed) == 1
    found = diff(ledger, again)
    assert any("Be brief." in str(difference) for difference in found)
    assert any("'Old.' in the first, 'New.' in the second" in str(d) for d in found)


def test_what_drifts_to_a_tool_stays_behind_the_gate() -> None:
    ledger = recorded(Case("c", says="Hi"), clerk("Old.", tools=[refund]))
    changed = clerk(REFUND, "Done.", tools=[refund], instructions="Pay.")
    again = replayed(ledger, changed, on_drift="live")
    assert ended(again).error_type == "ToolRefused"  # pyright: ignore[reportOptionalMemberAccess]
    mocked = Case("c", says="Hi", mocks={"refund": "ok"})
    again = replayed(ledger, changed, on_drift="live", case=mocked)
    assert [e.source for e in again.of(ToolReturned)] == ["mock"]
    assert ran == []


def test_an_agent_that_swallows_the_drift_does_not_hide_it() -> None:
    def desk(message: str, ctx: Any) -> str:
        try:
            return ctx.ask(Scripted("Yes."), message + extra).text
        except Exception:
            return "Yes."

    extra = ""
    ledger = recorded(Case("c", says="Hi"), desk)
    assert diff(ledger, replayed(ledger, desk)) == []
    extra = "!"
    with pytest.raises(ReplayDrifted, match="message 1"):
        replayed(ledger, desk)


def test_a_ledger_without_questions_is_refused() -> None:
    agent = clerk("A")
    ledger = recorded(Case("c", says="Hi"), agent, omit_questions=True)
    with pytest.raises(BadLedger, match="does not say what its models were asked"):
        replayed(ledger, agent)
    with pytest.raises(BadInput, match="on_drift='skip' should be 'error' or 'live'"):
        replayed(ledger, agent, on_drift="skip")


def test_two_runs_differ_where_they_differ_and_not_in_their_ids() -> None:
    def run(line: str, own: str) -> Ledger:
        wanted = ToolCall("refund", {"order": 7}, own)
        agent = clerk(wanted, line, tools=[refund])
        return recorded(Case("c", says="Refund 7", mocks=MOCKS), agent)

    assert diff(run("Done.", "call_a"), run("Done.", "call_b")) == []
    words = [str(difference) for difference in diff(run("Done.", "a"), run("Sorry.", "b"))]
    assert words[0] == (
        "@1/clerk: model_replied.text is 'Done.' in the first, 'Sorry.' in the second"
    )


class Shouting(Middleware):
    """Changes replies, answers of tools and what the agent says, and counts what it hears."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    async def after_model(self, request: ModelRequest, reply: ModelReply) -> str | None:
        return f"{reply.text}!" if reply.text else None

    async def after_tool(self, call: Any, result: Any) -> Any:
        return f"{result}?"

    async def after_agent(self, agent: Any, output: Any) -> Any:
        return f"{output}."

    async def on_event(self, event: Any) -> None:
        self.heard.append(event.kind)


def test_middleware_had_its_say_when_it_was_recorded() -> None:
    agent = clerk(REFUND, "Done", tools=[refund])
    case = Case("c", says="Refund 7", mocks={"refund": "ok"})
    ledger = recorded(case, agent, middleware=[Shouting()])
    assert [e.text for e in ledger.of(ModelReplied)] == ["", "Done!"]
    listening = Shouting()
    again = replayed(ledger, agent, middleware=[listening])
    assert diff(ledger, again) == []
    assert listening.heard.count("model_replied") == 2
