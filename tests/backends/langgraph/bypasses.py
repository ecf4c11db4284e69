"""Ways around the gate that LangChain and LangGraph offer, each tried with a canary behind it."""

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from threading import Thread
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ShellToolMiddleware, ToolRetryMiddleware
from langchain_core.messages import AIMessage
from langchain_core.runnables import RunnableLambda
from langchain_core.tools import BaseTool, StructuredTool, tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from backends.langgraph.scripts import Script, Swallow, agent_of
from greenroom.ledger.messages import ToolCall
from greenroom.testing import Blueprint, Bypass, Desk, ToolPlan

WEATHER = ToolCall("weather", {"city": "Oslo"}, "call-weather")
OSLO = {"city": "Oslo"}
HIDDEN: list[Any] = []


def weather_of(desk: Desk) -> BaseTool:
    return StructuredTool.from_function(desk.weather)


def node(act: Any) -> Any:
    """A graph of one node that does something and makes the best of what comes of it."""
    graph = StateGraph(MessagesState)
    graph.add_node("act", act)
    graph.add_edge(START, "act")
    return graph.compile(name="acting")


def done() -> Any:
    return {"messages": [AIMessage("done")]}


def async_node(desk: Desk) -> Any:
    weather = weather_of(desk)

    async def act(_: MessagesState) -> Any:
        with suppress(BaseException):
            await weather.ainvoke(OSLO)
        return done()

    return node(act)


def sync_node(desk: Desk) -> Any:
    weather = weather_of(desk)

    def act(_: MessagesState) -> Any:
        with suppress(BaseException):
            weather.invoke(OSLO)
        return done()

    return node(act)


def blocking_node(desk: Desk) -> Any:
    weather = weather_of(desk)

    async def act(_: MessagesState) -> Any:
        with suppress(BaseException):
            weather.invoke(OSLO)
        return done()

    return node(act)


def blocking_agent(desk: Desk) -> Any:
    inner = agent_of(Blueprint(lines=[WEATHER, "done"], tools=[ToolPlan(desk.weather)]))

    async def act(state: MessagesState) -> Any:
        inner.invoke(state)
        return done()

    return node(act)


def raw_thread(desk: Desk) -> Any:
    weather = weather_of(desk)

    def call() -> None:
        with suppress(BaseException):
            weather.invoke(OSLO)

    async def act(_: MessagesState) -> Any:
        thread = Thread(target=call)
        thread.start()
        await asyncio.to_thread(thread.join)
        return done()

    return node(act)


def bare_pool(desk: Desk) -> Any:
    weather = weather_of(desk)

    def act(_: MessagesState) -> Any:
        with ThreadPoolExecutor() as pool:
            pool.submit(weather.invoke, OSLO).exception()
        return done()

    return node(act)


def empty_context(desk: Desk) -> Any:
    weather = weather_of(desk)

    async def act(_: MessagesState) -> Any:
        contextvars.Context().run(weather.invoke, OSLO)
        return done()

    return node(act)


def in_a_batch(desk: Desk) -> Any:
    weather = weather_of(desk)

    async def act(_: MessagesState) -> Any:
        await weather.abatch([OSLO, OSLO], return_exceptions=True)
        return done()

    return node(act)


def in_a_chain(desk: Desk) -> Any:
    chain = RunnableLambda(lambda _: OSLO) | weather_of(desk)

    async def act(_: MessagesState) -> Any:
        with suppress(BaseException):
            async for _piece in chain.astream(None):
                pass
        return done()

    return node(act)


def in_a_tool_node(desk: Desk) -> Any:
    tools = ToolNode([weather_of(desk)], handle_tool_errors=True)
    graph = StateGraph(MessagesState)
    graph.add_node("model", lambda state: {"messages": [_wants()]})
    graph.add_node("tools", tools)
    graph.add_edge(START, "model")
    graph.add_edge("model", "tools")
    return graph.compile(name="acting")


def _wants() -> AIMessage:
    return AIMessage("", tool_calls=[{"name": "weather", "args": OSLO, "id": "call-weather"}])


def in_an_allowed_tool(desk: Desk) -> Any:
    inner = agent_of(Blueprint(lines=[WEATHER, "done"], tools=[ToolPlan(desk.weather)]))

    @tool
    async def delegate(question: str) -> str:
        """Ask a colleague."""
        with suppress(BaseException):
            await inner.ainvoke({"messages": [("user", question)]})
        return "asked"

    call = ToolCall("delegate", {"question": "?"}, "call-delegate")
    return create_agent(Script(lines=[call, "done"]), [delegate], name="clerk")


