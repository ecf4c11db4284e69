"""Approvals: what is asked, who answers, and that a no keeps the guarded part from beginning."""

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
    UserAgents,
    call,
    fault,
    loop,
    rehearse,
    simulate,
    step,
    tool,
)
from greenroom.agents import Flow, approved, compile_flow, put
from greenroom.agents.graph import recast
from greenroom.agents.mermaid import mermaid
from greenroom.backends.native import NativeBackend
from greenroom.cases import in_turn
from greenroom.errors import BadAgent, BadCase
from greenroom.ledger import Decided, NodeStarted, YieldOpened, responses, tool_calls
from greenroom.suite.mock_suggestions import unmocked_tools
from rehearsals import end_of

STARTED: list[Any] = []


@step
def payment(input: Any) -> str:
    STARTED.append(input)
    return f"paid {input['amount']}"


@step
def by_hand(input: Any) -> str:
    return f"by hand: {input['input']['amount']} ({input['reason']})"


@step
def order() -> dict[str, int]:
    return {"amount": 700}


def big(input: Any) -> bool:
    return input["amount"] > 500


ASK = "Pay {input[amount]}?"
PAY = order >> approved(payment, ASK, otherwise=by_hand)


async def played(flow: Flow, answer: Any = None, **options: Any) -> Ledger:
    STARTED.clear()
    if answer is not None:
        options["user"] = UserAgents(tools={"approve_payment": answer})
    return await simulate(Case("c", "Pay.", **options), flow)


YES = [True, {"approved": True}, {"approved": True, "reason": "fine"}, {"confirmed": True}, "true"]
NO = [False, {"approved": False, "reason": "too much"}, {"confirmed": False}, "false"]
OTHER = [
    *("maybe", 1, 0, None, [], "yes, of course", "{}"),
    *({}, {"approved": 1}, {"approved": "yes"}, {"approved": True, "x": 1}),
    {"approved": True, "reason": 5},
]


@pytest.mark.parametrize("door", ["user", "mock"])
@pytest.mark.parametrize("answer", [*YES, *NO], ids=str)
async def test_only_a_yes_leads_to_the_guarded_part(answer: Any, door: str) -> None:
    mocks = {"mocks": {"approve_payment": answer}} if door == "mock" else {}
    ledger = await played(PAY, answer if door == "user" else None, **mocks)
    if answer in YES:
        assert (responses(ledger), STARTED) == (["paid 700"], [{"amount": 700}])
    else:
        reason = answer.get("reason", "") if isinstance(answer, dict) else ""
        assert (responses(ledger), STARTED) == ([f"by hand: 700 ({reason})"], [])
        assert not [e for e in ledger.of(NodeStarted) if e.node.endswith("payment")]


@pytest.mark.parametrize("validate", ["strict", "coerce", "off"])
@pytest.mark.parametrize("answer", OTHER, ids=str)
async def test_what_is_neither_yes_nor_no_ends_the_case(answer: Any, validate: Any) -> None:
    user = UserAgents(tools={"approve_payment": answer}, validate=validate)
    ledger = await played(PAY, user=user)
    assert (end_of(ledger).phase, STARTED) == ("user_agent", []), end_of(ledger)
    ledger = await played(PAY, mocks={"approve_payment": answer})
    assert (end_of(ledger).error_type, STARTED) == ("MockBroke", []), end_of(ledger)


@pytest.mark.parametrize("words, is_yes", [("Yes.", True), ("no", False)])
async def test_a_user_who_speaks_may_say_yes_or_no(words: str, is_yes: bool) -> None:
    user = UserAgents(tools={"approve_payment": words}, validate="coerce")
    await played(PAY, user=user)
    assert bool(STARTED) == is_yes


async def test_an_agent_that_speaks_for_the_user_is_asked_again_if_its_answer_does_not_fit() -> (
    None
):
    boss = Agent("boss", model=Scripted("I would say so", "true"))
    ledger = await played(PAY, boss)
    assert responses(ledger) == ["paid 700"]


async def test_the_user_hears_the_question_and_sees_the_input() -> None:
    heard: list[str] = []

    def boss(input: str) -> bool:
        heard.append(input)
        return True

    ledger = await played(PAY, boss)
    [opened] = ledger.of(YieldOpened)
    assert opened.tool == "approve_payment"
    assert opened.args == {"question": "Pay 700?", "input": {"amount": 700}}
    assert "Pay 700?" in heard[0]
    [asked] = tool_calls(ledger)
    assert (asked.tool, asked.result) == ("approve_payment", True)


async def test_a_question_may_be_a_function_and_may_mention_the_state() -> None:
    def question(input: Any, state: Any) -> str:
        return f"{state.session['who']} pays {input['amount']}?"

    for asked in (question, "{state[session][who]} pays {input[amount]}?"):
        flow = put(who="Ada") >> order >> approved(payment, asked)
        ledger = await played(flow, True)
        assert ledger.of(YieldOpened)[0].prompt == "Ada pays 700?"


@pytest.mark.parametrize(
    "when, is_asked",
    [
        (big, True),
        (lambda: False, False),
        ({"session": {"careful": True}}, True),
        ({"session": {"careful": False}}, False),
        ("session.careful", True),
        ("session.easy", False),
        ("session.unknown", True),  # nothing says that it need not be asked
    ],
)
async def test_it_is_asked_only_when_it_must_be(when: Any, is_asked: bool) -> None:
    flow = order >> approved(payment, ASK, when=when, otherwise=by_hand)
    state = {"session": {"careful": True, "easy": False}}
    ledger = await played(flow, False, state=state)
    assert bool(STARTED) != is_asked
    assert len(ledger.of(YieldOpened)) == is_asked
    choices = [event.choice for event in ledger.of(Decided)]
    assert choices == (["asked", "denied"] if is_asked else ["unasked"])


