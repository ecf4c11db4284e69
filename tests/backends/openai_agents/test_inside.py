"""OpenAI agents inside plain functions, by the routes that are this framework's own."""

import asyncio
import dataclasses
import functools
from typing import Any

import pytest
from agents.tool import invoke_function_tool
from agents.tool_context import ToolContext

from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    GuardrailFunctionOutput,
    Runner,
    WebSearchTool,
    function_tool,
    input_guardrail,
)
from backends.openai_agents.scripts import Script
from greenroom import Case, evaluate
from greenroom.ledger.events import ToolCalled
from greenroom.ledger.messages import ToolCall
from greenroom.metrics import called, contains, forbidden_calls
from greenroom.results.result import CaseResult

ACTED: list[str] = []
PAY = ToolCall("pay", {"amount": 5}, "call-pay")


@pytest.fixture(autouse=True)
def nothing_acted():
    ACTED.clear()
    yield
    ACTED.clear()


@function_tool
def pay(amount: int) -> str:
    """Pay."""
    ACTED.append(f"paid {amount}")
    return "paid"


def payer(*tools: Any, **options: Any) -> Agent[Any]:
    return Agent("payer", model=Script(PAY, "done"), tools=[*(tools or (pay,))], **options)


async def played(agent: Any, **options: Any) -> CaseResult:
    metrics = options.pop("metrics", [forbidden_calls("pay")])
    return (await evaluate(agent, Case("c", "Hi", metrics=metrics, **options))).results[0]


def running(agent: Agent[Any], start: Any = None) -> Any:
    async def clerk(message: str) -> str:
        try:
            return str((await (start or Runner.run)(agent, message)).final_output)
        except Exception as error:
            return f"swallowed {type(error).__name__}"

    return clerk


async def streamed(agent: Agent[Any], message: str) -> Any:
    result = Runner.run_streamed(agent, message)
    async for _ in result.stream_events():
        pass
    return result


def made_while_running() -> Agent[Any]:
    return payer(function_tool(_paying, name_override="pay"))


def _paying(amount: int) -> str:
    """Pay."""
    ACTED.append(f"paid {amount}")
    return "paid"


class Listing(Agent[Any]):
    """Brings its tools by a method of its own."""

    async def get_all_tools(self, run_context: Any) -> list[Any]:
        return [pay]


class OwnTool(FunctionTool):
    """A subclass of the framework's tool."""


async def by_hand(ctx: Any, args: str) -> str:
    ACTED.append(f"paid {args}")
    return "paid"


def own_tool() -> FunctionTool:
    return OwnTool("pay", "Pay.", pay.params_json_schema, by_hand)


def replaced() -> FunctionTool:
    """A tool whose invocation was wrapped, as people do to log or to retry."""
    inner = pay.on_invoke_tool

    @functools.wraps(inner, assigned=())
    async def logged(ctx: Any, args: str) -> Any:
        return await inner(ctx, args)

    return FunctionTool("pay", "Pay.", pay.params_json_schema, logged)


def disguised() -> FunctionTool:
    """An agent used as a tool, wrapped by somebody who acts first; copied attributes and all."""
    behind = Agent("helper", model=Script("helped")).as_tool("pay", "Pay.")
    inner: Any = behind.on_invoke_tool

    async def acting(ctx: Any, args: str) -> Any:
        ACTED.append("acted")
        return await inner(ctx, '{"input": "x"}')

    functools.update_wrapper(acting, inner._invoke_tool_impl)
    functools.update_wrapper(acting, inner, assigned=(), updated=("__dict__",))
    wrapped = FunctionTool("pay", "Pay.", behind.params_json_schema, acting)
    wrapped._agent_instance = behind._agent_instance
    return wrapped


AGENTS = {
    "plain": payer,
    "made while running": made_while_running,
    "own listing": lambda: Listing("payer", model=Script(PAY, "done")),
    "own class": lambda: payer(own_tool()),
    "wrapped invocation": lambda: payer(replaced()),
    "disguised delegation": lambda: payer(disguised()),
}


@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
async def test_the_canary_fires_with_the_gate_open(make: Any) -> None:
    await Runner.run(make(), "Hi")
    assert len(ACTED) == 1


