"""Requests and replies between pydantic-ai's types and ours."""

from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
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
from greenroom.models.model import ModelReply, ModelRequest


def request_of(
    messages: list[ModelMessage], parameters: ModelRequestParameters, **asker: Any
) -> ModelRequest:
    """A question of the framework to its model, as ours; `asker` says who asks, and where."""
    schema = parameters.output_object.json_schema if parameters.output_object else None
    tools = [*parameters.function_tools, *parameters.output_tools]
    return ModelRequest(
        messages=tuple([found for message in messages for found in _messages(message)]),
        instructions="\n\n".join(part.content for part in parameters.instruction_parts or []),
        tools=tuple(
            [Spec(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools]
        ),
        output_schema=schema,
        **asker,
    )


def reply_of(response: ModelResponse) -> ModelReply:
    """A model's response, as ours; its price is nobody's to guess."""
    used = response.usage
    is_known = used.input_tokens or used.output_tokens or used.has_values()
    return ModelReply(
        text=response.text or "",
        calls=_calls(response),
        usage=Usage(used.input_tokens, used.output_tokens) if is_known else None,
        model=response.model_name or "",
    )


def response_of(reply: ModelReply) -> ModelResponse:
    """A reply of ours, as the framework's model would have given it."""
    calls = [ToolCallPart(call.tool, dict(call.args), call.id) for call in reply.calls]
    text = [TextPart(reply.text)] if reply.text or not calls else []
    used = reply.usage or Usage()
    return ModelResponse(
        parts=[*text, *calls],
        usage=RequestUsage(input_tokens=used.input, output_tokens=used.output),
        model_name=reply.model or None,
    )


def _messages(message: ModelMessage) -> list[Message]:
    if isinstance(message, ModelResponse):
        return [Message("assistant", message.text or "", _calls(message))]
    found: list[Message] = []
    for part in message.parts:
        match part:
            case SystemPromptPart():
                found.append(Message("system", part.content))
            case UserPromptPart():
                found.append(Message("user", _text(part)))
            case ToolReturnPart():
                told = _answer(part)
                found.append(Message("tool", told, call_id=part.tool_call_id, tool=part.tool_name))
            case RetryFeedbackPart():
                found.append(Message("user", part.model_response()))
            case _:
                pass
    return found


def _calls(response: ModelResponse) -> tuple[ToolCall, ...]:
    return tuple(
        [
            ToolCall(call.tool_name, jsonable(call.args_as_dict()), call.tool_call_id)
            for call in response.tool_calls
        ]
    )


def _answer(part: ToolReturnPart) -> str:
    # A text that is no error is told as it is, which the framework takes long to find.
    if type(part.content) is str and part.outcome == "success":
        return part.content
    return part.model_response_str()


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "".join(item for item in part.content if isinstance(item, str))
