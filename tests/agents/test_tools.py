"""A tool's signature and docstring are what a model is told, and what its arguments must fit."""

import asyncio
import inspect
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field

from greenroom import Agent, Case, Scripted, Stop, call, simulate, step, tool
from greenroom.agents import Tool
from greenroom.errors import BadAgent
from greenroom.ledger import ToolCall, ToolCalled, ToolFailed, ToolReturned, state, tool_calls
from rehearsals import caller, end_of, results


class Line(BaseModel):
    sku: str
    n: int = 1


@dataclass
class Address:
    city: str


@tool
def order(
    lines: list[Line],
    speed: Literal["slow", "fast"] = "slow",
    gift: bool = False,
    note: Annotated[str | None, Field(description="A word for the parcel.")] = None,
) -> dict[str, Any]:
    """Order things.

    They come by post.
    """
    return {"lines": [line.sku for line in lines], "speed": speed, "note": note}


def test_a_tool_is_named_and_described_by_its_function() -> None:
    assert (order.name, order.description) == ("order", "Order things.\n\nThey come by post.")


def test_a_name_and_a_description_can_be_given() -> None:
    def fetch(url: str) -> str:
        """Not this."""
        return url

    fetched = tool(name="get_page", description="Get a page.")(fetch)
    assert (fetched.name, fetched.description) == ("get_page", "Get a page.")


def test_the_schema_follows_the_signature() -> None:
    schema = order.parameters
    assert list(schema["properties"]) == ["lines", "speed", "gift", "note"]
    assert schema["required"] == ["lines"]
    assert schema["properties"]["speed"]["enum"] == ["slow", "fast"]
    assert schema["properties"]["gift"] == {"default": False, "title": "Gift", "type": "boolean"}
    assert schema["properties"]["note"]["description"] == "A word for the parcel."
    assert schema["properties"]["lines"]["items"] == {"$ref": "#/$defs/Line"}


def test_the_context_is_hidden_from_the_model() -> None:
    @tool
    def look(ctx: Any, key: str) -> str:
        """Look."""
        return key

    assert list(look.parameters["properties"]) == ["key"]
    assert look.argument_names == ("key",)


def test_a_parameter_may_have_any_name() -> None:
    @tool
    def fetch(json: str, schema: str, copy: bool, model_config: int, _id: int) -> Any:
        """Fetch."""
        return [json, schema, copy, model_config, _id]

    given = {"json": "{}", "schema": "s", "copy": True, "model_config": 1, "_id": 2}
    assert list(fetch.parameters["properties"]) == list(given)
    assert fetch.checked(given) == given


def test_a_tool_without_parameters_has_an_empty_schema() -> None:
    @tool
    def now() -> str:
        """What time it is."""
        return "noon"

    assert now.parameters["properties"] == {}
    assert now.checked({}) == {}


def test_arguments_that_cannot_be_told_to_a_model_are_refused() -> None:
    @tool
    def anything(**more: Any) -> str:
        """Do anything."""
        return ""

    with pytest.raises(BadAgent, match=r"\*\*more.*; name every argument"):
        _ = anything.parameters


def test_annotations_that_cannot_be_read_are_named() -> None:
    def lost(where: "Nowhere") -> str:  # noqa: F821  # pyright: ignore[reportUndefinedVariable]
        """Be lost."""
        return ""

    with pytest.raises(BadAgent, match="annotations of 'lost' cannot be read"):
        _ = tool(lost).parameters


def test_a_tool_can_be_called_like_its_function() -> None:
    assert order([Line(sku="tea")], note="hi") == {"lines": ["tea"], "speed": "slow", "note": "hi"}


async def live(used: Tool, *calls: dict[str, Any], **options: Any) -> Any:
    """The run of a tool whose body may act."""
    case = Case("live", "Go.", allow_tools=[used.name], **options)
    return await simulate(case, caller(used, *calls))


