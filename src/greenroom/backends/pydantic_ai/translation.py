"""Requests and replies between pydantic-ai's types and ours."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequestPart,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.usage import RequestUsage

from greenroom.backends.foreign import Spec, jsonable
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import Json, as_object, plain
from greenroom.models.model import ModelReply, ModelRequest


def request_of(
    messages: list[ModelMessage], parameters: ModelRequestParameters, **asker: Any
) -> ModelRequest:
    """A question of the framework to its model, as ours; `asker` says who asks, and where."""
    schema = parameters.output_object.json_schema if parameters.output_object else None
    said: list[Message] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            said.append(Message("assistant", *_said(message)))
        else:
            said += [found for part in message.parts if (found := _message(part)) is not None]
    parts = parameters.instruction_parts
    tools = [*parameters.function_tools, *parameters.output_tools]
    wants_tool = not parameters.allow_text_output
    return ModelRequest(
        messages=tuple(said),
        instructions="\n\n".join([part.content for part in parts]) if parts else "",
        tools=tuple(
            [Spec(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools]
        ),
        output_schema=schema,
        answer_tools=tuple([tool.name for tool in parameters.output_tools if wants_tool]),
        **asker,
    )


def reply_of(response: ModelResponse) -> ModelReply:
    """A model's response, as ours; its price is not known."""
    used = response.usage
    is_known = used.input_tokens or used.output_tokens or used.has_values()
    text, calls = _said(response)
    return ModelReply(
        text=text,
        calls=calls,
        usage=Usage(used.input_tokens, used.output_tokens) if is_known else None,
        model=response.model_name or "",
    )


def response_of(reply: ModelReply) -> ModelResponse:
    """A reply of ours, as the framework's model would have given it."""
    calls = [ToolCallPart(call.tool, as_object(plain(call.args)), call.id) for call in reply.calls]
    text = [TextPart(reply.text)] if reply.text or not calls else []
    used = reply.usage or Usage()
    return ModelResponse(
        parts=[*text, *calls],
        usage=RequestUsage(input_tokens=used.input, output_tokens=used.output),
        model_name=reply.model or None,
    )


def remembered(messages: Sequence[ModelMessage]) -> list[Json]:
    """The messages as JSON, in the framework's own form: `recalled` makes the same messages of it."""
    return ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")


def recalled(known: list[Json]) -> list[ModelMessage]:
    """The messages that were remembered."""
    # A copy: the framework keeps some of what it is given, and what happened is never edited.
    return ModelMessagesTypeAdapter.validate_python(deepcopy(known)) if known else []


def _message(part: ModelRequestPart) -> Message | None:
    match part:
        case UserPromptPart():
            said = part.content
            text = said if isinstance(said, str) else "".join(x for x in said if isinstance(x, str))
            return Message("user", text)
        case ToolReturnPart():
            text = part.model_response_str()
            return Message("tool", text, call_id=part.tool_call_id, tool=part.tool_name)
        case SystemPromptPart():
            return Message("system", part.content)
        case RetryFeedbackPart():
            return Message("user", part.model_response())
        case _:
            return None


def _said(response: ModelResponse) -> tuple[str, tuple[ToolCall, ...]]:
    """The text of a response and its calls."""
    calls = [
        ToolCall(call.tool_name, as_object(jsonable(call.args_as_dict())), call.tool_call_id)
        for call in response.tool_calls
    ]
    return response.text or "", tuple(calls)
