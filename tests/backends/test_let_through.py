"""What the gate lets through is one call: what its body leaves behind asks again, and is refused once the case is over."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Any

import pytest
from agents.tool_context import ToolContext as OpenAIContext
from google.adk.agents import LlmAgent
from google.adk.events import Event as AdkEvent
from google.adk.runners import InMemoryRunner
from google.adk.tools.function_tool import FunctionTool
from google.adk.tools.tool_context import ToolContext
from google.adk.workflow import BaseNode, Workflow
from google.genai import types
from langchain_core.tools import BaseTool
from openai.types.responses import ResponseCustomToolCall
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import RunContext
from pydantic_ai.toolsets import FunctionToolset, WrapperToolset

from agents import Agent as OpenAIAgent
from agents import (
    CustomTool,
    Model,
    ModelResponse,
    RunHooks,
    Runner,
    RunState,
    Usage,
    function_tool,
)
from agents import FunctionTool as FunctionToolOfOpenAI
from greenroom import Case, Scripted, call, evaluate, tool
from greenroom.errors import ToolRefused
from greenroom.ledger import ToolCalled
from greenroom.metrics import contains

Again = Callable[[], Awaitable[object]]


class Paid:
    """The bodies that ran, and the work that the first of them leaves behind."""

    def __init__(self) -> None:
        self.amounts: list[int] = []
        self.go_on = asyncio.Event()
        self.left: list[asyncio.Task[object]] = []

    def note(self, amount: int, again: Again) -> str:
        self.amounts.append(amount)
        if amount == 1:
            self.left.append(asyncio.create_task(self._later(again)))
        return "paid"

    async def _later(self, again: Again) -> object:
        await self.go_on.wait()
        return await again()


def of_greenroom(paid: Paid) -> Any:
    @tool
    async def pay(amount: int) -> str:
        return paid.note(amount, lambda: pay(2))

    async def agent(message: str) -> str:
        await pay(1)
        return "done"

    return agent


def of_openai(paid: Paid) -> Any:
    @function_tool
    async def pay(ctx: OpenAIContext[None], amount: int) -> str:
        """Pay."""
        return paid.note(amount, lambda: pay.on_invoke_tool(ctx, json.dumps({"amount": 2})))

    return OpenAIAgent("clerk", model="gpt-4o", tools=[pay])


def of_adk(paid: Paid) -> Any:
    async def pay(amount: int, tool_context: ToolContext) -> str:
        """Pay."""
        args = {"amount": 2}
        return paid.note(amount, lambda: its_tool.run_async(args=args, tool_context=tool_context))

    its_tool = FunctionTool(pay)
    return LlmAgent(name="clerk", model="gemini-2.5-flash", tools=[its_tool])


def of_pydantic_ai(paid: Paid) -> Any:
    tools = FunctionToolset[None]()

    @tools.tool
    async def pay(ctx: RunContext[None], amount: int) -> str:  # pyright: ignore[reportUnusedFunction]
        """Pay."""
        found = (await tools.get_tools(ctx))["pay"]
        return paid.note(amount, lambda: tools.call_tool("pay", {"amount": 2}, ctx, found))

    return PydanticAgent[None](
        "openai:gpt-4o",
        deps_type=type(None),
        name="clerk",
        toolsets=[tools],
        defer_model_check=True,
    )


def of_langchain(paid: Paid) -> Any:
    class Pay(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, amount: int) -> str:
            raise NotImplementedError

        async def _arun(self, amount: int) -> str:
            return paid.note(amount, lambda: self._arun(amount=2))

    async def agent(message: str) -> str:
        await Pay().ainvoke({"amount": 1})
        return "done"

    return agent


MAKERS = [of_greenroom, of_openai, of_adk, of_pydantic_ai, of_langchain]


def case(name: str, **given: Any) -> Case:
    return Case(name, "pay", metrics=[contains("done")], **given)


@pytest.mark.parametrize("make", MAKERS)
async def test_what_a_named_body_left_behind_cannot_call_it_again_in_another_run(
    make: Callable[[Paid], Any],
):
    paid = Paid()
    agent = make(paid)
    is_asked = make not in (of_greenroom, of_langchain)
    model = Scripted(call("pay", amount=1), "done") if is_asked else None
    report = await evaluate(agent, [case("named", allow_tools=["pay"])], model=model)
    assert report["named"].status == "passed", report["named"].error

    async def idle(message: str) -> str:
        paid.go_on.set()
        await asyncio.wait(paid.left)
        return "done"

    await evaluate(idle, [case("idle")])
    assert [type(work.exception()) for work in paid.left] == [ToolRefused]
    assert paid.amounts == [1]


@pytest.mark.parametrize("make", MAKERS)
async def test_what_a_named_body_left_behind_is_on_record_while_its_case_goes_on(
    make: Callable[[Paid], Any],
):
    paid = Paid()
    agent = make(paid)

    def answer(request: object) -> str:
        return "done"

    is_function = make in (of_greenroom, of_langchain)
    model = None if is_function else Scripted(call("pay", amount=1), answer)

    async def around(message: str) -> str:
        said = await agent(message) if is_function else await run_inside(agent, message)
        paid.go_on.set()
        await asyncio.wait(paid.left)
        return said

    report = await evaluate(around, [case("named", allow_tools=["pay"])], model=model)
    result = report["named"]
    assert result.status == "passed", result.error
    assert paid.amounts == [1, 2]
    assert result.ledger is not None
    assert [c.args["amount"] for c in result.ledger.of(ToolCalled)] == [1, 2]


# Bodies that go on in a thread


class Threads:
    """A pool, to whose threads Python passes on no context, and the bodies that ran in it."""

    def __init__(self) -> None:
        self.amounts: list[int] = []
        self.pool = ThreadPoolExecutor(1)

    def pay(self, amount: int) -> str:
        """Pay."""
        self.amounts.append(amount)
        return "paid"

    async def run(self, work: Callable[[], Any]) -> Any:
        return await asyncio.get_running_loop().run_in_executor(self.pool, work)


def of_openai_in_a_thread(threads: Threads) -> Any:
    async def hand_on(ctx: OpenAIContext[None], given: str) -> Any:
        return await threads.run(lambda: asyncio.run(pay.on_invoke_tool(ctx, given)))  # pyright: ignore[reportArgumentType]

    pay = function_tool(threads.pay)
    outer = FunctionToolOfOpenAI("pay", "Pay.", pay.params_json_schema, hand_on)
    return OpenAIAgent("clerk", model="gpt-4o", tools=[outer])


def of_adk_in_a_thread(threads: Threads) -> Any:
    class InThread(FunctionTool):
        async def run_async(self, **given: Any) -> Any:
            run = super().run_async
            return await threads.run(lambda: asyncio.run(run(**given)))

    return LlmAgent(name="clerk", model="gemini-2.5-flash", tools=[InThread(threads.pay)])


def of_pydantic_ai_in_a_thread(threads: Threads) -> Any:
    class InThread(WrapperToolset[None]):
        async def call_tool(self, *args: Any, **given: Any) -> Any:
            run = super().call_tool
            return await threads.run(lambda: asyncio.run(run(*args, **given)))

    return PydanticAgent[None](
        "openai:gpt-4o",
        deps_type=type(None),
        name="clerk",
        toolsets=[InThread(FunctionToolset[None]([threads.pay]))],
        defer_model_check=True,
    )


def of_langchain_in_a_thread(threads: Threads) -> Any:
    class Pay(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, amount: int) -> str:
            return threads.pay(amount)

        async def _arun(self, amount: int) -> str:
            return await threads.run(lambda: self._run(amount))

    async def agent(message: str) -> str:
        await Pay().ainvoke({"amount": 1})
        return "done"

    return agent


@pytest.mark.parametrize(
    "make",
    [
        of_openai_in_a_thread,
        of_adk_in_a_thread,
        of_pydantic_ai_in_a_thread,
        of_langchain_in_a_thread,
    ],
)
async def test_a_named_body_that_goes_on_in_a_thread_is_one_call(make: Callable[[Threads], Any]):
    threads = Threads()
    model = None
    if make is not of_langchain_in_a_thread:
        model = Scripted(call("pay", amount=1), "done")
    report = await evaluate(make(threads), [case("named", allow_tools=["pay"])], model=model)
    result = report["named"]
    assert result.status == "passed", result.error
    assert result.ledger is not None
    assert [c.tool for c in result.ledger.of(ToolCalled)] == ["pay"]
    assert threads.amounts == [1]


async def test_a_thread_that_a_named_body_left_behind_asks_again():
    threads, go_on, left = Threads(), Event(), list[Any]()

    class Pay(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, amount: int) -> str:
            return threads.pay(amount)

        async def _arun(self, amount: int) -> str:
            left.append(threads.pool.submit(lambda: go_on.wait() and self._run(2)))
            return self._run(amount)

    async def agent(message: str) -> str:
        await Pay().ainvoke({"amount": 1})
        go_on.set()
        await asyncio.wrap_future(left[0])
        return "done"

    result = (await evaluate(agent, [case("named", allow_tools=["pay"])]))["named"]
    assert result.status == "passed", result.error
    assert result.ledger is not None
    assert [c.args["amount"] for c in result.ledger.of(ToolCalled)] == [1, 2]
    assert threads.amounts == [1, 2]


async def run_inside(agent: Any, message: str) -> str:
    if isinstance(agent, OpenAIAgent):
        return str((await Runner.run(agent, message)).final_output)
    if isinstance(agent, PydanticAgent):
        return str((await agent.run(message)).output)
    return await run_by_adk(agent, message)


async def run_by_adk(agent: Any, message: str) -> str:
    runner, said = InMemoryRunner(agent=agent, app_name="shop"), "done"
    session = await runner.session_service.create_session(app_name="shop", user_id="ada")
    content = types.Content(role="user", parts=[types.Part(text=message)])
    async for _ in runner.run_async(user_id="ada", session_id=session.id, new_message=content):
        pass
    return said


# Ways to a body that no listing leads to


def node_of(ran: list[str], *, mixed: bool) -> BaseNode:
    class Runs:
        async def run(self, *, ctx: Any, node_input: Any) -> Any:
            ran.append("paid")
            yield AdkEvent(output="done")

    if mixed:

        class Mixed(Runs, BaseNode):  # pyright: ignore[reportIncompatibleMethodOverride]
            pass

        return Mixed(name="pay")

    class Own(BaseNode):
        run = Runs.run  # pyright: ignore[reportAssignmentType]

    return Own(name="pay")


@pytest.mark.parametrize("mixed", [False, True])
async def test_a_node_class_with_its_own_run_is_held(mixed: bool):
    ran: list[str] = []
    flow = Workflow(name="flow", edges=[("START", node_of(ran, mixed=mixed))])

    async def clerk(message: str) -> str:
        return await run_by_adk(flow, message)

    report = await evaluate(clerk, [case("bare"), case("mocked", mocks={"pay": "done"})])
    assert (report["bare"].status, report["mocked"].status) == ("error", "passed")
    error = report["bare"].error
    assert error is not None
    assert error.type == "ToolRefused"
    assert ran == []
    report = await evaluate(clerk, [case("named", allow_tools=["pay"])])
    assert (report["named"].status, ran) == ("passed", ["paid"])
    ledger = report["named"].ledger
    assert ledger is not None
    assert [c.tool for c in ledger.of(ToolCalled)] == ["pay"]


class Enough(Exception):
    pass


class Hooks(RunHooks[Any]):
    async def on_tool_end(self, *_: object, **__: object) -> None:
        raise Enough


class AsksOnce(Model):
    async def get_response(self, *_: object, **__: object) -> ModelResponse:
        asked = ResponseCustomToolCall(call_id="c", name="pay", input="7", type="custom_tool_call")
        return ModelResponse([asked], Usage(), None)

    def stream_response(self, *_: object, **__: object) -> Any:
        raise NotImplementedError


@pytest.mark.parametrize("hooks", [None, Hooks()])
async def test_a_stored_approval_does_not_lead_around_the_gate(hooks: Hooks | None):
    ran: list[str] = []

    async def act(_: object, text: str) -> str:
        ran.append(text)
        return "paid"

    class Own(OpenAIAgent[Any]):
        async def get_all_tools(self, run_context: Any) -> list[Any]:
            return [
                CustomTool(name="pay", description="Pay.", on_invoke_tool=act, needs_approval=True)
            ]

    agent = Own("clerk", model=AsksOnce())
    stored = (await Runner.run(agent, "pay")).to_state().to_string()

    async def approve(message: str) -> str:
        state = await RunState.from_string(agent, stored)
        for item in state.get_interruptions():
            state.approve(item)
        try:
            return str((await Runner.run(agent, state, hooks=hooks)).final_output)
        except Enough:
            return "done"

    report = await evaluate(approve, [case("bare"), case("mocked", mocks={"pay": "no"})])
    for result in report:
        assert (result.status, result.error and result.error.type) == ("error", "ToolRefused")
    assert ran == []


async def test_a_mock_answers_for_an_agent_that_is_a_tool_wherever_it_is_called():
    ran: list[str] = []

    async def book(_: object) -> str:
        ran.append("booked")
        return "booked"

    helper = OpenAIAgent("helper", model="gpt-4o")
    ask = helper.as_tool("ask_helper", "asks", custom_output_extractor=book)
    top = OpenAIAgent("top", model="gpt-4o", tools=[ask])

    async def clerk(message: str) -> str:
        return str((await Runner.run(top, message)).final_output)

    for agent in (top, clerk):
        model = Scripted(call("ask_helper", input="q"), "done", "done")
        report = await evaluate(agent, [case("mocked", mocks={"ask_helper": "no"})], model=model)
        result = report["mocked"]
        assert result.status == "passed", result.error
        assert result.ledger is not None
        assert [c.tool for c in result.ledger.of(ToolCalled)] == ["ask_helper"]
    assert ran == []
    report = await evaluate(
        clerk, [case("run")], model=Scripted(call("ask_helper", input="q"), "helped", "done")
    )
    assert (report["run"].status, ran) == ("passed", ["booked"]), report["run"].error


async def test_a_tool_that_looks_up_its_own_body_is_refused():
    ran: list[int] = []

    class Pay(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, amount: int = 1) -> str:
            return "unused"

        def __getattribute__(self, name: str) -> Any:
            return ran.append if name == "_run" else super().__getattribute__(name)

    def clerk(message: str) -> str:
        Pay().invoke({"amount": 1})
        return "done"

    report = await evaluate(clerk, [case("bare"), case("mocked", mocks={"pay": "no"})])
    for result in report:
        assert (result.status, result.error and result.error.type) == ("error", "ToolRefused")
    assert ran == []