async def test_when_is_decided_once() -> None:
    asked: list[int] = []

    def once() -> bool:
        asked.append(1)
        return len(asked) == 1

    ledger = await played(order >> approved(payment, ASK, when=once), True)
    assert (responses(ledger), asked) == (["paid 700"], [1])


async def test_a_no_without_another_way_is_a_failure_of_the_agent() -> None:
    answer = {"approved": False, "reason": "not today"}
    ledger = await played(order >> approved(payment, ASK), answer)
    end = end_of(ledger)
    assert (end.reason, end.phase) == ("error", "agent")
    assert "payment was not approved" in end.error
    assert "not today" in end.error
    assert STARTED == []


async def test_an_approval_that_cannot_be_asked_for_is_none() -> None:
    ledger = await played(PAY, mocks={"approve_payment": fault("the boss is away")})
    assert (end_of(ledger).phase, STARTED) == ("agent", [])
    assert "the boss is away" in end_of(ledger).error


async def test_nobody_answers() -> None:
    ledger = await played(PAY)
    assert "user=UserAgents(tools={'approve_payment'" in end_of(ledger).error
    assert STARTED == []


async def test_every_round_is_asked_for_anew() -> None:
    flow = loop(order >> approved(payment, ASK, otherwise=by_hand), max_rounds=3)
    await played(flow, Lines(True, False, True))
    assert len(STARTED) == 2
    await played(flow, mocks={"approve_payment": in_turn(False, True, False)})
    assert len(STARTED) == 1


@tool
def pay(amount: int) -> str:
    """Pay."""
    raise AssertionError("a tool body ran in a rehearsal")


async def test_an_agent_is_guarded_whole_and_needs_its_own_mocks() -> None:
    clerk = Agent("clerk", model=Scripted(call("pay", amount=7), "Paid."), tools=[pay])
    flow = approved(clerk, "Let {input} go on?", name="desk")
    user = UserAgents(tools={"approve_desk": True})
    ledger = await simulate(Case("c", "Pay 7.", user=user, mocks={"pay": "ok"}), flow)
    assert responses(ledger) == ["Paid."]
    [refused] = rehearse(flow, [Case("c", "Pay 7.", user=user)]).results
    assert refused.status == "error"
    assert [facts.name for facts in unmocked_tools(flow)] == ["pay"]


def test_a_case_can_expect_the_question() -> None:
    case = Case(
        "c",
        "Pay.",
        user=UserAgents(tools={"approve_payment": True}),
        expect=Expect(tools=[call("approve_payment", question="Pay 700?", input={"amount": 700})]),
    )
    assert rehearse(PAY, [case]).passed


def test_a_misspelt_name_is_found_before_the_run() -> None:
    with pytest.raises(BadCase, match=r"'approve_paymnet'.*Did you mean 'approve_payment'"):
        rehearse(PAY, [Case("c", "Pay.", mocks={"approve_paymnet": True})])


@tool(name="approve_payment")
def approve(question: str) -> bool:
    """Another thing of that name."""
    return True


WRONG: list[tuple[Callable[[], object], str]] = [
    (lambda: approved(order >> payment, ASK), "name='payment' asks by approve_payment"),
    (lambda: approved(payment, ""), "has an empty question"),
    (lambda: approved(payment, "Pay {amount}?"), "mentions {amount}"),
    (lambda: approved(payment, "Pay {input?"), "cannot be read"),
    (lambda: approved(payment, lambda other: other), "'other'"),
    (lambda: approved(payment, 5), "needs a question"),  # pyright: ignore[reportArgumentType]
    (lambda: approved(payment, ASK, when=lambda other: other), "'other'"),
    (lambda: approved("payment", ASK), "cannot be part of a flow"),
    (lambda: approved(payment, ASK, name="a b"), "use letters"),
    (
        lambda: compile_flow(
            Agent("a", model=Scripted("x"), tools=[approve]) >> approved(payment, ASK)
        ),
        "there is a tool 'approve_payment' and an approval",
    ),
]


@pytest.mark.parametrize("make, why", WRONG, ids=[why for _, why in WRONG])
def test_what_cannot_be_meant_is_refused(make: Callable[[], object], why: str) -> None:
    with pytest.raises(BadAgent) as refused:
        make()
    assert why in str(refused.value)


def test_an_approval_is_in_snapshot_digest_and_drawing() -> None:
    flows = [approved(payment, ASK), approved(payment, "Pay?"), approved(payment, ASK, when=big)]
    flows += [approved(payment, ASK, otherwise=by_hand), approved(payment, ASK, name="other")]
    assert len({compile_flow(flow).digest for flow in flows}) == len(flows)
    graph = compile_flow(PAY)
    assert [node.id for node in graph.nodes()][2:] == [
        "seq.1/approval",
        "seq.1/approval.body/payment",
        "seq.1/approval.otherwise/by_hand",
    ]
    drawn = mermaid(graph.snapshot)
    assert "approve_payment" in drawn
    assert "by_hand" in drawn


def test_an_agent_inside_is_found_and_recast() -> None:
    flow = approved(Agent("clerk", model=Scripted("a")), "Go on?", otherwise=by_hand)
    assert NativeBackend(flow).part("clerk").graph.root.id == "clerk"
    other = compile_flow(recast(flow, Scripted("b")))
    assert other.digest != compile_flow(flow).digest
    assert other.part("by_hand") is by_hand
    assert set(NativeBackend(flow).tools) == {"approve_clerk"}
