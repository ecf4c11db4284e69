"""A map runs one flow for every item of a list: a list in, a list out, in its order."""

import asyncio
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    StateSchema,
    Stop,
    UserAgents,
    call,
    loop,
    simulate,
    step,
    tool,
    with_state_change,
)
from greenroom.agents import Flow, compile_flow, map_over
from greenroom.errors import BadAgent
from greenroom.ledger import (
    BranchCancelled,
    InvocationEnded,
    ModelCalled,
    NodeFailed,
    NodeStarted,
    StateConflicted,
    state,
)
from greenroom.models import ModelRequest
from rehearsals import end_of


@tool(yields=True)
def ask(question: str) -> str:
    """Ask the user."""
    raise AssertionError("a yielding tool has no body to run")


async def played(flow: Flow, ledger: Ledger | None = None, **options: Any) -> Ledger:
    case = Case("map", "begin", stop=Stop(max_seconds=20), **options)
    return await simulate(case, flow, ledger=ledger)


def output(ledger: Ledger) -> Any:
    return ledger.of(InvocationEnded)[-1].output


@step
def same(input: Any) -> Any:
    return input


def shout(input: Any) -> str:
    return f"{input}!"


def listed(*items: Any) -> Flow:
    return step(lambda: list(items), name="listed")


async def test_outputs_come_in_the_order_of_the_list_however_long_each_takes() -> None:
    async def work(input: int) -> int:
        for _ in range(20 - input):
            await asyncio.sleep(0)
        return input * 10

    ledger = await played(listed(1, 9, 5) >> map_over(work))
    assert output(ledger) == [10, 90, 50]
    assert [e.path for e in ledger.of(NodeStarted)][2:] == [
        "@1/seq.1/par",
        "@1/seq.1/par.0/work",
        "@1/seq.1/par.1/work",
        "@1/seq.1/par.2/work",
    ]


async def test_an_empty_list_gives_an_empty_list() -> None:
    assert output(await played(listed() >> map_over(lambda: 1))) == []


@pytest.mark.parametrize("at_once", [1, 2, 5])
async def test_no_more_items_are_at_work_than_allowed(at_once: int) -> None:
    working, most = 0, 0

    async def work() -> None:
        nonlocal working, most
        working += 1
        most = max(most, working)
        await asyncio.sleep(0.001)
        working -= 1

    await played(listed(*range(6)) >> map_over(work, at_once=at_once))
    assert most == at_once


async def test_the_list_of_the_state_is_read_once() -> None:
    """What is added to it while the map runs is not gone over, nor after a cut."""
    seen: list[Any] = []

    @step
    def greedy(input: Any, state: Any) -> Any:
        seen.append(input)
        state.session["drafts"] = [*state.session["drafts"], f"{input}+"]
        return input

    given = {"session": {"drafts": ["a", "b"]}}
    flow = map_over(greedy, "drafts") >> same
    whole = await played(flow, state=given)
    assert output(whole) == ["a", "b"]
    assert whole.of(NodeStarted)[1].items == ["a", "b"]
    assert whole.of(NodeStarted)[0].items is None
    for k in range(1, len(whole)):
        again = await played(flow, Ledger.loads(Ledger(whole[:k]).dumps()), state=given)
        assert output(again) == ["a", "b"], k
        assert [e.items for e in again.of(NodeStarted) if e.items] == [["a", "b"]]


async def test_what_the_user_does_to_the_list_meanwhile_does_not_count() -> None:
    @tool
    def shorten(to: list[str]) -> Any:
        """Change the list of the agent."""
        return with_state_change("shortened", {"session": {"drafts": to}})

    lines = (call("shorten", to=["c"]), "Done.")
    user = UserAgents(tools={"ask": Agent("user", model=Scripted(*lines, *lines), tools=[shorten])})
    asker = Agent("asker", model=Scripted(call("ask", question="Which?"), "Asked."), tools=[ask])
    given = {"session": {"drafts": ["a", "b"]}}
    ledger = await played(map_over(asker, "drafts"), user=user, state=given)
    assert output(ledger) == ["Asked.", "Asked."]
    assert state(ledger)["session"]["drafts"] == ["c"]


async def test_the_place_may_be_a_field_of_a_schema() -> None:
    class Desk(StateSchema):
        drafts: list[str]

    flow = map_over(shout, Desk.drafts)
    assert output(await played(flow, state={"session": {"drafts": ["x"]}})) == ["x!"]