async def test_a_body_gets_what_its_annotations_say() -> None:
    @tool
    def ship(to: Address, lines: list[Line], weight: float) -> Any:
        """Ship."""
        return [type(to).__name__, type(lines[0]).__name__, type(weight).__name__]

    ledger = await live(ship, {"to": {"city": "Paris"}, "lines": [{"sku": "tea"}], "weight": 2})
    assert results(ledger) == [["Address", "Line", "float"]]


async def test_a_body_keeps_its_own_defaults() -> None:
    assert results(await live(order, {"lines": [{"sku": "tea"}]})) == [
        {"lines": ["tea"], "speed": "slow", "note": None}
    ]


async def test_an_async_body_is_awaited() -> None:
    @tool
    async def look(key: str) -> str:
        """Look."""
        await asyncio.sleep(0)
        return key.upper()

    assert results(await live(look, {"key": "a"})) == ["A"]


@pytest.mark.parametrize("name", ["ctx", "context"])
async def test_a_body_gets_its_context(name: str) -> None:
    def with_ctx(key: str, ctx: Any) -> Any:
        """Look."""
        ctx.state.session["seen"] = key
        return [ctx.tool, ctx.run_id, ctx.now()]

    def with_context(context: Any, key: str) -> Any:
        """Look."""
        return with_ctx(key, context)

    look = tool(name="look")(with_ctx if name == "ctx" else with_context)
    ledger = await live(look, {"key": "a"}, now=60.0)
    assert results(ledger) == [["look", "live", 60.0]]
    assert state(ledger) == {"session": {"seen": "a"}}


async def test_what_a_body_raises_is_told_to_the_agent() -> None:
    @tool
    def fail() -> str:
        """Fail."""
        raise LookupError("no such order")

    ledger = await live(fail, {})
    assert results(ledger) == ["LookupError: no such order"]
    assert end_of(ledger).reason == "completed"


@pytest.mark.parametrize(
    "args, told",
    [
        ({}, "lines"),
        ({"lines": "tea"}, "lines"),
        ({"lines": [{"sku": 5}]}, "sku"),
        ({"lines": [], "speed": "warp"}, "speed"),
        ({"lines": [], "colour": "red"}, "colour"),
        ({"lines": [], "ctx": {}}, "ctx"),
    ],
)
async def test_wrong_arguments_come_back_to_the_model_and_reach_no_mock(
    args: dict[str, Any], told: str
) -> None:
    reached: list[Any] = []
    case = Case("wrong", "Order.", mocks={"order": lambda **given: reached.append(given)})
    ledger = await simulate(case, caller(order, args))
    (failed,) = ledger.of(ToolFailed)
    assert failed.source == "refused"
    assert "wrong arguments" in failed.error
    assert told in failed.error
    assert reached == []
    assert end_of(ledger).reason == "completed"


async def test_wrong_arguments_are_part_of_what_happened() -> None:
    ledger = await simulate(Case("wrong", "Order.", mocks={"order": 1}), caller(order, {"x": 1}))
    assert [(c.tool, c.args) for c in tool_calls(ledger)] == [("order", {"x": 1})]


async def test_a_tool_the_agent_does_not_have_comes_back_to_the_model() -> None:
    @tool
    def other() -> str:
        """Other."""
        raise AssertionError

    agent = caller(tool(name="missing")(lambda: ""), {})
    ledger = await simulate(Case("unknown", "Go."), replace(agent, tools=[other]))
    (failed,) = ledger.of(ToolFailed)
    assert "there is no tool 'missing'; the tools are: other" in failed.error
    assert end_of(ledger).reason == "completed"


