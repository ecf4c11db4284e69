"""What a framework's code is shown it may edit; what happened stays as it was written down."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

from greenroom import Case, Ledger, Turn, simulate
from greenroom.ledger import Event
from greenroom.ledger.codec import encoded

TOOL = "look"
ANSWER = {"found": {"days": [1]}, "secret": 1}
ARGS = {"where": {"room": [7]}}


def spoiled(thing: Any) -> None:
    """Edit all of a value, as a careless hook does."""
    if isinstance(thing, dict):
        for value in list(thing.values()):
            spoiled(value)
        thing["spoiled"] = True
    elif isinstance(thing, list):
        for value in list(thing):
            spoiled(value)
        thing.append("spoiled")


async def edited(agent: Any) -> list[Event]:
    """The events of two turns that are not what they were when they were written down."""
    told: list[tuple[Event, bytes]] = []
    case = Case("a", turns=[Turn("one"), Turn("two")], mocks={TOOL: ANSWER})
    ledger = await simulate(
        case, agent, on_event=lambda event: told.append((event, encoded(event)))
    )
    assert_played(ledger)
    return [event for event, line in told if encoded(event) != line]


def assert_played(ledger: Ledger) -> None:
    kinds = [type(event).__name__ for event in ledger]
    assert kinds.count("ToolReturned") == 2
    assert kinds.count("AgentSaid") == 2


def of_adk(spoil: Callable[[Any], None]) -> Any:
    pytest.importorskip("google.adk")
    from google.adk.agents import LlmAgent
    from google.adk.models.base_llm import BaseLlm
    from google.adk.models.llm_response import LlmResponse
    from google.genai import types

    class Script(BaseLlm):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncGenerator[LlmResponse]:
            parts = [part for content in llm_request.contents for part in content.parts or []]
            for part in parts:
                spoil(part.function_call.args if part.function_call else None)
            wanted = types.FunctionCall(id="same", name=TOOL, args={"q": ARGS})
            is_over = parts[-1].function_response is not None
            part = types.Part(text="done") if is_over else types.Part(function_call=wanted)
            yield LlmResponse(content=types.Content(role="model", parts=[part]))

    def look(q: dict[str, Any]) -> dict[str, Any]:
        """Look."""
        raise AssertionError(q)

    def edit(tool: Any, args: Any, tool_context: Any, tool_response: Any) -> None:
        spoil(tool_response)

    return LlmAgent(
        name="desk", model=Script(model="script"), tools=[look], after_tool_callback=edit
    )


def of_pydantic_ai(spoil: Callable[[Any], None]) -> Any:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import FunctionModel

    def reply(messages: list[Any], _: Any) -> ModelResponse:
        for part in [part for message in messages for part in message.parts]:
            spoil(getattr(part, "args", None))
            spoil(getattr(part, "content", None))
        is_over = sum(isinstance(message, ModelResponse) for message in messages) % 2
        call = ToolCallPart(TOOL, {"q": ARGS}, tool_call_id="same")
        return ModelResponse([TextPart("done") if is_over else call])

    def look(q: dict[str, Any]) -> dict[str, Any]:
        """Look."""
        raise AssertionError(q)

    return Agent(FunctionModel(reply), tools=[look])


def of_openai_agents(spoil: Callable[[Any], None]) -> Any:
    pytest.importorskip("agents.items")
    from openai.types.responses import (
        ResponseFunctionToolCall,
        ResponseOutputMessage,
        ResponseOutputText,
    )

    from agents import Agent, AgentHooks, Model, ModelResponse, Usage, function_tool

    call = ResponseFunctionToolCall(
        type="function_call", name=TOOL, call_id="same", arguments='{"q": 7}'
    )
    text = ResponseOutputText(type="output_text", text="done", annotations=[])
    said = ResponseOutputMessage(
        id="m", type="message", role="assistant", status="completed", content=[text]
    )

    class Script(Model):
        async def get_response(self, *given: Any, **named: Any) -> Any:
            asked = named.get("input", given[1] if len(given) > 1 else "")
            is_new = isinstance(asked, str) or asked[-1].get("role") == "user"
            return ModelResponse(output=[call if is_new else said], usage=Usage(), response_id=None)

        def stream_response(self, *_: Any, **__: Any) -> Any:
            raise NotImplementedError

    class Hooks(AgentHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            spoil(result)

    @function_tool
    def look(q: int) -> dict[str, Any]:
        """Look."""
        raise AssertionError(q)

    return Agent("desk", model=Script(), tools=[look], hooks=Hooks())


def of_langgraph(spoil: Callable[[Any], None]) -> Any:
    pytest.importorskip("langgraph.graph")
    from langchain_core.messages import AIMessage
    from langchain_core.tools import StructuredTool
    from langgraph.graph import START, MessagesState, StateGraph

    def look(q: dict[str, Any]) -> dict[str, Any]:
        """Look."""
        raise AssertionError(q)

    tool = StructuredTool.from_function(look)

    async def desk(state: MessagesState) -> Any:
        spoil(await tool.ainvoke({"q": ARGS}))
        return {"messages": [AIMessage("done")]}

    builder: Any = StateGraph(MessagesState)
    builder.add_node("desk", desk)
    builder.add_edge(START, "desk")
    return builder.compile()


@pytest.mark.parametrize("made", [of_adk, of_pydantic_ai, of_openai_agents, of_langgraph])
async def test_what_was_written_down_is_not_edited_by_whoever_is_shown_it(made: Any) -> None:
    seen: list[Any] = []

    def spoil(thing: Any) -> None:
        seen.append(thing)
        spoiled(thing)

    assert await edited(made(spoil)) == []
    assert ANSWER == {"found": {"days": [1]}, "secret": 1}
    assert any(isinstance(thing, dict) and "spoiled" in thing for thing in seen)