@pytest.mark.parametrize("flow", [map_over(lambda: 1), map_over(lambda: 1, "nowhere")])
async def test_what_is_no_list_is_the_agents_failure_and_another_may_take_over(flow: Flow) -> None:
    end = end_of(await played(flow))
    assert end.error_type == "AgentFailed"
    assert "goes over a list, but found" in end.error
    assert output(await played(flow // (lambda: "else"))) == "else"


async def test_an_item_never_sees_another() -> None:
    shown: dict[str, list[str]] = {}

    def reply(request: ModelRequest) -> str:
        shown[request.path] = [message.text for message in request.messages]
        return f"{request.n}: {request.messages[-1].text}"

    reviewer = Agent("reviewer", model=Scripted(then=reply))

    @step
    def peek(input: Any, state: Any) -> Any:
        seen = sorted(state.session)
        state.session[input] = seen
        return input

    flow = listed("a", "b", "c") >> map_over(peek >> reviewer, at_once=1)
    ledger = await played(flow)
    assert output(ledger) == ["0: a", "0: b", "0: c"]
    assert sorted(shown.values()) == [["a"], ["b"], ["c"]]
    assert state(ledger)["session"] == {"a": [], "b": [], "c": []}


async def test_in_a_later_round_an_item_knows_all_of_the_earlier_ones() -> None:
    def reply(request: ModelRequest) -> str:
        return f"{request.n} of {len(request.messages)}"

    reviewer = Agent("reviewer", model=Scripted(then=reply))
    flow = loop(listed("a", "b") >> map_over(reviewer), max_rounds=2)
    assert output(await played(flow)) == ["2 of 5", "2 of 5"]


async def test_states_merge_in_the_order_of_the_list_and_conflicts_are_noted() -> None:
    async def work(input: int, state: Any) -> None:
        for _ in range(9 - input):
            await asyncio.sleep(0)
        state.session["last"] = input
        state.session[str(input)] = True

    ledger = await played(listed(1, 2, 3) >> map_over(work))
    assert state(ledger)["session"] == {"last": 3, "1": True, "2": True, "3": True}
    assert [(e.key, e.values) for e in ledger.of(StateConflicted)] == [("last", [1, 2, 3])]


async def test_items_that_wait_are_asked_for_together_and_none_holds_up_another() -> None:
    def reply(request: ModelRequest) -> Any:
        given = request.messages[0].text
        if len(request.messages) == 1 and given != "b":
            return call("ask", question=f"{given}?")
        return f"{given}: {request.messages[-1].text}"

    user = UserAgents(
        tools={"ask": Agent("user", model=Scripted(then=lambda request: "an answer"))}
    )
    asker = Agent("asker", model=Scripted(then=reply), tools=[ask])
    flow = listed("a", "b", "c") >> map_over(asker, at_once=1)
    ledger = await played(flow, user=user)
    assert output(ledger) == ["a: an answer", "b: b", "c: an answer"]
    assert len([e for e in ledger if e.kind == "answered"]) == 1


async def test_one_item_that_fails_stops_the_others() -> None:
    async def work(input: int) -> int:
        if input == 2:
            raise RuntimeError("two is bad")
        await asyncio.sleep(30)
        return input

    flow = listed(1, 2, 3, 4, 5) >> map_over(work, at_once=3)
    whole = await played(flow)
    assert "two is bad" in end_of(whole).error
    assert [e.path for e in whole.of(BranchCancelled)] == [
        "@1/seq.1/par.0/work",
        "@1/seq.1/par.2/work",
    ]
    failed = next(e.seq for e in whole if e.path == "@1/seq.1/par" and e.kind == "node_failed")
    for k in range(failed + 1, len(whole)):
        again = await played(flow, Ledger.loads(Ledger(whole[:k]).dumps()))
        assert end_of(again).error == end_of(whole).error
        for kind in (BranchCancelled, NodeFailed):
            assert [e.path for e in again.of(kind)] == [e.path for e in whole.of(kind)]


async def test_a_script_is_asked_alike_for_every_item() -> None:
    ledger = await played(listed(1, 2) >> map_over(Agent("a", model=Scripted("Yes."))))
    assert output(ledger) == ["Yes.", "Yes."]
    assert [e.n for e in ledger.of(ModelCalled)] == [0, 0]


def test_a_map_is_part_of_the_graph_like_any_flow() -> None:
    clerk = Agent("clerk", model=Scripted("Hello."))
    graph = compile_flow(map_over(clerk, "user.drafts", at_once=2))
    assert [node.id for node in graph.nodes()] == ["par", "par.*/clerk"]
    facts: Any = graph.snapshot
    assert (facts["kind"], facts["over"], facts["at_once"]) == ("map_over", "user.drafts", 2)
    assert repr(map_over(clerk, "x")) == "map_over(Agent('clerk'), 'session.x', at_once=4)"
    assert compile_flow(map_over(clerk)).digest != compile_flow(map_over(clerk, "x")).digest


@pytest.mark.parametrize("at_once", [0, -1, True, 1.5, "4"])
def test_a_number_of_items_at_once_that_is_none_is_refused(at_once: Any) -> None:
    with pytest.raises(BadAgent, match="at_once"):
        map_over(lambda: 1, at_once=at_once)


@pytest.mark.parametrize("over", [["a", "b"], 7, "a..b"])
def test_a_list_has_one_place(over: Any) -> None:
    with pytest.raises(BadAgent, match="over="):
        map_over(lambda: 1, over)