async def test_calls_of_one_reply_run_side_by_side() -> None:

    meeting = asyncio.Barrier(2)

    @tool
    def meet(who: str) -> str:
        """Meet."""
        raise AssertionError

    async def met(who: str) -> str:
        await meeting.wait()
        return who

    both = [call("meet", who="ada"), call("meet", who="bob")]
    agent = Agent("a", model=Scripted(both, "Done."), tools=[meet])
    case = Case("meet", "Go.", mocks={"meet": met}, stop=Stop(max_seconds=20))
    ledger = await simulate(case, agent)
    assert end_of(ledger).reason == "completed"
    assert results(ledger) == ["ada", "bob"]


async def test_calls_that_a_model_gave_the_same_id_are_two_calls() -> None:

    @tool
    def look(key: str) -> str:
        """Look."""
        raise AssertionError

    first, second, third = (ToolCall("look", {"key": k}, "call_0") for k in "abc")
    agent = Agent("a", model=Scripted(first, [second, third], "Done."), tools=[look])
    ledger = await simulate(Case("ids", "Go.", mocks={"look": lambda key: key.upper()}), agent)
    assert results(ledger) == ["A", "B", "C"]
    assert len({event.call_id for event in ledger.of(ToolCalled)}) == 3


async def test_the_id_a_model_gave_a_call_is_kept() -> None:

    agent = Agent(
        "a", model=Scripted(ToolCall("order", {"lines": []}, "call_9"), "."), tools=[order]
    )
    ledger = await simulate(Case("ids", "Go.", mocks={"order": 1}), agent)
    assert [c.id for c in tool_calls(ledger)] == ["call_9"]


async def test_a_tool_that_only_read_the_state_does_not_undo_what_another_wrote() -> None:

    written = asyncio.Event()

    @tool
    def touch(how: str) -> Any:
        """Touch the state."""
        raise AssertionError

    async def touched(how: str, ctx: Any) -> Any:
        if how == "write":
            ctx.state.session["order"] = {"n": 5}
            written.set()
            return "written"
        seen = ctx.state.session["order"]
        await written.wait()
        await asyncio.sleep(0.01)
        return seen

    both = [call("touch", how="read"), call("touch", how="write")]
    agent = Agent("a", model=Scripted(both, "Done."), tools=[touch])
    fixture = {"session": {"order": {"n": 0}}}
    ledger = await simulate(Case("c", "Go.", mocks={"touch": touched}, state=fixture), agent)
    assert results(ledger) == [{"n": 0}, "written"]
    assert state(ledger) == {"session": {"order": {"n": 5}}}


class Desk:
    def __init__(self) -> None:
        self.cancelled: list[str] = []

    @tool
    def cancel(self, order: str) -> str:
        """Cancel an order."""
        self.cancelled.append(order)
        return "cancelled"


async def test_a_method_is_the_tool_of_its_object_and_self_is_no_argument() -> None:
    desk, other = Desk(), Desk()
    agent = Agent("a", model=Scripted(call("cancel", order="7"), "Done."), tools=[desk.cancel])
    assert agent.tools == (desk.cancel,)
    assert desk.cancel.argument_names == ("order",)
    assert desk.cancel is not other.cancel

    mocked = await simulate(Case("mocked", "Go.", mocks={"cancel": "mocked"}), agent)
    assert results(mocked) == ["mocked"]
    assert desk.cancelled == []

    live = await simulate(Case("live", "Go.", allow_tools=[desk.cancel]), agent)
    assert results(live) == ["cancelled"]
    assert desk.cancelled == ["7"]

    refused = await simulate(Case("refused", "Go.", allow_tools=[other.cancel]), agent)
    assert "has no mock" in end_of(refused).error
    assert (desk.cancelled, other.cancelled) == (["7"], [])


def test_a_method_without_its_object_is_no_tool() -> None:
    with pytest.raises(BadAgent, match=r"'cancel' is a method of a class.*desk\.cancel"):
        Agent("a", model=Scripted("Hi."), tools=[Desk.cancel])


def test_a_tool_that_a_class_only_mentions_belongs_to_no_object() -> None:
    @tool
    def order() -> None:
        """Order."""

    class Shelf:
        kept = order

    assert Shelf().kept is order


