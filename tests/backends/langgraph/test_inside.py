"""LangChain tools and LangGraph graphs inside plain functions, by the routes that are their own."""

import asyncio
import inspect
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.types import Command, interrupt

from greenroom import Case, Turn, evaluate
from greenroom.backends.seams import real_of
from greenroom.ledger.events import ToolCalled
from greenroom.metrics import called
from greenroom.results.result import CaseResult

ACTED: list[str] = []


@pytest.fixture(autouse=True)
def nothing_acted():
    ACTED.clear()
    yield
    ACTED.clear()


@tool
def pay(amount: int) -> str:
    """Pay."""
    ACTED.append(f"paid {amount}")
    return "paid"


@tool("pay")
async def async_pay(amount: int) -> str:
    """Pay."""
    ACTED.append(f"paid {amount}")
    return "paid"


class OwnTool(BaseTool):
    """A class of the author's own."""

    name: str = "pay"
    description: str = "Pay."

    def _run(self, amount: int) -> str:
        ACTED.append(f"paid {amount}")
        return "paid"


def made_while_running() -> BaseTool:
    class Late(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, amount: int) -> str:
            ACTED.append(f"paid {amount}")
            return "paid"

    return Late()


def going_around() -> BaseTool:
    class Around(BaseTool):
        name: str = "pay"
        description: str = "Pay."

        def _run(self, amount: int) -> str:
            return ""

        def invoke(self, input: Any, config: Any = None, **kwargs: Any) -> Any:
            ACTED.append("paid")
            return "paid"

    return Around()


def by_function() -> BaseTool:
    return StructuredTool.from_function(pay.func, name="pay")  # pyright: ignore[reportAttributeAccessIssue]


TOOLS = {
    "sync": lambda: pay,
    "async": lambda: async_pay,
    "own class": OwnTool,
    "made while running": made_while_running,
    "from a function": by_function,
}


async def played(agent: Any, **options: Any) -> CaseResult:
    metrics = options.pop("metrics", [])
    turns = options.pop("turns", None)
    case = Case("c", "" if turns else "Hi", turns=turns or (), metrics=metrics, **options)
    return (await evaluate(agent, case)).results[0]


@pytest.mark.parametrize("make", TOOLS.values(), ids=TOOLS)
async def test_the_canary_fires_with_the_gate_open(make: Any) -> None:
    await make().ainvoke({"amount": 5})
    assert ACTED == ["paid 5"]


