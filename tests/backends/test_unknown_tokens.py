"""Tokens that a framework or provider did not count are unknown: a 0 that says so is never taken for none."""

from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.models import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from langchain_core.messages import AIMessage
from openai.types.responses import ResponseOutputMessage, ResponseOutputText
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.usage import RequestUsage

import agents
from greenroom import Case, evaluate
from greenroom.backends.adk import translation as adk
from greenroom.backends.langgraph import translation as langgraph
from greenroom.backends.openai_agents import translation as openai_agents
from greenroom.backends.pydantic_ai import translation as pydantic_ai
from greenroom.ledger import Usage
from greenroom.metrics import tokens_within
from greenroom.models import ModelReply, provider_model
from greenroom.models.providers import translation as providers

Count = int | None


def of_adk(text: str, read: Count, wrote: Count) -> ModelReply:
    parts = [types.Part(text=text)] if text else []
    used = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=read, candidates_token_count=wrote, total_token_count=900
    )
    content = types.Content(role="model", parts=parts)
    return adk.reply_of(LlmResponse(content=content, usage_metadata=used), "m")


def of_langgraph(text: str, read: Count, wrote: Count) -> ModelReply:
    used: Any = {"input_tokens": read, "output_tokens": wrote, "total_tokens": 900}
    return langgraph.reply_of(AIMessage.model_construct(content=text, usage_metadata=used))


def of_openai_agents(text: str, read: Count, wrote: Count) -> ModelReply:
    used: Any = agents.Usage(requests=1, total_tokens=900)
    used.input_tokens, used.output_tokens = read, wrote
    part = ResponseOutputText(type="output_text", text=text, annotations=[])
    said = ResponseOutputMessage(
        id="1", type="message", role="assistant", status="completed", content=[part]
    )
    return openai_agents.reply_of(agents.ModelResponse([said], used, None))


def _pydantic_response(text: str, read: Count, wrote: Count) -> ModelResponse:
    counts: Any = {"input_tokens": read, "output_tokens": wrote}
    return ModelResponse(
        [TextPart(text)] if text else [], usage=RequestUsage(**counts, details={"images": 2})
    )


def of_pydantic_ai(text: str, read: Count, wrote: Count) -> ModelReply:
    return pydantic_ai.reply_of(_pydantic_response(text, read, wrote))


def of_a_provider(text: str, read: Count, wrote: Count) -> ModelReply:
    model: Any = provider_model("openai:gpt-4o-mini", api_key="none")
    return providers.reply_of(model, _pydantic_response(text, read, wrote), prompted=False)


OF = [of_adk, of_langgraph, of_openai_agents, of_pydantic_ai, of_a_provider]


@pytest.mark.parametrize("reply", OF)
def test_what_was_not_counted_is_unknown(reply: Callable[[str, Count, Count], ModelReply]):
    for read, wrote in ((None, None), (0, 0), (None, 3), (0, 3), (7, None), (7, 0)):
        assert reply("hello", read, wrote).usage is None, (read, wrote)


@pytest.mark.parametrize("reply", OF)
def test_what_was_counted_is_known_and_a_reply_of_nothing_writes_nothing(
    reply: Callable[[str, Count, Count], ModelReply],
):
    assert reply("hello", 7, 3).usage == Usage(7, 3)
    assert reply("", 7, 0).usage == Usage(7, 0)


def test_thoughts_count_as_written_in_google_adk():
    for text, candidates, written in (("hello", 3, 8), ("", None, 5)):
        used = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=7, candidates_token_count=candidates, thoughts_token_count=5
        )
        content = types.Content(role="model", parts=[types.Part(text=text)] if text else [])
        reply = adk.reply_of(LlmResponse(content=content, usage_metadata=used), "m")
        assert reply.usage == Usage(7, written)


class Uncounted(BaseLlm):
    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncGenerator[LlmResponse]:
        yield LlmResponse(
            content=types.Content(role="model", parts=[types.Part(text="hello")]),
            usage_metadata=types.GenerateContentResponseUsageMetadata(total_token_count=900),
        )


async def test_a_limit_of_tokens_is_not_met_by_tokens_that_were_not_counted():
    agent = LlmAgent(name="a", model=Uncounted(model="mine"), instruction="Greet.")
    case = Case("c", says="hi", metrics=[tokens_within(10)])
    [result] = (await evaluate(agent, [case], store=False)).results
    assert (result.status, result.usage) == ("error", None)
    assert result.error is not None
    assert "the usage is unknown" in result.error.message
