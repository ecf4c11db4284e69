"""Hand-offs: who has the conversation, what they know of it, and what the gate sees of that."""

from collections.abc import Callable
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Expect,
    Ledger,
    Lines,
    Scripted,
    Stop,
    call,
    loop,
    rehearse,
    simulate,
    step,
    tool,
)
from greenroom.agents import Flow, Traffic, compile_flow, estimate, put, race, timeout
from greenroom.agents.graph import recast
from greenroom.agents.mermaid import mermaid
from greenroom.backends.native import NativeBackend
from greenroom.errors import BadAgent
from greenroom.ledger import (
    Decided,
    ModelCalled,
    NodeStarted,
    responses,
    spending_by_node,
    state,
    tool_calls,
)
from greenroom.metrics import node_sequence
from greenroom.models import ModelRequest
from rehearsals import end_of


class Heard(Scripted):
    """A script that remembers what it was asked."""

    def __init__(self, *replies: Any, then: Any = None) -> None:
        super().__init__(*replies, **({} if then is None else {"then": then}))
        self.requests: list[ModelRequest] = []

    async def respond(self, request: ModelRequest, on_delta: Any = None) -> Any:
        self.requests.append(request)
        return await super().respond(request, on_delta)

    @property
    def last(self) -> list[tuple[str, str]]:
        return [(message.role, message.text) for message in self.requests[-1].messages]


TO_BILLING = call("transfer_to_billing")
TO_CLERK = call("transfer_to_clerk")


@tool
def look(order: int) -> str:
    """Look an order up."""
    raise AssertionError("a tool body ran in a rehearsal")


def team(clerk: Any, billing: Any, **options: Any) -> Agent:
    """A clerk who may hand over to billing, which may hand back."""
    other = Agent(
        "billing",
        model=Heard(*billing) if isinstance(billing, list) else billing,
        tools=[look],
        handoffs=["clerk"],
        description="Knows all about money.",
    )
    model = Heard(*clerk) if isinstance(clerk, list) else clerk
    return Agent("clerk", model=model, tools=[look], handoffs=[other], **options)


async def played(agent: Flow, *says: str, **options: Any) -> Ledger:
    first, *more = says or ("Hello",)
    options.setdefault("user", Lines(*more) if more else None)
    return await simulate(Case("c", first, **options), agent)


def visited(ledger: Ledger) -> list[str]:
    """The agents that had the conversation, turn by turn: `@1/clerk`."""
    paths = [event.path for event in ledger.of(NodeStarted)]
    agents = [path for path in paths if not any(one.startswith(f"{path}/") for one in paths)]
    return [f"{path.partition('/')[0]}/{path.rpartition('/')[2]}" for path in agents]


async def test_the_receiver_answers() -> None:
    ledger = await played(team([TO_BILLING], ["You owe 7."]))
    assert responses(ledger) == ["You owe 7."]
    assert visited(ledger) == ["@1/clerk", "@1/billing"]
    assert [(event.path, event.choice) for event in ledger.of(Decided)] == [
        ("@1/clerk", "clerk"),  # who begins
        ("@1/clerk/clerk", "billing"),
    ]


async def test_handing_over_is_no_tool_call_and_needs_no_mock() -> None:
    ledger = await played(team([TO_BILLING], ["You owe 7."]))
    assert tool_calls(ledger) == []
    case = Case("c", "Hello", expect=Expect(tools=[], response="You owe 7."))
    assert rehearse(team([TO_BILLING], ["You owe 7."]), [case]).passed
    assert set(NativeBackend(team([""], [""])).tools) == {"look"}


async def test_the_model_sees_how_to_hand_over_and_what_for() -> None:
    clerk = Heard("Hi.")
    ledger = await played(team(clerk, ["x"]))
    offered = {tool.name: tool for tool in clerk.requests[0].tools}
    assert set(offered) == {"look", "transfer_to_billing"}
    assert "Knows all about money." in offered["transfer_to_billing"].description
    assert offered["transfer_to_billing"].parameters["properties"] == {}
    assert ledger.of(ModelCalled)[0].tools == ("look", "transfer_to_billing")