# Other decorators


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator that does not know whether it decorates an async function."""

    @wraps(function)
    def call_it(*args: object, **kwargs: object) -> Any:
        return function(*args, **kwargs)

    return call_it


def blocking(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator by which an async function is called without `await`."""

    @wraps(function)
    def call_it(*args: object, **kwargs: object) -> Any:
        return asyncio.run(function(*args, **kwargs))

    return call_it


def test_a_tool_has_the_signature_of_its_function() -> None:
    @tool
    def pay(amount: int, note: str = "") -> str:
        """Pay."""
        return note

    expected = "(amount: int, note: str = '') -> str"
    assert str(inspect.signature(pay)) == expected
    assert str(inspect.signature(logged(pay))) == expected
    assert "description" in inspect.signature(Tool).parameters


def test_a_function_around_a_tool_is_refused_and_says_to_put_tool_on_top() -> None:
    @tool
    def pay(amount: int) -> str:
        """Pay."""
        return str(amount)

    for given in (logged(pay), partial(logged(pay), 5), partial(pay, 5)):
        with pytest.raises(BadAgent, match=r"has the tool 'pay' inside it\. Put @tool on top"):
            Agent("a", model=Scripted("Hi."), tools=[given])


@tool
@logged
async def send(amount: int) -> str:
    """Send money."""
    return f"sent {amount}"


@tool
@blocking
async def pay_later(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@step
async def sending(input: str) -> str:
    return await send(1)


async def sends(message: str) -> str:
    return await send(1)


def pays(message: str) -> str:
    return pay_later(1)


@pytest.mark.parametrize(
    "given, name, answer",
    [
        (sending, "send", "sent 1"),
        (sends, "send", "sent 1"),
        (pays, "pay_later", "paid 1"),
        (
            Agent("a", model=Scripted(call("send", amount=1), "Done."), tools=[send]),
            "send",
            "sent 1",
        ),
        (
            Agent("a", model=Scripted(call("pay_later", amount=1), "Done."), tools=[pay_later]),
            "pay_later",
            "paid 1",
        ),
    ],
)
async def test_an_async_function_inside_a_plain_one_is_mocked_and_run_like_in_production(
    given: Any, name: str, answer: str
) -> None:
    mocked = await simulate(Case("mocked", "Go.", mocks={name: "mocked"}), given)
    assert (results(mocked), end_of(mocked).error) == (["mocked"], "")
    live = await simulate(Case("live", "Go.", allow_tools=[name]), given)
    assert (results(live), end_of(live).error) == ([answer], "")


def test_an_async_generator_is_no_tool() -> None:
    async def pages(n: int) -> AsyncIterator[int]:
        yield n

    for given in (pages, partial(pages, 1)):
        with pytest.raises(BadAgent, match=r"'pages' is an async generator.*collect the pieces"):
            tool(given)


@step
def showing(input: str) -> str:
    return str(show(1))


@tool
def show(n: int) -> Any:
    """Show pages."""

    async def pages() -> AsyncIterator[int]:
        yield n

    return pages()


@tool
async def forget() -> Any:
    """Forget to await."""
    return asyncio.get_running_loop().create_future()


@pytest.mark.parametrize(
    "given, name, what",
    [
        (showing, "show", "an async generator"),
        (
            Agent("a", model=Scripted(call("show", n=1), "Done."), tools=[show]),
            "show",
            "an async generator",
        ),
        (
            Agent("a", model=Scripted(call("forget"), "Done."), tools=[forget]),
            "forget",
            "a Future",
        ),
    ],
)
async def test_what_has_still_to_run_is_no_answer(given: Any, name: str, what: str) -> None:
    ledger = await simulate(Case("live", "Go.", allow_tools=[name]), given)
    assert ledger.of(ToolReturned) == []
    assert f"{name!r} returned {what}" in end_of(ledger).error
