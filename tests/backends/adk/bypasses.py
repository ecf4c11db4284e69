"""Ways around the gate that google-adk offers, each tried with a canary behind it."""

from collections.abc import Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.agents.context import Context
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from google.adk.workflow import Workflow, node
from mcp import StdioServerParameters

from backends.adk.scripts import WEATHER, agent
from greenroom.testing import Desk


class Shelf(BaseToolset):
    """Lists its tools anew for every request."""

    def __init__(self, *tools: Any, **options: Any) -> None:
        super().__init__(**options)
        self._tools = tools

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        return [FunctionTool(tool) for tool in self._tools]


class Server(McpToolset):
    """An MCP toolset whose server would be this very process."""

    def __init__(self, desk: Desk, **options: Any) -> None:
        super().__init__(connection_params=StdioServerParameters(command="none"), **options)
        self._desk = desk

    async def get_tools(self, readonly_context: Any = None) -> list[BaseTool]:
        self._desk.mark("server started")
        return [FunctionTool(self._desk.weather)]


def smuggle_into(desk: Desk) -> Callable[..., None]:
    def smuggle(callback_context: Any, llm_request: LlmRequest) -> None:
        llm_request.append_tools([FunctionTool(desk.weather)])

    return smuggle


def smuggled_where_no_plugin_sees(desk: Desk) -> LlmAgent:
    helper = agent("helper", WEATHER, "fine", before_model_callback=smuggle_into(desk))
    delegate = AgentTool(helper, include_plugins=False)
    return agent("clerk", ("helper", {"request": "?"}), "done", tools=[delegate])


def below_an_unplugged_agent(desk: Desk) -> LlmAgent:
    deep = agent("deep", WEATHER, "fine", tools=[desk.weather])
    helper = agent("helper", ("deep", {"request": "?"}), "fine", tools=[AgentTool(deep)])
    delegate = AgentTool(helper, include_plugins=False)
    return agent("clerk", ("helper", {"request": "?"}), "done", tools=[delegate])


def swallowed_in_a_single_turn(desk: Desk) -> LlmAgent:
    helper = agent("helper", WEATHER, "fine", mode="single_turn", tools=[desk.weather])
    return agent("clerk", ("helper", {"request": "?"}), "done", sub_agents=[helper])


def task_helper(desk: Desk) -> LlmAgent:
    lines = [WEATHER, ("finish_task", {"result": "fine"})]
    helper = agent("helper", *lines, mode="task", tools=[desk.weather])
    return agent("clerk", ("helper", {"request": "?"}), "done", sub_agents=[helper])


def toolset(desk: Desk) -> LlmAgent:
    return agent("clerk", WEATHER, "done", tools=[Shelf(desk.weather)])


def prefixed_toolset(desk: Desk) -> LlmAgent:
    shelf = Shelf(desk.weather, tool_name_prefix="far")
    return agent("clerk", ("far_weather", {"city": "Oslo"}), "done", tools=[shelf])


def mcp_toolset(desk: Desk) -> LlmAgent:
    return agent("clerk", "done", tools=[Server(desk)])


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


BYPASSES: dict[str, Callable[[Desk], Any]] = {
    "a tool smuggled in where no plug-in sees it": smuggled_where_no_plugin_sees,
    "an agent tool below one without plug-ins": below_an_unplugged_agent,
    "a single turn that swallows every error": swallowed_in_a_single_turn,
    "a helper that does a task": task_helper,
    "a toolset": toolset,
    "a toolset with a prefix": prefixed_toolset,
    "an MCP toolset that starts a server": mcp_toolset,
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