def by_a_middleware(desk: Desk) -> Any:
    class Eager(AgentMiddleware):
        async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
            with suppress(BaseException):
                await request.tool.ainvoke(OSLO)
            return await handler(request)

    tools = [weather_of(desk)]
    return create_agent(
        Script(lines=[WEATHER, "done"]), tools, middleware=[Swallow(), Eager()], name="clerk"
    )


def retried(desk: Desk) -> Any:
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0.0, on_failure="continue")
    tools = [weather_of(desk)]
    return create_agent(Script(lines=[WEATHER, "done"]), tools, middleware=[retry], name="clerk")


class OwnTool(BaseTool):
    """A tool that does its work where LangChain only begins."""

    name: str = "weather"
    description: str = "The weather."
    desk: Any = None

    def _run(self, city: str) -> str:
        return ""

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        self.desk.mark("own ainvoke")


class OwnModel(Script):
    """A model that acts when it is asked."""

    desk: Any = None

    async def ainvoke(self, *_: Any, **__: Any) -> Any:
        self.desk.mark("own ainvoke")
        return AIMessage("done")


def own_tool(desk: Desk) -> Any:
    mine = OwnTool(desk=desk)

    async def act(_: MessagesState) -> Any:
        await mine.ainvoke(OSLO)
        return done()

    return node(act)


def own_model(desk: Desk) -> Any:
    mine = OwnModel(lines=[], desk=desk)

    async def act(state: MessagesState) -> Any:
        return {"messages": [await mine.ainvoke(state["messages"])]}

    return node(act)


def hidden_tool(desk: Desk) -> Any:
    HIDDEN[:] = [OwnTool(desk=desk)]

    async def act(_: MessagesState) -> Any:
        with suppress(BaseException):
            await HIDDEN[0].ainvoke(OSLO)
        return done()

    return node(act)


class Acting(Script):
    """A model that calls a tool while it is asked, and makes the best of what comes of it."""

    tool: Any = None

    async def _agenerate(self, *args: Any, **given: Any) -> Any:
        with suppress(BaseException):
            await self.tool.ainvoke(OSLO)
        return await super()._agenerate(*args, **given)


def in_a_model(desk: Desk) -> Any:
    return create_agent(Acting(lines=["done"], tool=weather_of(desk)), [], name="clerk")


class Reaching(Script):
    """A model that calls a tool which nobody can find beforehand."""

    async def _agenerate(self, *args: Any, **given: Any) -> Any:
        with suppress(BaseException):
            await HIDDEN[0].ainvoke(OSLO)
        return await super()._agenerate(*args, **given)


def hidden_tool_in_a_model(desk: Desk) -> Any:
    HIDDEN[:] = [OwnTool(desk=desk)]
    return create_agent(Reaching(lines=["done"]), [], name="clerk")


def shell(desk: Desk) -> Any:
    path = desk._file
    middleware = ShellToolMiddleware(startup_commands=[f"echo started >> {path}"])
    return create_agent(Script(lines=["done"]), [], middleware=[middleware], name="clerk")


BYPASSES = {
    "an async node that calls a tool": Bypass(async_node),
    "a sync node that calls a tool": Bypass(sync_node),
    "an async node that blocks on a tool": Bypass(blocking_node),
    "an async node that blocks on an agent": Bypass(blocking_agent),
    "a raw thread": Bypass(raw_thread),
    "a bare thread pool": Bypass(bare_pool),
    "an emptied context": Bypass(empty_context),
    "a batch": Bypass(in_a_batch),
    "a chain that streams": Bypass(in_a_chain),
    "a tool node that swallows and is the last": Bypass(in_a_tool_node),
    "an agent inside an allowed tool": Bypass(in_an_allowed_tool, allow_tools=["delegate"]),
    "a middleware that calls the tool itself": Bypass(by_a_middleware),
    "a middleware that tries again": Bypass(retried),
    "a tool with its own ainvoke": Bypass(own_tool),
    "a model with its own ainvoke": Bypass(own_model),
    "a tool with its own ainvoke out of sight": Bypass(hidden_tool),
    "a model that calls a tool": Bypass(in_a_model),
    "a model that calls a tool with its own ainvoke": Bypass(hidden_tool_in_a_model),
}
