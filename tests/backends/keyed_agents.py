"""Agents of every framework as people write them, with models that must never be asked."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.models.base_llm import BaseLlm
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.outputs import ChatResult
from langchain_core.tools import tool as langchain_tool
from pydantic import BaseModel
from pydantic_ai import Agent as PydanticAgent
from pydantic_ai.models.function import FunctionModel

from agents import Agent as OpenAIAgent
from agents import Model as OpenAIModel
from agents import function_tool
from greenroom import Agent, tool

ASKED: list[str] = []
"""The models that were asked for real; the canary of these tests."""


class Forecast(BaseModel):
    """What an agent answers that answers with data."""

    city: str
    degrees: int


def get_weather(city: str) -> dict[str, Any]:
    """Current weather in a city."""
    raise RuntimeError("never reached in a rehearsal")


class OwnChatModel(BaseChatModel):
    """A chat model with tools, as a provider's class is."""

    @property
    def _llm_type(self) -> str:
        return "own"

    def bind_tools(self, tools: Any, *, tool_choice: Any = None, **options: Any) -> Any:
        described = [{"type": "function", "function": _function(one)} for one in tools]
        return self.bind(tools=described, tool_choice=tool_choice, **options)

    def _generate(self, *_: Any, **__: Any) -> ChatResult:
        ASKED.append("langgraph")
        raise OSError("the agent's own model was asked")


def _function(given: Any) -> dict[str, Any]:
    from langchain_core.utils.function_calling import convert_to_openai_tool

    return convert_to_openai_tool(given)["function"]


class OwnLlm(BaseLlm):
    """A model of google-adk's."""

    async def generate_content_async(self, *_: Any, **__: Any) -> AsyncGenerator[Any]:
        ASKED.append("google-adk")
        raise OSError("the agent's own model was asked")
        yield


class OwnOpenAI(OpenAIModel):
    """A model of the OpenAI Agents SDK's."""

    async def get_response(self, *_: Any, **__: Any) -> Any:
        ASKED.append("openai-agents")
        raise OSError("the agent's own model was asked")

    async def stream_response(self, *_: Any, **__: Any) -> AsyncGenerator[Any]:
        ASKED.append("openai-agents")
        raise OSError("the agent's own model was asked")
        yield


class OwnModel:
    """A model of Greenroom's."""

    name = "own"

    async def respond(self, *_: Any, **__: Any) -> Any:
        ASKED.append("native")
        raise OSError("the agent's own model was asked")


async def _asked(*_: Any) -> Any:
    ASKED.append("pydantic-ai")
    raise OSError("the agent's own model was asked")


def native(output: Any = None, **_: Any) -> Any:
    own: Any = OwnModel()
    return Agent("weather", model=own, tools=[tool(get_weather)], output=output)


def adk(output: Any = None) -> Any:
    return LlmAgent(
        name="weather", model=OwnLlm(model="own"), tools=[get_weather], output_schema=output
    )


def langgraph(output: Any = None) -> Any:
    return create_agent(
        OwnChatModel(), [langchain_tool(get_weather)], response_format=output, name="weather"
    )


def openai_agents(output: Any = None) -> Any:
    return OpenAIAgent(
        name="weather",
        model=OwnOpenAI(),
        tools=[function_tool(get_weather, strict_mode=False)],
        output_type=output,
    )


def pydantic_ai(output: Any = None) -> Any:
    model = FunctionModel(_asked, model_name="own")
    return PydanticAgent(
        model, name="weather", tools=[get_weather], output_type=str if output is None else output
    )


FRAMEWORKS: dict[str, Callable[..., Any]] = {
    "native": native,
    "google-adk": adk,
    "langgraph": langgraph,
    "openai-agents": openai_agents,
    "pydantic-ai": pydantic_ai,
}
