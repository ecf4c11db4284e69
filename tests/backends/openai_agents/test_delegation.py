"""What an agent is and gives in the ledger, as in the other frameworks: also one used as a tool."""

from typing import Any

from pydantic import BaseModel

from agents import Agent, function_tool
from greenroom import Case, Scripted, UserAgents, call, fault, simulate
from greenroom.ledger import Ledger, tool_calls
from greenroom.ledger.events import (
    NodeEnded,
    NodeFailed,
    NodeStarted,
    Remembered,
    ToolCalled,
    ToolReturned,
)
from greenroom.metrics import node_sequence
from greenroom.models.model import ModelRequest
from greenroom.suite import score


def team(*, needs_approval: bool = False) -> Agent[Any]:
    @function_tool(needs_approval=needs_approval)
    def refund(order: int) -> str:
        raise RuntimeError("never reached in a rehearsal")

    helper = Agent("helper", model="gpt-4o", tools=[refund])
    return Agent("clerk", model="gpt-4o", tools=[helper.as_tool("ask_helper", "Ask.")])


def answer(request: ModelRequest) -> Any:
    """The clerk asks the helper twice at once; each helper refunds what it is asked for."""
    has_results = any(message.role == "tool" for message in request.messages)
    if request.agent == "clerk":
        asked = [call("ask_helper", input="1"), call("ask_helper", input="2")]
        return "done" if has_results else asked
    return f"paid {request.last}" if has_results else call("refund", order=int(request.last))


def case(**given: Any) -> Case:
    mocks = {"refund": lambda order: f"R{order}", **given.pop("mocks", {})}
    return Case("one", says="Money back!", mocks=mocks, **given)


def made(ledger: Ledger) -> list[tuple[str, Any, Any, str]]:
    return [(c.tool, c.args, c.result, c.error) for c in tool_calls(ledger)]


ASKED = [
    ("ask_helper", {"input": "1"}, "paid R1", ""),
    ("ask_helper", {"input": "2"}, "paid R2", ""),
    ("refund", {"order": 1}, "R1", ""),
    ("refund", {"order": 2}, "R2", ""),
]


async def test_runs_at_the_same_time_are_calls_with_places_and_inputs_of_their_own() -> None:
    ledger = await simulate(case(), team(), model=Scripted(*[answer] * 6))
    assert made(ledger) == ASKED
    assert [(event.path, event.input) for event in ledger.of(NodeStarted)] == [
        ("@1/clerk", "Money back!"),
        ("@1/clerk/helper", "1"),
        ("@1/clerk/helper#2", "2"),
    ]
    refunds = [event for event in ledger.of(ToolCalled) if event.tool == "refund"]
    assert [event.path for event in refunds] == ["@1/clerk/helper", "@1/clerk/helper#2"]
    asked = [event.path for event in ledger.of(ToolReturned) if event.tool == "ask_helper"]
    assert asked == ["@1/clerk", "@1/clerk"]
    (found,) = (await score(ledger, [node_sequence(["clerk", "helper", "helper"])])).values()
    assert found.passed, found


async def test_after_an_approval_inside_each_call_goes_on_where_it_was() -> None:
    one = case(user=UserAgents(tools={"refund": True}))
    model = Scripted(*[answer] * 6)
    whole = await simulate(one, team(needs_approval=True), model=model)
    paused = whole.of(Remembered)[0].seq
    cut = Ledger.loads(Ledger(whole[: paused + 1]).dumps())
    resumed = await simulate(one, team(needs_approval=True), model=model, ledger=cut)
    for ledger in (whole, resumed):
        assert made(ledger) == ASKED
        assert [event.path for event in ledger.of(ToolCalled)] == [
            "@1/clerk",
            "@1/clerk",
            "@1/clerk/helper",
            "@1/clerk/helper#2",
        ]
        assert len(ledger.of(NodeEnded)) == len(ledger.of(NodeStarted)) == 3


async def test_a_mock_answers_in_the_place_of_the_agent() -> None:
    for mock, found in (("fine", ("fine", "")), (fault("closed"), (None, "closed"))):
        one = case(mocks={"ask_helper": mock})
        ledger = await simulate(one, team(), model=Scripted(*[answer] * 6))
        assert [(c.tool, c.result, c.error) for c in tool_calls(ledger)] == [
            ("ask_helper", *found)
        ] * 2
        assert [event.path for event in ledger.of(NodeStarted)] == ["@1/clerk"]


async def test_an_agent_that_fails_inside_is_a_call_that_failed() -> None:
    def broken(request: ModelRequest) -> Any:
        if request.agent == "helper":
            raise ValueError("out of order")
        return answer(request)

    ledger = await simulate(case(), team(), model=Scripted(*[broken] * 6))
    assert [c.error for c in tool_calls(ledger)] == ["ValueError: out of order"] * 2
    paths = [event.path for event in ledger.of(NodeFailed)]
    assert paths == ["@1/clerk/helper", "@1/clerk/helper#2"]
    assert [event.path for event in ledger.of(NodeEnded)] == ["@1/clerk"]


async def test_what_an_agent_gives_is_its_output_and_not_what_its_model_wrote() -> None:
    class Receipt(BaseModel):
        order: int

    @function_tool
    def refund(order: int) -> str:
        raise RuntimeError("never reached in a rehearsal")

    typed = Agent("clerk", model="gpt-4o", output_type=Receipt)
    hasty = Agent("clerk", model="gpt-4o", tools=[refund], tool_use_behavior="stop_on_first_tool")
    for agent, said, output in (
        (typed, {"order": 1}, {"order": 1}),
        (hasty, call("refund", order=1), "R1"),
    ):
        ledger = await simulate(case(), agent, model=Scripted(said))
        assert [event.output for event in ledger.of(NodeEnded)] == [output]