@pytest.mark.parametrize("start", [None, streamed], ids=["run", "streamed"])
@pytest.mark.parametrize("make", AGENTS.values(), ids=AGENTS)
async def test_inside_a_function_no_body_runs_unless_it_is_named(make: Any, start: Any) -> None:
    async def clerk(message: str) -> str:
        return await running(make(), start)(message)

    assert (await played(clerk)).status == "error"
    assert ACTED == []
    result = await played(clerk, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert result.status == "passed", result.error
    assert ACTED == []


@pytest.mark.parametrize("make", [m for n, m in AGENTS.items() if n != "own listing"])
async def test_handed_over_no_body_runs_unless_it_is_named(make: Any) -> None:
    assert (await played(make())).status == "error"
    assert ACTED == []


async def test_a_wrapped_invocation_that_is_named_runs_once_and_is_told_once() -> None:
    result = await played(running(payer(replaced())), allow_tools=["pay"], metrics=[called("pay")])
    assert result.status == "passed", result.error
    assert ACTED == ["paid 5"]
    assert result.ledger is not None
    assert len(result.ledger.of(ToolCalled)) == 1


def test_in_a_loop_of_its_own() -> None:
    def clerk(message: str) -> str:
        loop = asyncio.new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            return str(Runner.run_sync(payer(), message).final_output)
        finally:
            asyncio.set_event_loop(None)
            loop.close()

    result = asyncio.run(played(clerk, mocks={"pay": "ok"}, metrics=[called("pay")]))
    assert result.status == "passed", result.error
    assert ACTED == []


class Meddling(AgentHooks[Any]):
    """Invokes the tool by itself, before the framework does."""

    async def on_start(self, context: Any, agent: Any) -> None:
        try:
            await pay.on_invoke_tool(_context(), '{"amount": 9}')
        except Exception:
            return


def _context() -> Any:
    from agents.tool_context import ToolContext

    return ToolContext(
        context=None, tool_name="pay", tool_call_id="by-hand", tool_arguments='{"amount": 9}'
    )


@pytest.mark.parametrize("handed", [True, False], ids=["handed over", "in a function"])
async def test_a_hook_that_invokes_a_tool_by_itself_meets_the_gate(handed: bool) -> None:
    agent = Agent("payer", model=Script("done"), tools=[pay], hooks=Meddling())
    await Runner.run(agent, "Hi")
    assert ACTED == ["paid 9"]
    ACTED.clear()
    assert (await played(agent if handed else running(agent))).status == "error"
    assert ACTED == []


async def test_a_tool_made_by_hand_that_is_invoked_by_hand_meets_the_gate() -> None:
    async def act(ctx: Any, encoded: str) -> str:
        ACTED.append(encoded)
        return "paid"

    schema = {"type": "object", "properties": {}, "additionalProperties": False}
    by_hand = FunctionTool("pay", "Pay.", schema, act)
    logged = dataclasses.replace(by_hand, on_invoke_tool=by_hand.on_invoke_tool)

    async def clerk(_: str) -> str:
        return str(await logged.on_invoke_tool(_context(), "{}"))

    assert (await played(clerk)).status == "error"
    assert ACTED == []
    mocked = await played(clerk, mocks={"pay": "ok"}, metrics=[called("pay"), contains("ok")])
    assert mocked.status == "passed", mocked.error
    named = await played(clerk, allow_tools=["pay"], metrics=[called("pay"), contains("paid")])
    assert named.status == "passed", named.error
    assert await logged.on_invoke_tool(_context(), "{}") == "paid"
    assert ACTED == ["{}", "{}"]


class Defining(FunctionTool):
    """Has its body as a method, and no other."""

    def __init__(self) -> None:
        self.name, self.description, self.params_json_schema = "pay", "Pay.", {}

    async def on_invoke_tool(self, ctx: Any, args: str) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        return await by_hand(ctx, args)


class Mixin:
    """A body for tools."""

    async def on_invoke_tool(self, ctx: Any, args: str) -> Any:
        return await by_hand(ctx, args)


class Mixed(Mixin, FunctionTool):  # pyright: ignore[reportIncompatibleVariableOverride]
    """Has its body from elsewhere."""

    def __init__(self) -> None:
        Defining.__init__(self)  # pyright: ignore[reportArgumentType]


class Shadowing(FunctionTool):
    """Has a method, and a function that hides it."""

    async def on_invoke_tool(self, ctx: Any, args: str) -> Any:  # pyright: ignore[reportIncompatibleVariableOverride]
        raise AssertionError("hidden")


class Computing(FunctionTool):
    """Finds its body whenever it is asked for it."""

    on_invoke_tool: Any = property(lambda _: by_hand, lambda _, __: None)


@dataclasses.dataclass
class Defaulting(FunctionTool):
    """Has its body as the default of a field."""

    on_invoke_tool: Any = by_hand


CLASSES: list[Any] = [Defining, Mixed, Shadowing, Computing, Defaulting]
GIVEN = ("pay", "Pay.", {"type": "object", "properties": {}, "additionalProperties": False})


@pytest.mark.parametrize("kind", CLASSES)
async def test_a_body_that_a_class_brings_meets_the_gate_when_it_is_invoked_by_hand(kind: Any):
    if kind in (Defining, Mixed):
        made = kind()
    else:
        made = kind(*GIVEN, *([] if kind is Defaulting else [by_hand]))

    async def clerk(_: str) -> str:
        return str(await made.on_invoke_tool(_context(), "{}"))

    assert (await played(clerk)).status == "error"
    assert ACTED == []
    mocked = await played(clerk, mocks={"pay": "ok"}, metrics=[called("pay"), contains("ok")])
    assert mocked.status == "passed", mocked.error
    named = await played(clerk, allow_tools=["pay"], metrics=[called("pay"), contains("paid")])
    assert named.status == "passed", named.error
    assert await made.on_invoke_tool(_context(), "{}") == "paid"
    assert ACTED == ["paid {}"] * 2


@function_tool
async def consult(ctx: ToolContext[Any]) -> str:
    """Hand the own context on to another tool."""
    try:
        return str(await pay.on_invoke_tool(ctx, '{"amount": 5}'))
    except Exception as error:
        return f"swallowed {type(error).__name__}"


@function_tool
async def consult_below(ctx: ToolContext[Any]) -> str:
    """The same, through the framework's own function."""
    return str(
        await invoke_function_tool(function_tool=pay, context=ctx, arguments='{"amount": 5}')
    )


@pytest.mark.parametrize("tool", [consult, consult_below], ids=lambda tool: tool.name)
@pytest.mark.parametrize("handed", [True, False], ids=["handed over", "in a function"])
async def test_a_named_tool_does_not_open_another_one_that_it_gives_its_context(
    tool: FunctionTool, handed: bool
) -> None:
    agent = Agent("clerk", model=Script(ToolCall(tool.name, {}, "call-1"), "done"), tools=[tool])
    await Runner.run(agent, "Hi")
    assert ACTED == ["paid 5"]
    ACTED.clear()
    played_agent = agent if handed else running(agent)
    assert (await played(played_agent, allow_tools=[tool.name])).status == "error"
    mocked = await played(
        played_agent, allow_tools=[tool.name], mocks={"pay": "ok"}, metrics=[called("pay")]
    )
    assert mocked.status == "passed", mocked.error
    assert ACTED == []
    named = await played(played_agent, allow_tools=[tool.name, "pay"], metrics=[called("pay")])
    assert named.status == "passed", named.error
    assert ACTED == ["paid 5"]


@pytest.mark.parametrize("handed", [True, False], ids=["handed over", "in a function"])
async def test_another_agent_inside_a_guardrail_meets_the_gate(handed: bool) -> None:
    @input_guardrail
    async def checked(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await running(payer())("Hi")
        return GuardrailFunctionOutput(None, tripwire_triggered=False)

    agent = Agent("desk", model=Script("done"), input_guardrails=[checked])
    await Runner.run(agent, "Hi")
    assert ACTED == ["paid 5"]
    ACTED.clear()
    assert (await played(agent if handed else running(agent))).status == "error"
    assert ACTED == []


async def test_an_agent_used_as_a_tool_is_led_and_its_own_tools_are_gated() -> None:
    outer = Agent(
        "desk",
        model=Script(ToolCall("ask_payer", {"input": "pay"}, "call-1"), "done"),
        tools=[payer().as_tool("ask_payer", "Ask the payer.")],
    )
    for agent in (outer, running(outer)):
        assert (await played(agent)).status == "error"
        result = await played(agent, mocks={"pay": "ok"}, metrics=[called("pay")])
        assert result.status == "passed", result.error
    assert ACTED == []


async def test_a_hosted_tool_is_refused_inside_a_function() -> None:
    agent = Agent("desk", model=Script("done"), tools=[WebSearchTool()])
    result = await played(running(agent))
    assert result.error is not None
    assert "WebSearchTool" in result.error.message
