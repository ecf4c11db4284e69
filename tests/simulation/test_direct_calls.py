"""Tools that code of a case calls by itself: in steps, mocks and named bodies."""

from functools import wraps
from typing import Any

import pytest

from greenroom import Agent, Case, Ledger, Scripted, call, evaluate, live, simulate, step, tool
from greenroom.errors import ToolRefused
from greenroom.ledger.events import ToolReturned
from greenroom.ledger.questions import ended, tool_calls
from greenroom.metrics import called, forbidden_calls
from greenroom.world.live import LiveWorld
from greenroom.world.records import ToolError
from greenroom.world.world import Around, Pending, Returned, SealedBody, ToolBody, ToolRequest

ACTED: list[str] = []


@pytest.fixture(autouse=True)
def nothing_acted():
    ACTED.clear()
    yield
    ACTED.clear()


@tool
def pay(amount: int, note: str = "") -> dict[str, Any]:
    """Pay."""
    ACTED.append(f"paid {amount}")
    return {"paid": amount}


@tool
async def mail(to: str) -> str:
    """Mail."""
    ACTED.append(f"mailed {to}")
    return "sent"


@step
def paying(input: str) -> str:
    return str(pay(5))


@step
async def paying_on_the_loop(input: str) -> str:
    return str(pay(5, note="now"))


@step
async def mailing(input: str) -> str:
    return await mail("ann")


STEPS = [(paying, "pay"), (paying_on_the_loop, "pay"), (mailing, "mail")]


@pytest.mark.parametrize("agent, name", STEPS)
async def test_a_step_s_call_is_refused_unless_the_tool_is_named(agent: Any, name: str) -> None:
    ledger = await simulate(Case("c", "Hi"), agent)
    assert ended(ledger).error_type == "ToolRefused"  # pyright: ignore[reportOptionalMemberAccess]
    assert ACTED == []


@pytest.mark.parametrize("agent, name", STEPS)
async def test_a_step_s_call_is_answered_by_the_mock(agent: Any, name: str) -> None:
    case = Case("c", "Hi", mocks={name: "mocked"}, metrics=[called(name)])
    report = await evaluate(agent, case)
    assert report.passed, str(report)
    ledger = report.results[0].ledger
    assert ledger is not None
    assert ledger.index_of().spoken["@1"].text == "mocked"
    assert ACTED == []


@pytest.mark.parametrize("agent, name", STEPS)
async def test_a_step_s_call_of_a_named_tool_is_in_the_ledger(agent: Any, name: str) -> None:
    case = Case("c", "Hi", allow_tools=[name], metrics=[forbidden_calls(name)])
    report = await evaluate(agent, case)
    assert len(ACTED) == 1
    assert report.results[0].status == "failed"


async def test_a_named_body_s_own_calls_are_in_the_ledger_too() -> None:
    @tool
    def refund(order: int) -> str:
        """Refund."""
        return str(pay(order))

    desk = Agent("desk", model=Scripted(call("refund", order=7), "done"), tools=[refund])
    case = Case("c", "Hi", allow_tools=["refund"], mocks={"pay": {"paid": 0}})
    ledger = await simulate(case, desk)
    assert [c.tool for c in tool_calls(ledger)] == ["refund", "pay"]
    assert ACTED == []


async def test_a_mock_that_calls_the_tool_it_stands_for_is_refused() -> None:
    desk = Agent("desk", model=Scripted(call("pay", amount=5), "done"), tools=[pay])

    def stand_in(amount: int) -> Any:
        return pay(amount)

    ledger = await simulate(Case("c", "Hi", mocks={"pay": stand_in}), desk)
    assert "bypassing the gate" in ended(ledger).error  # pyright: ignore[reportOptionalMemberAccess]
    assert ACTED == []


@wraps(pay)
def logged_pay(amount: int) -> Any:
    """Call the tool, as a decorator's function does."""
    ACTED.append("logged")
    return pay(amount)


