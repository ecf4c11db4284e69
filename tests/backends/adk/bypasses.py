"""Ways around the gate that google-adk offers, each tried with a canary behind it."""

from collections.abc import Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.live_request_queue import LiveRequestQueue
from google.adk.agents.run_config import RunConfig
from google.adk.models.llm_request import LlmRequest
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.mcp_tool.mcp_toolset import McpToolset
from mcp import StdioServerParameters

from backends.adk.scripts import WEATHER, Script, agent, case, run_bare
from backends.adk.versions import HAS_MODES
from greenroom import evaluate
from greenroom.testing import Desk


class LedgerSource(BaseToolset):
    """Lists its tools again for every request."""

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
    return agent("clerk", WEATHER, "done", tools=[LedgerSource(desk.weather)])


def prefixed_toolset(desk: Desk) -> LlmAgent:
    shelf = LedgerSource(desk.weather, tool_name_prefix="far")
    return agent("clerk", ("far_weather", {"city": "Oslo"}), "done", tools=[shelf])


def mcp_toolset(desk: Desk) -> LlmAgent:
    return agent("clerk", "done", tools=[Server(desk)])


def generator_tool(desk: Desk) -> LlmAgent:
    def weather(city: str):
        """The weather."""
        yield desk.mark(city)

    return agent("clerk", WEATHER, "done", tools=[weather])


def async_generator_tool(desk: Desk) -> LlmAgent:
    async def weather(city: str):
        """The weather."""
        yield desk.mark(city)

    return agent("clerk", WEATHER, "done", tools=[weather])


def live_connection(desk: Desk) -> LlmAgent:
    """A callback that lets the agent talk live, past every turn."""

    class Live(Script):
        @asynccontextmanager
        async def connect(self, llm_request: LlmRequest):
            desk.mark("connected")
            raise ConnectionError("no line")
            yield

    async def talk(callback_context: Any) -> None:
        context = callback_context._invocation_context
        context.live_request_queue = LiveRequestQueue()
        context.run_config = RunConfig()
        with suppress(Exception):
            async for _ in context.agent._run_live_impl(context):
                pass

    model = Live(lines=["done"])
    return LlmAgent(name="clerk", model=model, before_agent_callback=talk)


def own_kind_with_a_gated_model(desk: Desk) -> LlmAgent:
    """A callback that starts an agent of the author's own kind, which holds a model with a gate."""

    class Clerk(BaseAgent):
        model: Any = None

        async def _run_async_impl(self, ctx: Any):
            desk.weather("Oslo")
            return
            yield

    async def start(callback_context: Any) -> None:
        context = callback_context._invocation_context
        async for _ in Clerk(name="other", model=context.agent.model).run_async(context):
            pass

    return agent("clerk", "done", before_agent_callback=start)


def own_way_to_the_function(desk: Desk) -> LlmAgent:
    """A function's tool that is the framework's but for the last step."""

    class Weather(FunctionTool):
        async def _invoke_callable(self, target: Any, args_to_call: dict[str, Any]) -> Any:
            return desk.weather("Oslo")

    return agent("clerk", WEATHER, "done", tools=[Weather(desk.weather)])


def replaced_step_to_the_function(desk: Desk) -> LlmAgent:
    tool: Any = FunctionTool(desk.weather)

    async def invoke(target: Any, args_to_call: dict[str, Any]) -> Any:
        return desk.weather("Oslo")

    tool._invoke_callable = invoke
    return agent("clerk", WEATHER, "done", tools=[tool])


BYPASSES: dict[str, Callable[[Desk], Any]] = {
    "a tool smuggled in where no plug-in sees it": smuggled_where_no_plugin_sees,
    "an agent tool below one without plug-ins": below_an_unplugged_agent,
    "a toolset": toolset,
    "a toolset with a prefix": prefixed_toolset,
    "an MCP toolset that starts a server": mcp_toolset,
    "a live connection to the model": live_connection,
    "a step to the function of one's own": own_way_to_the_function,
    "a replaced step to the function": replaced_step_to_the_function,
}
if HAS_MODES:
    BYPASSES.update(
        {
            "a generator as a tool": generator_tool,
            "an async generator as a tool": async_generator_tool,
            "a single turn that swallows every error": swallowed_in_a_single_turn,
            "a helper that does a task": task_helper,
        }
    )


async def leads_nowhere(
    build: Callable[[Desk], Any],
    folder: Path,
    seen_as: Callable[[Any], Any] = lambda root: root,
    **options: Any,
) -> None:
    """Try a way with the gate open and closed, its agent handed over as `seen_as` makes of it."""
    open_desk, desk = Desk(folder), Desk(folder / "closed")
    (folder / "closed").mkdir()
    await run_bare(build(open_desk))
    assert open_desk.marks, "the canary does not fire even without a gate"
    alone = await evaluate(seen_as(build(desk)), case(**options))
    many = [case(f"case {n}", **options) for n in range(8)]
    together = await evaluate(seen_as(build(desk)), many, concurrency=8)
    assert {result.status for result in [*alone, *together]} == {"error"}
    assert desk.marks == []
