"""Approvals, teams and resources in live conversations, and such conversations as cases."""

from typing import Annotated, Any

from greenroom import Agent, Case, Ledger, Scripted, UserAgents, call, perform, simulate, step, tool
from greenroom.agents import approved, resource
from greenroom.cases import harvest
from greenroom.ledger import responses, tool_calls


@step
def payment(input: Any) -> str:
    return f"paid for {input}"


def again(ledger: Ledger) -> Ledger:
    """What another process would find."""
    return Ledger.loads(ledger.dumps())


async def test_an_approval_waits_until_another_process_answers_it() -> None:
    for answer, said in ((True, ["paid for tea"]), ({"approved": False, "reason": "no"}, ["no"])):
        flow = approved(payment, "Pay for {input}?", otherwise=step(lambda: "no", name="instead"))
        waiting = await perform(flow, "tea", store=False)
        assert responses(waiting) == []
        answers: Any = {"approve_payment": answer}
        done = await perform(flow, answers=answers, ledger=again(waiting), store=False)
        assert responses(done) == said


async def test_the_next_turn_of_a_team_goes_on_in_another_process() -> None:
    def clerk() -> Agent:
        billing = Agent("billing", model=Scripted("You owe 7.", "Thank you."))
        return Agent("clerk", model=Scripted(call("transfer_to_billing")), handoffs=[billing])

    first = await perform(clerk(), "What do I owe?", store=False)
    second = await perform(clerk(), "Here it is.", ledger=again(first), store=False)
    assert responses(second) == ["You owe 7.", "Thank you."]


async def test_a_live_turn_opens_its_resources_and_closes_them() -> None:
    log: list[str] = []

    class Db:
        def close(self) -> None:
            log.append("closed")

    def open_db() -> Db:
        log.append("opened")
        return Db()

    @tool
    def refund(order: int, db: Annotated[Db, resource]) -> str:
        log.append(f"refunded {order}")
        return "ok"

    agent = Agent("clerk", model=Scripted(call("refund", order=7), "Done.", "Bye."), tools=[refund])
    ledger = await perform(agent, "Refund 7.", store=False, resources={"db": open_db})
    await perform(agent, "Bye.", ledger=ledger, store=False, resources={"db": open_db})
    assert log == ["opened", "refunded 7", "closed"]


async def test_a_conversation_with_approvals_and_hand_overs_becomes_a_case() -> None:
    billing = Agent("billing", model=Scripted("You owe 7."))
    clerk = Agent("clerk", model=Scripted(call("transfer_to_billing")), handoffs=[billing])
    flow = clerk >> approved(payment, "Pay?")
    user = UserAgents(tools={"approve_payment": {"approved": True, "reason": "fine"}})
    ledger = await simulate(Case("first", "What do I owe?", user=user), flow)
    case = harvest(ledger, "second")
    replayed = await simulate(case, flow)
    assert responses(replayed) == responses(ledger) == ["paid for You owe 7."]
    assert [one.tool for one in tool_calls(replayed)] == ["approve_payment"]
