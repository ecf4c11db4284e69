"""Plain functions around google-adk's agents: ways to a tool body that no handed-over agent takes."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import wraps
from threading import Thread
from typing import Any

from google.adk.agents import BaseAgent, LlmAgent
from google.adk.agents.run_config import (
    RunConfig,
    StreamingMode,  # pyright: ignore[reportPrivateImportUsage] - elsewhere in older versions
)
from google.adk.runners import InMemoryRunner
from google.adk.tools import AgentTool, FunctionTool
from google.adk.tools.base_tool import BaseTool
from google.genai import types

from backends.adk.bypasses import LedgerSource, smuggle_into
from backends.adk.scripts import WEATHER, agent, run_bare
from backends.adk.versions import HAS_MODES
from greenroom.testing import Desk

Clerk = Callable[[str], Any]
OwnedJson = Callable[[Desk], Clerk]


def around(root: Any) -> Clerk:
    async def clerk(message: str) -> str:
        await run_bare(root, message)
        return "done"

    return clerk


def simple(desk: Desk) -> LlmAgent:
    return agent("inner", WEATHER, "fine", tools=[desk.weather])


def in_a_pool(desk: Desk) -> Clerk:
    inner = simple(desk)

    async def clerk(message: str) -> str:
        with ThreadPoolExecutor(1) as pool:
            pool.submit(asyncio.run, run_bare(inner, message)).result()
        return "done"

    return clerk


def in_a_thread(desk: Desk) -> Clerk:
    inner = simple(desk)

    async def swallowing(message: str) -> None:
        with suppress(Exception):
            await run_bare(inner, message)

    def clerk(message: str) -> str:
        thread = Thread(target=lambda: asyncio.run(swallowing(message)))
        thread.start()
        thread.join()
        return "done"

    return clerk


def by_the_runner_that_blocks(desk: Desk) -> Clerk:
    """Runner.run, which has a thread and a loop of its own."""
    inner = simple(desk)

    def clerk(message: str) -> str:
        runner = InMemoryRunner(agent=inner, app_name="bare")
        create = runner.session_service.create_session
        asyncio.run(create(app_name="bare", user_id="u", session_id="s"))
        said = types.Content(role="user", parts=[types.Part(text=message)])
        for _ in runner.run(user_id="u", session_id="s", new_message=said):
            pass
        return "done"

    return clerk


def streaming(desk: Desk) -> Clerk:
    inner = simple(desk)

    async def clerk(message: str) -> str:
        runner = InMemoryRunner(agent=inner, app_name="bare")
        await runner.session_service.create_session(app_name="bare", user_id="u", session_id="s")
        said = types.Content(role="user", parts=[types.Part(text=message)])
        config = RunConfig(streaming_mode=StreamingMode.SSE)
        async for _ in runner.run_async(
            user_id="u", session_id="s", new_message=said, run_config=config
        ):
            pass
        return "done"

    return clerk


def as_a_tool(include_plugins: bool) -> OwnedJson:
    def made(desk: Desk) -> Clerk:
        delegate = AgentTool(simple(desk), include_plugins=include_plugins)
        return around(agent("outer", ("inner", {"request": "?"}), "fine", tools=[delegate]))

    return made


def handed_on(desk: Desk) -> Clerk:
    line = ("transfer_to_agent", {"agent_name": "inner"})
    return around(agent("outer", line, sub_agents=[simple(desk)]))


def single_turn(desk: Desk) -> Clerk:
    helper = agent("helper", WEATHER, "fine", mode="single_turn", tools=[desk.weather])
    return around(agent("outer", ("helper", {"request": "?"}), "fine", sub_agents=[helper]))


def smuggled(desk: Desk) -> Clerk:
    return around(agent("inner", WEATHER, "fine", before_model_callback=smuggle_into(desk)))


def toolset(desk: Desk) -> Clerk:
    return around(agent("inner", WEATHER, "fine", tools=[LedgerSource(desk.weather)]))


def own_class(desk: Desk) -> Clerk:
    """A tool class that comes to be while the function runs."""

    async def clerk(message: str) -> str:
        class Weather(FunctionTool):
            async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
                return await super().run_async(args=args, tool_context=tool_context)

        await run_bare(agent("inner", WEATHER, "fine", tools=[Weather(desk.weather)]), message)
        return "done"

    return clerk


def bare_class(desk: Desk) -> Clerk:
    class Weather(BaseTool):
        def _get_declaration(self) -> types.FunctionDeclaration:
            return types.FunctionDeclaration(name="weather", description="The weather.")

        async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:
            return desk.weather(**args)

    weather = Weather(name="weather", description="The weather.")
    return around(agent("inner", WEATHER, "fine", tools=[weather]))


def replaced_on_the_object(desk: Desk) -> Clerk:
    weather: Any = FunctionTool(desk.weather)

    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return desk.weather(**args)

    weather.run_async = run_async
    return around(agent("inner", WEATHER, "fine", tools=[weather]))


def replaced_on_the_class(desk: Desk) -> Clerk:
    class Weather(FunctionTool):
        pass

    async def run_async(self: Any, *, args: dict[str, Any], tool_context: Any) -> Any:
        return self.func(**args)

    async def clerk(message: str) -> str:
        Weather.run_async = run_async  # pyright: ignore[reportAttributeAccessIssue]
        await run_bare(agent("inner", WEATHER, "fine", tools=[Weather(desk.weather)]), message)
        return "done"

    return clerk


def wrapped_agent_tool(desk: Desk) -> Clerk:
    """A tool that has copied all by which an agent used as a tool could be known."""

    class Weather(AgentTool):
        @wraps(AgentTool.run_async)
        async def run_async(  # pyright: ignore[reportIncompatibleMethodOverride]
            self, *, args: dict[str, Any], tool_context: Any
        ) -> Any:
            return desk.weather("Oslo")

    delegate = Weather(agent("weather", "fine"))
    return around(agent("inner", ("weather", {"request": "?"}), "fine", tools=[delegate]))


def wrapped_on_the_object(desk: Desk) -> Clerk:
    delegate: Any = AgentTool(agent("weather", "fine"))

    @wraps(delegate.run_async)
    async def run_async(*, args: dict[str, Any], tool_context: Any) -> Any:
        return desk.weather("Oslo")

    delegate.run_async = run_async
    return around(agent("inner", ("weather", {"request": "?"}), "fine", tools=[delegate]))


def called_by_hand(desk: Desk) -> Clerk:
    """A callback that runs a tool itself."""
    tool = FunctionTool(desk.weather)

    async def act(callback_context: Any) -> None:
        await tool.run_async(args={"city": "Oslo"}, tool_context=callback_context)

    return around(agent("inner", "fine", before_agent_callback=act))


def by_a_callback(desk: Desk) -> Clerk:
    other = simple(desk)

    async def act(callback_context: Any) -> None:
        await run_bare(other)

    return around(agent("outer", "fine", before_agent_callback=act))


def by_an_agent_of_ones_own(desk: Desk) -> Clerk:
    class Flow(BaseAgent):
        async def _run_async_impl(self, ctx: Any):
            async for event in self.sub_agents[0].run_async(ctx):
                yield event

    return around(Flow(name="flow", sub_agents=[simple(desk)]))


INSIDERS: dict[str, OwnedJson] = {
    "a runner": lambda desk: around(simple(desk)),
    "a runner in a pool": in_a_pool,
    "a runner in a thread": in_a_thread,
    "the runner that blocks": by_the_runner_that_blocks,
    "a runner that streams": streaming,
    "an agent used as a tool": as_a_tool(True),
    "an agent used as a tool without plug-ins": as_a_tool(False),
    "a sub-agent": handed_on,
    "a tool smuggled into the request": smuggled,
    "a toolset": toolset,
    "a tool class made while it runs": own_class,
    "a tool class of one's own": bare_class,
    "a tool whose method was replaced on the object": replaced_on_the_object,
    "a tool whose method was replaced on the class": replaced_on_the_class,
    "a wrapped agent tool": wrapped_agent_tool,
    "an agent tool wrapped on the object": wrapped_on_the_object,
    "a callback that runs a tool": called_by_hand,
    "a callback that runs an agent": by_a_callback,
    "an agent class of one's own": by_an_agent_of_ones_own,
}
if HAS_MODES:
    INSIDERS["a single turn"] = single_turn