@pytest.mark.parametrize("make", TOOLS.values(), ids=TOOLS)
@pytest.mark.parametrize("is_async", [True, False], ids=["async", "sync"])
async def test_a_tool_called_in_a_function_meets_the_gate(make: Any, is_async: bool) -> None:
    if make is TOOLS["async"] and not is_async:
        pytest.skip("an async tool has no sync call")

    async def awaiting(message: str) -> str:
        return str(await make().ainvoke({"amount": 5}))

    def blocking(message: str) -> str:
        return str(make().invoke({"amount": 5}))

    agent = awaiting if is_async else blocking
    assert (await played(agent)).status == "error"
    assert ACTED == []
    result = await played(agent, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert result.status == "passed", result.error
    assert ACTED == []


async def test_a_blocking_call_on_the_case_s_own_loop_is_answered() -> None:
    async def blocking(message: str) -> str:
        return str(pay.invoke({"amount": 5}))

    result = await played(blocking, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert result.status == "passed", result.error


@pytest.mark.parametrize("is_async", [True, False], ids=["on the loop", "in a thread"])
async def test_a_named_body_runs_in_the_thread_of_its_caller(is_async: bool) -> None:
    @tool
    def count() -> int:
        """Count."""
        return database.execute("select 1").fetchone()[0]

    database: Any = None

    async def on_the_loop(message: str) -> str:
        nonlocal database
        database = sqlite3.connect(":memory:")
        try:
            return str(count.invoke({}))
        finally:
            database.close()

    def in_a_thread(message: str) -> str:
        nonlocal database
        database = sqlite3.connect(":memory:")
        try:
            return str(count.invoke({}))
        finally:
            database.close()

    agent = on_the_loop if is_async else in_a_thread
    result = await played(agent, allow_tools=["count"], metrics=[called("count")])
    assert result.status == "passed", result.error
    assert result.ledger is not None
    assert result.ledger.index_of().spoken["@1"].text == "1"


async def test_a_tool_that_goes_around_the_seam_is_refused() -> None:
    async def clerk(message: str) -> str:
        try:
            return str(going_around().invoke({"amount": 5}))
        except Exception:
            return "fine"

    assert (await played(clerk, mocks={"pay": "ok"})).status == "error"
    assert ACTED == []


AROUND: dict[str, Any] = {
    "run as it was before its seam": lambda one: real_of(BaseTool.run)(one, {"amount": 5}),
    "arun as it was before its seam": lambda one: real_of(BaseTool.arun)(one, {"amount": 5}),
    "the body": lambda one: one._run(5, config={}),
    "the body by name": lambda one: one._run(amount=5, config={}),
    "the async body": lambda one: one._arun(amount=5, config={}),
}
Amount = int


class Careful(BaseTool):
    """Its annotations are texts, and the framework gives it a config."""

    name: str = "pay"
    description: str = "Pay."

    def _run(self, amount: "Amount", config: "RunnableConfig") -> str:
        ACTED.append(f"paid {amount}")
        return f"paid, {type(config).__name__}"


KINDS: dict[str, Any] = {"a function's": lambda: pay, "own class": Careful}


@pytest.mark.parametrize("make", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("around", AROUND.values(), ids=AROUND)
async def test_whoever_knows_another_way_to_a_body_meets_the_gate(make: Any, around: Any) -> None:
    async def agent(message: str) -> str:
        found = around(make())
        return str(await found if inspect.isawaitable(found) else found)

    await agent("with the gate open")
    assert ACTED.pop() == "paid 5"
    assert (await played(agent)).status == "error"
    assert ACTED == []
    result = await played(agent, mocks={"pay": "ok"}, metrics=[called("pay", args={"amount": 5})])
    assert result.status == "passed", result.error
    assert result.responses == ["ok"]
    assert ACTED == []
    assert (await played(agent, allow_tools=["pay"], metrics=[called("pay")])).status == "passed"
    assert ACTED == ["paid 5"]


class Eager(Careful):
    """Calls what its base class does before the framework gets that far."""

    def _to_args_and_kwargs(self, tool_input: Any, tool_call_id: str | None) -> Any:
        super()._run(5, config={})
        return super()._to_args_and_kwargs(tool_input, tool_call_id)


async def test_a_class_that_calls_its_base_on_the_way_meets_the_gate() -> None:
    async def agent(message: str) -> str:
        return str(await Eager().ainvoke({"amount": 5}))

    assert (await played(agent)).status == "error"
    result = await played(agent, mocks={"pay": "ok"}, metrics=[called("pay")])
    assert (result.status, result.responses) == ("passed", ["ok"])
    assert ACTED == []


async def test_a_body_whose_annotations_are_texts_is_given_what_it_asks_for() -> None:
    async def agent(message: str) -> str:
        return str(await Careful().ainvoke({"amount": 5}))

    result = await played(agent, allow_tools=["pay"], metrics=[called("pay", args={"amount": 5})])
    assert result.status == "passed", result.error
    assert result.responses == ["paid, dict"]


async def test_a_pause_inside_returns_to_the_author_s_function() -> None:
    @tool
    def book() -> str:
        """Book."""
        return f"booked {interrupt('sure?')}"

    def node(state: MessagesState) -> Any:
        return {"messages": [HumanMessage(str(book.invoke({})))]}

    def graph() -> Any:
        build = StateGraph(MessagesState)
        build.add_node("node", node)
        build.add_edge(START, "node")
        return build.compile(checkpointer=InMemorySaver())

    async def clerk(message: str) -> str:
        inner, config = graph(), {"configurable": {"thread_id": "1"}}
        paused = await inner.ainvoke({"messages": []}, config)
        assert "__interrupt__" in paused
        done = await inner.ainvoke(Command(resume="yes"), config)
        return done["messages"][-1].content

    result = await played(clerk, allow_tools=["book"])
    assert result.ledger is not None
    assert result.ledger.index_of().spoken["@1"].text == "booked yes", result.error


async def test_an_inner_graph_remembers_for_its_own_trial_alone() -> None:
    saver = InMemorySaver()
    build = StateGraph(MessagesState)
    build.add_node("node", lambda state: {"messages": [HumanMessage("seen")]})
    build.add_edge(START, "node")
    graph = build.compile(checkpointer=saver)

    async def clerk(message: str) -> str:
        given: Any = {"messages": [HumanMessage(message)]}
        done = await graph.ainvoke(given, {"configurable": {"thread_id": "1"}})
        return str(len(done["messages"]))

    case = Case("c", turns=[Turn("one"), Turn("two")])
    report = await evaluate(clerk, case, trials=2)
    for result in report.results:
        assert result.ledger is not None
        assert [said.text for said in result.ledger.index_of().spoken.values()] == ["2", "4"]
    assert list(saver.list(None)) == []


def test_langchain_alone_is_held_without_langgraph_being_loaded(tmp_path: Path) -> None:
    script = tmp_path / "alone.py"
    script.write_text(
        "from greenroom import Case, rehearse\n"
        "acted = []\n"
        "def clerk(message):\n"
        "    from langchain_core.tools import tool\n"
        "    @tool\n"
        "    def pay() -> str:\n"
        "        'Pay.'\n"
        "        acted.append(1)\n"
        "        return 'paid'\n"
        "    return pay.invoke({})\n"
        "print(rehearse(clerk, Case('c', 'Hi')).results[0].status, acted)\n"
        "print(rehearse(clerk, Case('c', 'Hi', mocks={'pay': 'ok'})).results[0].ledger.index_of().called)\n"
    )
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, check=False)
    assert done.stdout.startswith("error []\n"), done.stderr
    assert "tool='pay'" in done.stdout


async def test_many_at_once() -> None:
    async def clerk(message: str) -> str:
        return await asyncio.to_thread(lambda: str(pay.invoke({"amount": int(message)})))

    cases = [Case(str(n), str(n), mocks={"pay": f"ok {n}"}) for n in range(8)]
    report = await evaluate(clerk, cases, concurrency=8, metrics=[called("pay")])
    assert report.passed, str(report)
    for n, result in enumerate(report.results):
        assert result.ledger is not None
        assert [c.args for c in result.ledger.of(ToolCalled)] == [{"amount": n}]
