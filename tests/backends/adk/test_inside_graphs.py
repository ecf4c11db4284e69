"""Graphs of google-adk inside plain functions: their nodes are put to the gate as tools are."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents.context import Context
from google.adk.events import Event
from google.adk.tools import FunctionTool
from google.adk.tools._request_input_tool import request_input
from google.adk.workflow import Workflow, node
from google.adk.workflow._base_node import BaseNode

from backends.adk.bypasses import leads_nowhere
from backends.adk.graph_bypasses import GRAPH_BYPASSES, dynamic_agent, dynamic_tool, function_node
from backends.adk.insiders import around
from backends.adk.scripts import agent, case, ledger_of, result_of, run_bare
from backends.adk.test_inside import events_of
from greenroom.ledger.events import AgentSaid, ToolCalled
from greenroom.testing import Desk

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


class Acting(BaseNode):
    """A node of the author's own kind."""

    desk: Any

    async def _run_impl(self, *, ctx: Context, node_input: Any):
        self.desk.mark("acted")
        yield Event(output="acted")


def own_kind(desk: Desk) -> Workflow:
    return Workflow(name="flow", edges=[("START", Acting(name="act", desk=desk))])


def replaced_on_the_object(desk: Desk) -> Workflow:
    tool: Any = FunctionTool(desk.weather)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return desk.weather("Oslo")

    tool.run_async = run_async
    return Workflow(name="flow", edges=[("START", tool)])


WAYS: dict[str, Callable[[Desk], Any]] = {
    **GRAPH_BYPASSES,
    "a node of one's own kind": own_kind,
    "a tool node whose method was replaced": replaced_on_the_object,
}


@pytest.mark.parametrize("name", WAYS)
async def test_a_way_around_the_gate_leads_nowhere_inside_a_function(name: str, tmp_path: Path):
    await leads_nowhere(WAYS[name], tmp_path, around)


@pytest.mark.parametrize("build", [dynamic_agent, dynamic_tool])
async def test_what_a_named_node_brings_up_is_not_named_with_it(
    build: Callable[[Desk], Any], tmp_path: Path
):
    await leads_nowhere(build, tmp_path, around, allow_tools=["act"])


@pytest.mark.parametrize("build", [function_node, own_kind], ids=["function", "own kind"])
async def test_a_node_inside_a_function_is_mocked_or_named(
    build: Callable[[Desk], Any], desk: Desk
):
    flow = build(desk)
    mocked = await result_of(around(flow), case(mocks={"act": "fine"}))
    assert mocked.status == "passed", mocked.error
    assert [(c.tool, c.path) for c in ledger_of(mocked).of(ToolCalled)] == [("act", "@1/clerk/act")]
    assert desk.marks == []
    named = await result_of(around(flow), case(allow_tools=["act"]))
    assert (named.status, desk.marks) == ("passed", ["acted"]), named.error


@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_tool_that_yields_is_asked_about_once(kind: str, desk: Desk):
    def act(what: str):
        """Act."""
        yield desk.mark(what)

    async def later(what: str):
        """Act."""
        yield desk.mark(what)

    later.__name__ = "act"
    inner = agent("inner", ("act", {"what": "x"}), "done", tools=[act if kind == "sync" else later])
    await run_bare(inner)
    assert desk.marks == ["x"]
    for clerk in (inner, around(inner)):
        mocked = await result_of(clerk, case(mocks={"act": "fine"}))
        assert (mocked.status, desk.marks[1:]) == ("passed", []), mocked.error
        assert [c.tool for c in ledger_of(mocked).of(ToolCalled)] == ["act"]
    for n, clerk in enumerate((inner, around(inner))):
        named = await result_of(clerk, case(allow_tools=["act"]))
        assert (named.status, desk.marks) == ("passed", ["x"] * (n + 2)), named.error
        assert [c.tool for c in ledger_of(named).of(ToolCalled)] == ["act"]


async def test_a_node_used_as_a_tool_is_asked_about_once(desk: Desk):
    def act(what: str) -> str:
        """Act."""
        return desk.mark(what)

    inner = agent("inner", ("act", {"what": "x"}), "done", tools=[node(act)])
    for clerk in (inner, around(inner)):
        named = await result_of(clerk, case(allow_tools=["act"]))
        assert named.status == "passed", named.error
        assert [c.tool for c in ledger_of(named).of(ToolCalled)] == ["act"]
    assert desk.marks == ["x", "x"]


async def test_a_question_of_the_frameworks_own_comes_back_to_the_function():
    inner = agent(
        "inner", ("adk_request_input", {"message": "Sure?"}), "fine", tools=[request_input]
    )

    async def clerk(message: str) -> str:
        waiting = [e.long_running_tool_ids for e in await events_of(inner, message)]
        return f"done {any(waiting)}"

    assert await clerk("hello") == "done True"
    result = await result_of(clerk, case())
    assert result.status == "passed", result.error
    assert [said.text for said in ledger_of(result).of(AgentSaid)] == ["done True"]
