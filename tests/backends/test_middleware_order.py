"""Where middleware stands among the callbacks of a framework: the same on all of them.

It hears of a run before the agent's own callbacks do. At models and tools it stands inside of them,
next to the model or tool: it sees what callbacks made of a call, and they what it made of the answer.
"""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from google.adk.plugins.base_plugin import BasePlugin
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.tools import tool as langchain_tool
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from agents import Agent as OpenAIAgent
from agents import AgentHooks, function_tool
from backends.adk.scripts import agent as adk_agent
from backends.langgraph.scripts import Script as LangChainScript
from backends.openai_agents.scripts import Script as OpenAIScript
from greenroom import Case, Ledger, simulate
from greenroom.ledger import AgentSaid, RunEnded, ToolReturned, model_interactions
from greenroom.ledger.messages import ToolCall
from greenroom.world import Middleware, pii_filter

Hear = Callable[[str], None]


class Ours(Middleware):
    """Says in which order it is called, and answers as it is told."""

    def __init__(self, hear: Hear, **answers: Any) -> None:
        for hook in (
            *("before_run", "before_agent", "before_model", "before_tool"),
            *("after_tool", "after_model", "after_agent"),
        ):
            setattr(self, hook, self._hook(hook, hear, answers.get(hook)))

    def _hook(self, hook: str, hear: Hear, answer: Any) -> Any:
        async def heard(*_: Any) -> Any:
            hear(f"middleware {hook}")
            return answer

        return heard


def weather(city: str) -> str:
    """The weather."""
    raise AssertionError("mocked")


WEATHER = ToolCall("weather", {"city": "Oslo"}, "c-1")


def adk(hear: Hear) -> Any:
    def own(name: str) -> Any:
        def callback(*_: Any, **__: Any) -> None:
            hear(name)

        return callback

    hooks = ("before_agent", "after_agent", "before_model", "after_model")
    callbacks = {f"{name}_callback": own(name) for name in (*hooks, "before_tool", "after_tool")}
    line = ("weather", {"city": "Oslo"})
    return adk_agent("clerk", line, "done", tools=[weather], **callbacks)


class Plugin(BasePlugin):
    """The callbacks of a plug-in, which google-adk calls before those of the agent."""

    def __init__(self, hear: Hear) -> None:
        super().__init__(name="own")
        self._hear = hear

    async def before_agent_callback(self, **_: Any) -> None:
        self._hear("before_agent")

    async def after_agent_callback(self, **_: Any) -> None:
        self._hear("after_agent")

    async def before_model_callback(self, **_: Any) -> None:
        self._hear("before_model")

    async def after_model_callback(self, **_: Any) -> None:
        self._hear("after_model")

    async def before_tool_callback(self, **_: Any) -> None:
        self._hear("before_tool")

    async def after_tool_callback(self, **_: Any) -> None:
        self._hear("after_tool")


def adk_plugin(hear: Hear) -> Any:
    from google.adk.apps import App

    line = ("weather", {"city": "Oslo"})
    agent = adk_agent("clerk", line, "done", tools=[weather])
    return App(name="shop", root_agent=agent, plugins=[Plugin(hear)])


class OpenAIHooks(AgentHooks[Any]):
    def __init__(self, hear: Hear) -> None:
        for hook, name in {
            "on_start": "before_agent",
            "on_end": "after_agent",
            "on_llm_start": "before_model",
            "on_llm_end": "after_model",
            "on_tool_start": "before_tool",
            "on_tool_end": "after_tool",
        }.items():
            setattr(self, hook, self._hook(name, hear))

    def _hook(self, name: str, hear: Hear) -> Any:
        async def heard(*_: Any, **__: Any) -> None:
            hear(name)

        return heard


def openai_agents(hear: Hear) -> Any:
    model = OpenAIScript(WEATHER, "done")
    tools: Any = [function_tool(weather)]
    return OpenAIAgent(name="clerk", model=model, tools=tools, hooks=OpenAIHooks(hear))


class LangChainHooks(AgentMiddleware[Any, Any]):
    def __init__(self, hear: Hear) -> None:
        super().__init__()
        self._hear = hear

    async def abefore_agent(self, state: Any, runtime: Any) -> None:
        self._hear("before_agent")

    async def aafter_agent(self, state: Any, runtime: Any) -> None:
        self._hear("after_agent")

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        self._hear("before_model")
        reply = await handler(request)
        self._hear("after_model")
        return reply

    async def awrap_tool_call(self, request: Any, handler: Any) -> Any:
        self._hear("before_tool")
        result = await handler(request)
        self._hear("after_tool")
        return result