@step
def paying_by_another_function(input: str) -> str:
    return str(logged_pay(5))


@pytest.mark.parametrize(
    "given", [{"allow_tools": [logged_pay]}, {"mocks": {"pay": live(logged_pay)}}]
)
async def test_a_decorator_s_function_around_a_tool_names_the_tool(given: Any) -> None:
    ledger = await simulate(Case("c", "Hi", **given), paying_by_another_function)
    assert [c.tool for c in tool_calls(ledger)] == ["pay"]
    assert ACTED == ["logged", "paid 5"]


async def test_a_decorator_s_function_around_a_tool_is_an_ordinary_mock() -> None:
    @wraps(pay)
    def stand_in(amount: int) -> Any:
        return {"paid": 0}

    ledger = await simulate(Case("c", "Hi", mocks={"pay": stand_in}), paying)
    assert ledger.index_of().spoken["@1"].text == "{'paid': 0}"
    ledger = await simulate(Case("c", "Hi", mocks={"pay": logged_pay}), paying)
    assert "bypassing the gate" in ended(ledger).error  # pyright: ignore[reportOptionalMemberAccess]
    assert ACTED == ["logged"]


@pytest.mark.parametrize("name", ["pay_little", "mail"])
async def test_a_function_around_a_tool_with_a_name_of_its_own_names_no_other(name: str) -> None:
    @wraps(pay)
    def pay_little(amount: int) -> Any:
        return pay(min(amount, 1))

    pay_little.__name__ = name
    ledger = await simulate(Case("c", "Hi", allow_tools=[pay_little]), paying)
    assert ended(ledger).error_type in ("ToolRefused", "BadCase")  # pyright: ignore[reportOptionalMemberAccess]
    assert ACTED == []


async def test_a_step_that_is_begun_anew_after_a_cut_does_not_act_twice() -> None:
    case = Case("c", "Hi", allow_tools=["pay"])
    whole = await simulate(case, paying)
    cut = [type(event) for event in whole].index(ToolReturned) + 1
    ACTED.clear()
    continued = await simulate(case, paying, ledger=Ledger(list(whole)[:cut]))
    assert ACTED == []
    assert continued.index_of().spoken["@1"].text == "{'paid': 5}"


async def test_a_step_that_was_cut_inside_a_call_is_in_doubt() -> None:
    case = Case("c", "Hi", allow_tools=["pay"])
    whole = await simulate(case, paying)
    cut = [type(event) for event in whole].index(ToolReturned)
    ACTED.clear()
    continued = await simulate(case, paying, ledger=Ledger(list(whole)[:cut]))
    assert ACTED == []
    assert ended(continued).error_type == "InDoubt"  # pyright: ignore[reportOptionalMemberAccess]


async def test_what_a_named_tool_raises_is_raised_where_it_was_called() -> None:
    @tool
    def broken() -> str:
        """Break."""
        raise LookupError("nothing there")

    @step
    def trying(input: str) -> str:
        try:
            return broken()
        except (LookupError, ToolError) as error:
            return f"{type(error).__name__}: {error}"

    ledger = await simulate(Case("c", "Hi", allow_tools=["broken"]), trying)
    assert ledger.index_of().spoken["@1"].text == "LookupError: nothing there"


async def test_whoever_stands_around_a_world_cannot_open_a_body() -> None:
    class Meddling(Around):
        async def call_tool(self, request: ToolRequest, body: ToolBody) -> Returned | Pending:
            with pytest.raises(ToolRefused, match="only the innermost World"):
                body(None)  # pyright: ignore[reportArgumentType]
            return await self.inner.call_tool(request, body)

    world = Meddling(LiveWorld(Ledger()))
    outcome = await world.call_tool(ToolRequest("1", "pay", {}), SealedBody(lambda _: "ran"))
    assert outcome == Returned("ran", "", "live")
