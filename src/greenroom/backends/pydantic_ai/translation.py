"""Requests and replies between pydantic-ai's types and ours."""

from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
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
from greenroom.backends.pydantic_ai.memory import is_flat
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelReply, ModelRequest


def request_of(
    messages: list[ModelMessage], parameters: ModelRequestParameters, **asker: Any
) -> ModelRequest:
    """A question of the framework to its model, as ours; `asker` says who asks, and where."""
    schema = parameters.output_object.json_schema if parameters.output_object else None
    told: list[Message] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            told.append(Message("assistant", *_said(message)))
        else:
            told += [found for part in message.parts if (found := _message(part)) is not None]
    parts = parameters.instruction_parts
    tools = [*parameters.function_tools, *parameters.output_tools]
    return ModelRequest(
        messages=tuple(told),
        instructions="\n\n".join([part.content for part in parts]) if parts else "",
        tools=tuple(
            [Spec(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools]
        ),
        output_schema=schema,
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
    calls = [ToolCallPart(call.tool, plain(call.args), call.id) for call in reply.calls]
    text = [TextPart(reply.text)] if reply.text or not calls else []
    used = reply.usage or Usage()
    return ModelResponse(
        parts=[*text, *calls],
        usage=RequestUsage(input_tokens=used.input, output_tokens=used.output),
        model_name=reply.model or None,
    )


def _message(part: ModelRequestPart) -> Message | None:
    match part:
        case UserPromptPart():
            told = part.content
            return Message("user", told if type(told) is str else _text(part))
        case ToolReturnPart():
            return Message("tool", _answer(part), call_id=part.tool_call_id, tool=part.tool_name)
        case SystemPromptPart():
            return Message("system", part.content)
        case RetryFeedbackPart():
            return Message("user", part.model_response())
        case _:
            return None


def _said(response: ModelResponse) -> tuple[str, tuple[ToolCall, ...]]:
    """The text of a response and its calls."""
    if len(response.parts) == 1:
        # Most have one part, where there is nothing to gather.
        part = response.parts[0]
        if type(part) is ToolCallPart:
            return "", (_call(part),)
        if type(part) is TextPart:
            return part.content, ()
    return response.text or "", tuple([_call(call) for call in response.tool_calls])


def _call(call: ToolCallPart) -> ToolCall:
    args: dict[str, Json] = call.args_as_dict()
    told = dict(args) if type(args) is dict and is_flat(args) else jsonable(args)
    return ToolCall(call.tool_name, told, call.tool_call_id)


def _answer(part: ToolReturnPart) -> str:
    # A text that is no error is told as it is, which the framework takes long to find.
    if type(part.content) is str and part.outcome == "success":
        return part.content
    return part.model_response_str()


def _text(part: UserPromptPart) -> str:
    if isinstance(part.content, str):
        return part.content
    return "".join(item for item in part.content if isinstance(item, str))
