"""Requests and replies between pydantic-ai's types and ours."""

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    FilePart,
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
from pydantic_ai.run import AgentRunResult
from pydantic_ai.usage import RequestUsage

from greenroom.backends.attached import with_references
from greenroom.backends.foreign import Spec, jsonable
from greenroom.ledger.attachments import (
    Attachment,
    attachment_in,
    message_value,
    text_and_attachments,
)
from greenroom.ledger.blobs import given_blob
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import Json, as_object, plain
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.models.replies import with_usage


def request_of(
    messages: list[ModelMessage], parameters: ModelRequestParameters, **asker: Any
) -> ModelRequest:
    """The framework's model request, as ours; `asker` says who asks, and where."""
    schema = parameters.output_object.json_schema if parameters.output_object else None
    said: list[Message] = []
    for message in messages:
        if isinstance(message, ModelResponse):
            said.append(Message("assistant", *_said(message), attachments=_attached(message.files)))
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
    """A model's response, as ours; its price is unknown."""
    text, calls = _said(response)
    reply = ModelReply(
        text=text,
        calls=calls,
        model=response.model_name or "",
        attachments=_attached(response.files),
        partial=response.finish_reason == "length",
    )
    return with_usage(reply, response.usage.input_tokens, response.usage.output_tokens)


def response_of(reply: ModelReply) -> ModelResponse:
    """Our reply, in the form of the framework's model."""
    calls = [ToolCallPart(call.tool, as_object(plain(call.args)), call.id) for call in reply.calls]
    files = [FilePart(file_of(one)) for one in reply.attachments]
    text = [TextPart(reply.text)] if reply.text or not (calls or files) else []
    used = reply.usage or Usage()
    return ModelResponse(
        parts=[*text, *files, *calls],
        usage=RequestUsage(input_tokens=used.input, output_tokens=used.output),
        model_name=reply.model or None,
    )


def output_as_json(result: AgentRunResult[Any]) -> Json:
    """An agent's output; its words together with what its model attached to them."""
    output = result.output
    if type(output) is str:
        return message_value(output, _attached(result.response.files))
    return plain(result_as_json(output), "the agent's output")


def remembered(messages: Sequence[ModelMessage]) -> list[Json]:
    """The messages as JSON, in the framework's own form; `recalled` restores them."""
    return ModelMessagesTypeAdapter.dump_python(list(messages), mode="json")


def recalled(known: list[Json]) -> list[ModelMessage]:
    """The messages that were remembered."""
    # A copy: the framework keeps some of what it is given, and must not edit the ledger through it.
    return ModelMessagesTypeAdapter.validate_python(deepcopy(known)) if known else []


def _message(part: ModelRequestPart) -> Message | None:
    match part:
        case UserPromptPart():
            said = part.content
            text = said if isinstance(said, str) else "".join(x for x in said if isinstance(x, str))
            return Message("user", text, attachments=_attached(said))
        case ToolReturnPart():
            files = _attached(part.files)
            text = part.model_response_str() if not files else _text_beside_files(part)
            return Message("tool", text, (), part.tool_call_id, part.tool_name, files)
        case SystemPromptPart():
            return Message("system", part.content)
        case RetryFeedbackPart():
            return Message("user", part.model_response())
        case _:
            return None


def file_of(attachment: Attachment) -> BinaryContent:
    """An attachment in the framework's form."""
    kind, name = attachment.media_type, attachment.name
    return BinaryContent(attachment.data, media_type=kind, identifier=name)


def attachment_of(value: object) -> Attachment | None:
    """The attachment that a value is, if it holds bytes."""
    if not isinstance(value, BinaryContent):
        return None
    return given_blob(value.data, value.media_type)


def _attached(parts: Sequence[object]) -> tuple[Attachment, ...]:
    if isinstance(parts, str):
        return ()
    found = [attachment_of(part) for part in parts]
    return tuple([one for one in found if one is not None])


def _text_beside_files(part: ToolReturnPart) -> str:
    items = part.content_items(mode="str")
    return "\n".join([item for item in items if isinstance(item, str)])


def as_returned(value: Json) -> Any:
    """The World's answer in the form a tool returns it: the framework looks for files only in lists."""
    text, attached = text_and_attachments(value)
    if not attached:
        return value
    files = [file_of(one) for one in attached]
    return files[0] if attachment_in(value) else [*([text] if text else []), *files]


def result_as_json(value: Any) -> Json:
    """What a tool or an agent returned, with a reference to what is attached."""
    return jsonable(with_references(value, attachment_of))


def _said(response: ModelResponse) -> tuple[str, tuple[ToolCall, ...]]:
    """The text of a response and its calls."""
    calls = [
        ToolCall(call.tool_name, as_object(jsonable(call.args_as_dict())), call.tool_call_id)
        for call in response.tool_calls
    ]
    return response.text or "", tuple(calls)