async def test_the_receiver_knows_what_was_said_and_found_before_it() -> None:
    billing = Heard("You owe 7.")
    agent = team([call("look", order=7), ["One moment.", TO_BILLING]], billing)
    await played(agent, "What do I owe?", mocks={"look": "7 EUR"})
    assert billing.last == [
        ("user", "What do I owe?"),
        ("assistant", ""),
        ("tool", "7 EUR"),
        ("assistant", "One moment."),
        ("tool", "The conversation was handed over to billing."),
    ]


async def test_the_conversation_may_come_back() -> None:
    clerk = Heard(TO_BILLING, "Anything else?")
    ledger = await played(team(clerk, [TO_CLERK]))
    assert responses(ledger) == ["Anything else?"]
    assert visited(ledger) == ["@1/clerk", "@1/billing", "@1/clerk#2"]
    assert clerk.last == [
        ("user", "Hello"),
        ("assistant", ""),
        ("tool", "The conversation was handed over to billing."),
        ("assistant", ""),
        ("tool", "The conversation was handed over to clerk."),
    ]


async def test_agents_that_only_hand_over_are_stopped() -> None:
    agent = team(Heard(then=TO_BILLING), Heard(then=TO_CLERK), max_steps=4)
    end = end_of(await played(agent))
    assert (end.reason, end.error_type) == ("error", "LoopLimit")
    assert "handed the conversation over 5 times" in end.error
    assert "Raise max_steps of 'clerk'" in end.error


async def test_the_next_turn_begins_with_who_answered_last() -> None:
    billing = Heard("You owe 7.", "Thank you.", TO_CLERK)
    clerk = Heard(TO_BILLING, "Goodbye.", "Hello again.")
    ledger = await played(team(clerk, billing), "What do I owe?", "I pay.", "Bye.", "Hello?")
    assert responses(ledger) == ["You owe 7.", "Thank you.", "Goodbye.", "Hello again."]
    assert visited(ledger) == [
        *("@1/clerk", "@1/billing", "@2/billing"),
        *("@3/billing", "@3/clerk", "@4/clerk"),
    ]
    assert clerk.last == [
        ("user", "What do I owe?"),
        ("assistant", ""),
        ("tool", "The conversation was handed over to billing."),
        ("assistant", "You owe 7."),
        ("user", "I pay."),
        ("assistant", "Thank you."),
        ("user", "Bye."),
        ("assistant", ""),
        ("tool", "The conversation was handed over to clerk."),
        ("assistant", "Goodbye."),
        ("user", "Hello?"),
    ]


async def test_it_is_the_same_in_a_loop_that_awaits_the_user() -> None:
    billing = Heard("You owe 7.", "Thank you.")
    flow = loop(team([TO_BILLING], billing), awaits_input=True, max_rounds=2)
    ledger = await played(flow, "What do I owe?", "I pay.")
    assert responses(ledger) == ["You owe 7.", "Thank you."]
    assert [text for role, text in billing.last if role == "user"] == ["What do I owe?", "I pay."]


async def test_of_two_at_once_the_first_counts_and_the_other_is_answered() -> None:
    refunds = Heard("Refunded.")
    billing = Agent("billing", model=Heard("You owe 7."))
    agent = Agent(
        "clerk",
        model=Heard([call("transfer_to_refunds"), TO_BILLING]),
        handoffs=[billing, Agent("refunds", model=refunds)],
    )
    ledger = await played(agent)
    assert responses(ledger) == ["Refunded."]
    assert refunds.last[-2:] == [
        ("tool", "The conversation was handed over to refunds."),
        ("tool", "Not handed over to billing: refunds was first."),
    ]


async def test_a_model_that_names_nobody_hears_whom_it_can_name() -> None:
    clerk = Heard(call("transfer_to_nobody"), "Hm.")
    ledger = await played(team(clerk, ["x"]))
    assert responses(ledger) == ["Hm."]
    assert "the tools are: look, transfer_to_billing" in clerk.last[-1][1]


async def test_tools_called_beside_it_are_called_first() -> None:
    billing = Heard("You owe 7.")
    agent = team([[TO_BILLING, call("look", order=7)]], billing)
    ledger = await played(agent, mocks={"look": "7 EUR"})
    assert [record.tool for record in tool_calls(ledger)] == ["look"]
    assert ("tool", "7 EUR") in billing.last
    refused = await played(team([[TO_BILLING, call("look", order=7)]], ["x"]))
    assert end_of(refused).error_type == "ToolRefused"
    assert visited(refused) == ["@1/clerk"]


