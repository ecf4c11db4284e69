"""kept_contract: what nodes changed, against what they declare."""

from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Scripted,
    StateSchema,
    call,
    rehearse,
    route,
    score,
    step,
    tool,
)
from greenroom.agents import Flow, keep, put, rename
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.ledger import with_state_change
from greenroom.metrics import kept_contract


class Billing(StateSchema):
    intent: str
    ticket: str | None = None


@step(writes=Billing.intent)
def classify(state: Billing) -> None:
    state.intent = "refund"


@step(writes=Billing.intent)
def meddle(state: Billing) -> None:
    state.intent = "refund"
    state.ticket = "T-1"


@step(reads=Billing.intent)
def look(state: Billing) -> str:
    state.ticket = "T-2"
    return state.intent


@step
def free(state: Any) -> str:
    state.session["ticket"] = "T-3"
    return "done"


def measured(flow: Flow, **options: Any) -> Outcome:
    case = Case("c", says="hi", metrics=[kept_contract()], **options)
    (result,) = rehearse(flow, [case]).results
    assert result.ended == "completed", result.error
    return result.scores["kept_contract"]


def test_nodes_that_change_what_they_declare_pass() -> None:
    found = measured(classify >> free)
    assert isinstance(found, Score)
    assert found.passed
    assert found.value == 1


def test_a_change_beyond_the_declaration_fails_and_is_named() -> None:
    found = measured(classify >> meddle >> free)
    assert isinstance(found, Score)
    assert (found.value, found.passed) == (0.5, False)
    assert found.reason == ("'meddle' changed session.ticket, but declares to write session.intent")


def test_a_node_that_declares_only_reads_may_change_nothing() -> None:
    found = measured(classify >> look)
    assert isinstance(found, Score)
    assert "'look' changed session.ticket, but declares to write no place" in found.reason


def test_without_any_declaration_nothing_is_measured() -> None:
    found = measured(free)
    assert isinstance(found, Unmeasured)
    assert "no node of the agent declares" in found.why


def test_declaring_nodes_that_never_ran_are_no_success() -> None:
    found = measured(route("session.kind", refund=classify, otherwise=free))
    assert isinstance(found, Unmeasured)
    assert "classify" in found.why


@pytest.mark.parametrize(
    "agent_writes, tool_writes, wrong",
    [
        ((), "ticket", ""),
        ("user.note", "ticket", ""),
        ("ticket", (), "changed session.ticket"),
        ((), "intent", "'desk' changed session.ticket by 'open_ticket', but declares to write"),
        ("user.note", (), "'desk' changed session.ticket by 'open_ticket'"),
    ],
)
def test_what_a_tool_changes_may_be_declared_by_the_tool_or_its_agent(
    agent_writes: Any, tool_writes: Any, wrong: str
) -> None:
    @tool(writes=tool_writes)
    def open_ticket() -> str:
        return "never run"

    agent = Agent(
        "desk",
        model=Scripted(call("open_ticket"), "Done."),
        tools=[open_ticket],
        writes=agent_writes,
    )
    mock = with_state_change("T-1", {Billing.ticket: "T-1"})
    found = measured(agent, mocks={"open_ticket": mock})
    assert isinstance(found, Score)
    if agent_writes == "ticket":
        assert found.passed  # what its tools do is the agent's own
    else:
        assert found.passed == (not wrong)
        assert wrong in found.reason


def test_part_of_a_value_may_be_declared() -> None:
    @step(writes="session.order.paid")
    def pay(state: Any) -> None:
        state.session["order"]["paid"] = True

    @step(writes="session.order.paid")
    def cheat(state: Any) -> None:
        state.session["order"] |= {"paid": True, "price": 0}

    known = {"session": {"order": {"price": 7}}}
    well = measured(pay >> free, state=known)
    assert isinstance(well, Score)
    assert well.passed
    found = measured(cheat, state=known)
    assert isinstance(found, Score)
    assert found.reason.startswith("'cheat' changed session.order.price, but")


def test_branches_are_judged_and_their_merge_is_not() -> None:
    note = step(lambda: "x", name="note", writes="user.note")
    found = measured(classify | note)
    assert isinstance(found, Score)
    assert found.passed
    bad = measured(meddle | note)
    assert isinstance(bad, Score)
    assert bad.value == 0.5


async def test_it_measures_a_ledger_that_was_saved() -> None:
    (result,) = rehearse(meddle, [Case("c", says="hi")]).results
    assert result.ledger is not None
    again = await score(Ledger.loads(result.ledger.dumps()), metrics=["kept_contract"])
    found = again["kept_contract"]
    assert not isinstance(found, NotApplicable | Unmeasured)
    assert not found.passed


def test_transforms_do_what_they_declare_and_are_not_judged() -> None:
    tidy = put(asked="x") >> rename(asked="question") >> keep("intent")
    found = measured(classify >> tidy)
    assert isinstance(found, Score)
    assert found.passed
    assert isinstance(measured(tidy), Unmeasured)
