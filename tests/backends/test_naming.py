"""What names a real tool, and what does not, in every framework: methods, other tools, mocks that call it."""

import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest
from agents.tool_context import ToolContext
from google.adk.agents import LlmAgent
from google.adk.tools.function_tool import FunctionTool
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai import Tool as PydanticTool

from agents import Agent as OpenAIAgent
from agents import function_tool
from backends.langgraph.scripts import Script
from greenroom import Agent, Case, Scripted, call, rehearse, tool
from greenroom.errors import BadCase
from greenroom.ledger.events import ToolReturned
from greenroom.metrics import contains
from greenroom.results.result import CaseResult

Wrap = Callable[[Any], Any]

WRAPS: dict[str, Wrap] = {
    "native": tool,
    "langgraph": StructuredTool.from_function,
    "openai": function_tool,
    "pydantic": PydanticTool,
    "adk": FunctionTool,
}
AGENTS: dict[str, Callable[..., Any]] = {
    "native": lambda *tools: Agent("desk", model="openai:gpt-4o", tools=list(tools)),
    "langgraph": lambda *tools: create_agent(Script(lines=[]), list(tools)),
    "openai": lambda *tools: OpenAIAgent("desk", tools=list(tools)),
    "pydantic": lambda *tools: PydanticAgent(tools=tools),
    "adk": lambda *tools: LlmAgent(name="desk", model="gemini-2.5-flash", tools=list(tools)),
}
every_kind = pytest.mark.parametrize("kind", WRAPS)


class Desk:
    """Its methods are tools, as in most projects."""

    def __init__(self) -> None:
        self.acted: list[str] = []

    def cancel(self, order: int) -> str:
        """Cancel an order."""
        self.acted.append(f"cancel {order}")
        return "cancelled"

    def charge(self, order: int) -> str:
        """Charge an order."""
        self.acted.append(f"charge {order}")
        return "charged"


def rehearsed(agent: Any, mocks: dict[str, Any], allow: list[Any]) -> CaseResult:
    model = Scripted(call("cancel", order=7), "Done.", "Done.")
    case = Case("one", "Go", mocks=mocks, metrics=[contains("Done")])
    return rehearse(agent, [case], model=model, allow_tools=allow, store=False).results[0]


@every_kind
@pytest.mark.parametrize("is_mock", [True, False], ids=["as its own mock", "in allow_tools"])
def test_a_method_names_its_tool_and_no_other_object_s(kind: str, is_mock: bool) -> None:
    desk, other = Desk(), Desk()
    agent = AGENTS[kind](WRAPS[kind](desk.cancel))
    mocks, allow = ({"cancel": desk.cancel}, []) if is_mock else ({}, [desk.cancel])
    result = rehearsed(agent, mocks, allow)
    assert result.status == "passed", result.error
    assert desk.acted == ["cancel 7"]
    assert result.ledger is not None
    assert [event.source for event in result.ledger.of(ToolReturned)] == ["live"]
    if not is_mock:
        assert rehearsed(agent, {}, [other.cancel]).status == "error"
        assert desk.acted == ["cancel 7"]


@dataclass
class Cancel:
    """Cancel an order."""

    acted: list[str]

    async def __call__(self, order: int) -> str:
        self.acted.append(f"cancel {order}")
        return "cancelled"


@pytest.mark.parametrize("is_partial", [False, True], ids=["object", "partial"])
def test_a_callable_object_or_a_partial_is_a_tool_that_its_name_and_itself_name(
    is_partial: bool,
) -> None:
    desk = Desk()

    def cancel(order: int, by: Desk) -> str:
        """Cancel an order."""
        return by.cancel(order)

    given = partial(cancel, by=desk) if is_partial else Cancel(desk.acted)
    made = tool(given) if is_partial else tool(name="cancel")(given)
    assert made.description == "Cancel an order."
    agent = AGENTS["native"](made)
    assert rehearsed(agent, {}, []).status == "error"
    assert rehearsed(agent, {"cancel": "ok"}, []).status == "passed"
    assert desk.acted == []
    for named in (given, made, "cancel"):
        assert rehearsed(agent, {}, [named]).status == "passed"
    assert desk.acted == ["cancel 7"] * 3


def test_another_tool_of_our_own_is_refused_as_a_mock_before_the_run() -> None:
    desk = Desk()
    cancel, charge = tool(desk.cancel), tool(desk.charge)
    with pytest.raises(BadCase, match="mocks tool 'cancel' by the tool 'charge'"):
        rehearsed(AGENTS["native"](cancel, charge), {"cancel": charge}, [])
    assert desk.acted == []


@pytest.mark.parametrize("kind", [kind for kind in WRAPS if kind != "native"])
def test_another_tool_is_no_mock(kind: str) -> None:
    desk = Desk()
    cancel, charge = WRAPS[kind](desk.cancel), WRAPS[kind](desk.charge)
    result = rehearsed(AGENTS[kind](cancel, charge), {"cancel": charge}, [])
    assert result.error is not None
    assert "mocks['cancel'] is the tool 'charge', not 'cancel'" in result.error.message
    assert desk.acted == []


def test_another_tool_of_the_same_name_is_named_as_such() -> None:
    desk, other = Desk(), Desk()
    mock, called = tool(desk.cancel), tool(other.cancel)
    result = rehearsed(AGENTS["native"](called), {"cancel": mock}, [])
    assert result.error is not None
    assert "is one of several tools that are called 'cancel'" in result.error.message
    assert [*desk.acted, *other.acted] == []


async def _openai(made: Any, order: int) -> Any:
    context = ToolContext(None, tool_name="cancel", tool_call_id="1", tool_arguments="{}")
    return await made.on_invoke_tool(context, f'{{"order": {order}}}')


def _native_in_a_thread(made: Any, order: int) -> str:
    thread = threading.Thread(target=made, args=(order,))
    thread.start()
    thread.join()
    return "ok"


CALLS: dict[str, tuple[str, Callable[[Any, int], Any]]] = {
    "native": ("native", lambda made, order: made(order)),
    "native in a thread": ("native", _native_in_a_thread),
    "langgraph": ("langgraph", lambda made, order: made.invoke({"order": order})),
    "langgraph async": ("langgraph", lambda made, order: made.ainvoke({"order": order})),
    "openai": ("openai", _openai),
    "pydantic": ("pydantic", lambda made, n: made.function_schema.call({"order": n}, None)),
    "adk": ("adk", lambda made, order: made.run_async(args={"order": order}, tool_context=None)),
}


@pytest.mark.parametrize("way", CALLS)
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mock_that_calls_its_own_tool_is_refused_at_once(way: str) -> None:
    kind, calls = CALLS[way]
    desk = Desk()
    made = WRAPS[kind](desk.cancel)
    result = rehearsed(AGENTS[kind](made), {"cancel": lambda order: calls(made, order)}, [])
    assert result.error is not None
    assert result.error.type == "ToolRefused"
    assert "called the tool 'cancel' itself" in result.error.message
    assert desk.acted == []