async def test_a_receiver_in_the_middle_of_a_flow_gives_the_output() -> None:
    flow = put(x=1) >> team([TO_BILLING], ["You owe 7."]) >> (lambda input: input.upper())  # noqa: A006
    ledger = await played(flow)
    assert responses(ledger) == ["YOU OWE 7."]
    assert "@1/seq.1/clerk/billing" in [event.path for event in ledger.of(NodeStarted)]


async def test_only_who_answers_writes() -> None:
    billing = Agent("billing", model=Scripted("You owe 7."), writes="bill")
    agent = Agent("clerk", model=Scripted(TO_BILLING), handoffs=[billing], writes="answer")
    assert state(await played(agent)) == {"session": {"bill": "You owe 7."}}


@step
def names(input: Any) -> list[str]:
    return sorted(input)


async def test_teams_take_part_in_forks_and_guards() -> None:
    desk = team([TO_BILLING], ["You owe 7."])
    beside = desk | Agent("other", model=Scripted("Hm."))
    ledger = await played(beside >> names)
    assert responses(ledger) == ['["clerk", "other"]']
    slow = Agent("slow", model=Scripted("Late.", latency=30))
    assert responses(await played(race(team([TO_BILLING], ["7."]), slow))) == ["7."]
    assert responses(await played(timeout(team([TO_BILLING], ["7."]), 20))) == ["7."]
    failing = team([TO_BILLING], [OSError("down")]) // Agent("other", model=Scripted("Sorry."))
    assert responses(await played(failing)) == ["Sorry."]
    late = timeout(Agent("c", model=Scripted(call("transfer_to_slow")), handoffs=[slow]), 0.2)
    assert responses(await played(late // Agent("other", model=Scripted("Sorry.")))) == ["Sorry."]


async def test_a_receiver_that_fails_is_tried_again_as_any_agent() -> None:
    billing = Agent("billing", model=Scripted(OSError("down"), "You owe 7."), retries=1)
    agent = Agent("clerk", model=Scripted(TO_BILLING), handoffs=[billing])
    ledger = await played(agent)
    assert responses(ledger) == ["You owe 7."]
    assert visited(ledger) == [
        "@1/clerk",
        "@1/billing",
        "@1/billing~2",
    ]


async def test_a_receiver_may_wait_for_the_user() -> None:
    @tool(yields=True)
    def ask(question: str) -> str:
        raise AssertionError

    from greenroom import UserAgents

    billing = Agent("billing", model=Scripted(call("ask", question="How?"), "Paid."), tools=[ask])
    agent = Agent("clerk", model=Scripted(TO_BILLING), handoffs=[billing])
    ledger = await played(agent, user=UserAgents(tools={"ask": "in cash"}))
    assert responses(ledger) == ["Paid."]


def test_metrics_see_the_agents_one_after_the_other() -> None:
    metric = node_sequence(["clerk", "billing"])
    report = rehearse(team([TO_BILLING], ["You owe 7."]), [Case("c", "Hi", metrics=[metric])])
    assert report.passed, report.results[0].scores
    ledger = report.results[0].ledger
    assert ledger is not None
    assert {node: one.calls for node, one in spending_by_node(ledger).items()} == {
        "clerk/clerk": 1,
        "clerk/billing": 1,
    }


def test_a_team_is_in_snapshot_digest_and_drawing() -> None:
    graph = compile_flow(put(x=1) >> team(["a"], ["b"]))
    assert [node.id for node in graph.nodes()][2:] == [
        "seq.1/clerk",
        "seq.1/clerk/clerk",
        "seq.1/clerk/billing",
    ]
    with_it, without = team(["a"], ["b"]), Agent("clerk", model=Heard("a"), tools=[look])
    assert compile_flow(with_it).digest != compile_flow(without).digest
    facts: Any = compile_flow(with_it).snapshot
    assert (facts["kind"], facts["name"]) == ("team", "clerk")
    assert facts["parts"]["clerk"]["handoffs"] == ["billing"]
    assert facts["parts"]["billing"]["handoffs"] == ["clerk"]
    assert "handoffs" not in compile_flow(without).snapshot  # pyright: ignore[reportOperatorIssue]
    assert "billing" in mermaid(graph.snapshot)


def test_a_team_is_estimated_by_how_often_each_gets_the_conversation() -> None:
    flow = put(x=1) >> team(["a"], ["b"])
    never = estimate(flow, Traffic())
    assert {node: one.calls for node, one in never.nodes.items()} == {
        "seq.1/clerk/clerk": 1,
        "seq.1/clerk/billing": 0,
    }
    half = estimate(flow, Traffic(handoffs={"clerk": {"billing": 0.5}}, calls={"clerk": 2}))
    assert {node: one.calls for node, one in half.nodes.items()} == {
        "seq.1/clerk/clerk": 2,
        "seq.1/clerk/billing": 0.5,
    }


async def test_every_agent_of_a_team_is_recast() -> None:
    refunds = Agent("refunds", model=Scripted("r"))
    billing = Agent("billing", model=Scripted("b"), handoffs=[refunds, "clerk"])
    clerk = Agent("clerk", model=Scripted("c"), handoffs=[billing, refunds])
    replies = Scripted(TO_BILLING, then="Done.")
    ledger = await played(recast(clerk, replies))
    assert responses(ledger) == ["Done."]
    assert visited(ledger) == ["@1/clerk", "@1/billing"]
    assert clerk.model is not replies
    [again] = rehearse(NativeBackend(clerk).with_model(replies), [Case("c", "Hi")]).results
    assert again.ledger is not None
    assert responses(again.ledger) == ["Done."]


async def test_a_receiver_can_be_run_alone() -> None:
    agent = team([TO_BILLING], ["You owe 7."])
    ledger = await played(agent, target="billing")
    assert (responses(ledger), visited(ledger)) == (["You owe 7."], ["@1/billing"])
    whole = await played(put(x=1) >> agent, target="clerk")
    assert visited(whole) == ["@1/clerk", "@1/billing"]


def clerk_with(*handoffs: Any, **options: Any) -> Agent:
    return Agent("clerk", model=Scripted("x"), handoffs=handoffs, **options)


def named(name: str, *handoffs: Any) -> Agent:
    return Agent(name, model=Scripted("x"), handoffs=handoffs)


@tool
def transfer_to_billing() -> str:
    """A tool of that name."""
    return ""


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: clerk_with(named("clerk")), "hands over to itself"),
    (lambda: clerk_with("clerk"), "hands over to itself"),
    (lambda: clerk_with(put(x=1)), "it can hand over to an Agent"),
    (lambda: clerk_with(named("a"), named("a")), "two agents named 'a'"),
    (lambda: clerk_with(named("billing"), tools=[transfer_to_billing]), "rename the tool"),
    (lambda: Agent("a", model=Scripted("x"), handoffs="billing"), "a list of agents"),
    (lambda: compile_flow(clerk_with("billing")), "its team is clerk"),
    (lambda: compile_flow(clerk_with(named("a", "b"))), "'a' hands over to 'b', but its team is"),
    (lambda: compile_flow(clerk_with(named("a", named("b")), named("b"))), "two agents named 'b'"),
    (lambda: compile_flow(clerk_with(named("a", named("clerk")))), "two agents named 'clerk'"),
]


@pytest.mark.parametrize("make, why", WRONG, ids=[why for _, why in WRONG])
def test_what_cannot_be_meant_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(BadAgent) as refused:
        make()
    assert why in str(refused.value)


async def test_a_run_that_is_cut_at_a_hand_over_goes_on_with_the_receiver() -> None:
    def agent() -> Agent:
        return team([TO_BILLING, "Bye."], ["You owe 7.", TO_CLERK])

    stop = Stop(max_turns=5)
    case = Case("c", "What do I owe?", user=Lines("Thanks."), stop=stop)
    whole = await simulate(case, agent())
    assert responses(whole) == ["You owe 7.", "Bye."]
    for k in range(1, len(whole)):
        lines = whole.dumps().splitlines(keepends=True)[:k]
        again = await simulate(case, agent(), ledger=Ledger.loads("".join(lines)))
        assert responses(again) == responses(whole), k
        assert visited(again) == visited(whole), k
