"""Ways around the gate through graphs, each tried with a canary behind it."""

from collections.abc import Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.context import Context
from google.adk.events import Event
from google.adk.tools import FunctionTool
from google.adk.workflow import Workflow, node

from backends.adk.scripts import WEATHER, agent
from greenroom.testing import Desk


def function_node(desk: Desk) -> Workflow:
    def act() -> str:
        return desk.mark("acted")

    return Workflow(name="flow", edges=[("START", act, agent("clerk", "done"))])


def generator_node(desk: Desk) -> Workflow:
    async def act(node_input: str):
        desk.mark("acted")
        yield "done"

    return Workflow(name="flow", edges=[("START", act)])


def nested_node(desk: Desk) -> Workflow:
    return Workflow(name="outer", edges=[("START", function_node(desk))])


def parallel_node(desk: Desk) -> Workflow:
    def act(node_input: str) -> str:
        return desk.mark(f"acted on {node_input}")

    def split() -> list[str]:
        desk.mark("split")
        return ["a", "b"]

    return Workflow(name="flow", edges=[("START", split, node(act, parallel_worker=True))])


def tool_node(desk: Desk) -> Workflow:
    return Workflow(name="flow", edges=[("START", FunctionTool(desk.weather))])


def node_as_tool(desk: Desk) -> LlmAgent:
    def act(what: str) -> str:
        """Act."""
        return desk.mark(what)

    return agent("clerk", ("act", {"what": "acted"}), "done", tools=[node(act)])


def workflow_as_tool(desk: Desk) -> LlmAgent:
    def act(node_input: str) -> str:
        return desk.mark("acted")

    flow = Workflow(name="flow", edges=[("START", act)], input_schema=str)
    return agent("clerk", ("flow", {"request": "x"}), "done", tools=[flow])  # type: ignore[list-item]


def callback_in_a_node(desk: Desk) -> Workflow:
    def act() -> Event:
        desk.mark("acted")
        return Event(output="done")

    inner = agent("clerk", WEATHER, "done", tools=[desk.weather])
    return Workflow(name="flow", edges=[("START", inner, act)])


GRAPH_BYPASSES: dict[str, Callable[[Desk], Any]] = {
    "a function node": function_node,
    "a generator node": generator_node,
    "a node of a nested workflow": nested_node,
    "a node run in parallel": parallel_node,
    "a tool as a node": tool_node,
    "a node as a tool": node_as_tool,
    "a workflow as a tool": workflow_as_tool,
    "an agent in a workflow": callback_in_a_node,
}


def dynamic_agent(desk: Desk) -> Workflow:
    """A node that is allowed, and that brings up an agent nobody has seen."""
    hidden = agent("hidden", WEATHER, "done", tools=[desk.weather])

    async def act(ctx: Context) -> Any:
        return await ctx.run_node(hidden, node_input="hello")

    act_node = node(act, rerun_on_resume=True)
    return Workflow(name="flow", edges=[("START", act_node)])


def dynamic_tool(desk: Desk) -> Workflow:
    async def act(ctx: Context) -> Any:
        return await ctx.run_node(FunctionTool(desk.weather), node_input={"city": "Oslo"})

    act_node = node(act, rerun_on_resume=True)
    return Workflow(name="flow", edges=[("START", act_node)])