def langgraph(hear: Hear) -> Any:
    model = LangChainScript(lines=[WEATHER, "done"])
    return create_agent(
        model, [langchain_tool(weather)], middleware=[LangChainHooks(hear)], name="clerk"
    )


class PydanticHooks(AbstractCapability[Any]):
    def __init__(self, hear: Hear) -> None:
        self._hear = hear

    async def before_run(self, ctx: Any) -> None:
        self._hear("before_agent")

    async def after_run(self, ctx: Any, *, result: Any) -> Any:
        self._hear("after_agent")
        return result

    async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
        self._hear("before_model")
        return request_context

    async def after_model_request(self, ctx: Any, *, request_context: Any, response: Any) -> Any:
        self._hear("after_model")
        return response

    async def before_tool_execute(self, ctx: Any, *, args: Any, **_: Any) -> Any:
        self._hear("before_tool")
        return args

    async def after_tool_execute(self, ctx: Any, *, result: Any, **_: Any) -> Any:
        self._hear("after_tool")
        return result


def pydantic_ai(hear: Hear) -> Any:
    def reply(messages: list[Any], _: Any) -> ModelResponse:
        if any(isinstance(message, ModelResponse) for message in messages):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("weather", {"city": "Oslo"})])

    capabilities: Any = [PydanticHooks(hear)]
    return PydanticAgent(
        FunctionModel(reply), name="clerk", tools=[weather], capabilities=capabilities
    )


FRAMEWORKS = [adk, adk_plugin, openai_agents, langgraph, pydantic_ai]
MODEL = ["before_model", "middleware before_model", "middleware after_model", "after_model"]
TOOL = ["before_tool", "middleware before_tool", "middleware after_tool", "after_tool"]


def run(make: Callable[[Hear], Any], **answers: Any) -> tuple[list[str], Ledger]:
    heard: list[str] = []
    case = Case("c", says="Hi", mocks={"weather": "fine"})
    middleware = [Ours(heard.append, **answers)]
    ledger = asyncio.run(simulate(case, make(heard.append), middleware=middleware))
    assert isinstance(ledger.last, RunEnded)
    assert ledger.last.reason == "completed", ledger.last.error
    return heard, ledger


@pytest.mark.parametrize("make", FRAMEWORKS)
def test_middleware_is_asked_first_about_a_run_and_last_about_a_call(make: Any) -> None:
    heard, _ = run(make)
    assert heard == [
        *("middleware before_run", "middleware before_agent", "before_agent"),
        *(*MODEL, *TOOL, *MODEL),
        *("after_agent", "middleware after_agent"),
    ]


@pytest.mark.parametrize("make", FRAMEWORKS)
def test_callbacks_hear_what_middleware_answered_in_place_of_model_and_tool(make: Any) -> None:
    heard, ledger = run(make, before_tool="by middleware")
    assert ledger.of(ToolReturned)[0].value == "by middleware"
    assert [one for one in heard if "tool" in one] == [
        *("before_tool", "middleware before_tool", "after_tool"),
    ]
    heard, ledger = run(make, before_model="no need to ask")
    assert [one for one in heard if "model" in one] == [
        *("before_model", "middleware before_model", "after_model"),
    ]
    assert ledger.of(AgentSaid)[-1].text == "no need to ask"


@pytest.mark.parametrize("make", FRAMEWORKS)
def test_an_agent_that_middleware_answers_for_hears_nothing_itself(make: Any) -> None:
    heard, ledger = run(make, before_agent="not now")
    assert heard == ["middleware before_run", "middleware before_agent"]
    assert ledger.of(AgentSaid)[-1].text == "not now"


@pytest.mark.parametrize("make", FRAMEWORKS)
def test_a_framework_hears_only_what_is_recorded_of_user_and_tools(make: Any) -> None:
    case = Case("c", says="I am ann@example.org", mocks={"weather": {"to": "bob@example.org"}})

    def filtered(**options: Any) -> Ledger:
        agent = make(lambda _: None)
        return asyncio.run(simulate(case, agent, middleware=[pii_filter(**options)]))

    refused, hidden = filtered(), filtered(ledger=True)
    assert isinstance(refused.last, RunEnded)
    assert "sends its own to the model" in refused.last.error
    assert "ann@example.org" in refused.dumps()
    assert isinstance(hidden.last, RunEnded)
    assert hidden.last.reason == "completed", hidden.last.error
    assert "example.org" not in hidden.dumps()
    questions = [one.request for one in model_interactions(hidden) if one.request]
    assert [message.text for message in questions[-1].messages if message.role == "user"] == [
        "I am [email]"
    ]
