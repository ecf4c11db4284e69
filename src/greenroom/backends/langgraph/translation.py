"""Requests and replies between LangChain's messages and ours."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

import json
from base64 import b64encode
from collections.abc import Sequence
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ToolMessage,
)
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCall as WantedValue
from langchain_core.messages.tool import tool_call_chunk

from greenroom.backends.attached import content_attachments
from greenroom.backends.foreign import Spec, jsonable
from greenroom.ledger.attachments import Attachment
from greenroom.ledger.events import ModelReplied
from greenroom.ledger.messages import Message, Role, ToolCall
from greenroom.ledger.plain import Json, as_object, plain
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.models.replies import with_usage

_ROLES: dict[str, Role] = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
}
_CUT = ("length", "max_tokens", "MAX_TOKENS")
_NAMES = ("model_name", "model", "model_id")


def request_of(
    messages: Sequence[BaseMessage], options: dict[str, Any], **asker: Any
) -> ModelRequest:
    """The framework's model request, as ours; `asker` says who asks, and where."""
    said = [_message(found) for found in messages]
    return ModelRequest(
        messages=tuple(said),
        instructions="\n\n".join([one.text for one in said if one.role == "system"]),
        tools=tuple([_spec(tool) for tool in options.get("tools") or ()]),
        output_schema=_schema(options.get("response_format")),
        answer_tools=_answer_tools(options),
        **asker,
    )


def _answer_tools(options: dict[str, Any]) -> tuple[str, ...]:
    """If a model must call a tool: all its tools, the last first, because answer tools come last."""
    if options.get("tool_choice") in (None, "auto", "none", False):
        return ()
    return tuple([_spec(tool).name for tool in reversed(options.get("tools") or ())])


def provider_tools(options: dict[str, Any]) -> list[str]:
    """Tools that a model's provider would run, by their kind."""
    return [
        str(tool.get("type") or next(iter(tool), "unknown"))
        for tool in cast("list[Any]", options.get("tools") or [])
        if isinstance(tool, dict) and not _is_function(cast("dict[str, Any]", tool))
    ]


def reply_of(message: BaseMessage) -> ModelReply:
    """A model's message, as ours; its price is unknown."""
    reply = ModelReply(
        text=str(message.text),
        calls=_calls(message),
        model=str(message.response_metadata.get("model_name") or ""),
        attachments=content_attachments(message.content),
        partial=message.response_metadata.get("finish_reason") in _CUT,
    )
    used: dict[str, Any] = getattr(message, "usage_metadata", None) or {}
    return with_usage(reply, used.get("input_tokens"), used.get("output_tokens"))


def message_of(reply: ModelReply | ModelReplied) -> AIMessage:
    """Our reply, in the form of the framework's model."""
    used = reply.usage
    return AIMessage(
        content=content_of(reply.text, reply.attachments),
        tool_calls=[
            WantedValue(name=c.tool, args=as_object(plain(c.args)), id=c.id) for c in reply.calls
        ],
        usage_metadata=UsageMetadata(
            input_tokens=used.input, output_tokens=used.output, total_tokens=used.total
        )
        if used
        else None,
        response_metadata={"model_name": reply.model} if reply.model else {},
    )


def content_of(text: str, attachments: Sequence[Attachment]) -> Any:
    """A message's content: its text, or blocks of it and of what is attached."""
    if not attachments:
        return text
    said = [{"type": "text", "text": text}] if text else []
    return [*said, *map(_block, attachments)]


def _block(one: Attachment) -> dict[str, Any]:
    kind = one.modality if one.modality in ("image", "audio", "video") else "file"
    coded = b64encode(one.data).decode()
    block = {"type": kind, "base64": coded, "mime_type": one.media_type}
    return {**block, "filename": one.name} if kind == "file" else block


def identified(message: BaseMessage, reply: ModelReply) -> AIMessage | None:
    """The model's own message with the ids its calls were given; None if more was changed."""
    own = reply_of(message)
    bare = [(call.tool, call.args) for call in reply.calls]
    if own.text != reply.text or [(call.tool, call.args) for call in own.calls] != bare:
        return None
    if not isinstance(message, AIMessage) or isinstance(message, AIMessageChunk):
        return None
    wanted = [
        {**call, "id": given.id}
        for call, given in zip(message.tool_calls, reply.calls, strict=True)
    ]
    return message.model_copy(update={"tool_calls": wanted})


def chunk_of(message: AIMessage) -> AIMessageChunk:
    """A whole message as the one piece of a stream."""
    return AIMessageChunk(
        content=message.content,
        tool_call_chunks=[
            tool_call_chunk(
                name=call["name"], args=json.dumps(call["args"]), id=call["id"], index=index
            )
            for index, call in enumerate(message.tool_calls)
        ],
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )


def model_name(model: BaseChatModel) -> str:
    """A model's name in ledgers."""
    for field in _NAMES:
        if isinstance(name := getattr(model, field, None), str) and name:
            return name
    return type(model).__name__


def _message(message: BaseMessage) -> Message:
    role, text = _ROLES.get(message.type, "user"), str(message.text)
    if role == "tool":
        answer = cast(ToolMessage, message)
        files = content_attachments(answer.content)
        return Message("tool", text, (), answer.tool_call_id, message.name or "", files)
    calls = _calls(message) if role == "assistant" else ()
    return Message(role, text, calls, attachments=content_attachments(message.content))


def _calls(message: BaseMessage) -> tuple[ToolCall, ...]:
    wanted: list[WantedValue] = getattr(message, "tool_calls", None) or []
    return tuple(
        ToolCall(call["name"], as_object(jsonable(call["args"])), call["id"] or "")
        for call in wanted
    )


def _is_function(tool: dict[str, Any]) -> bool:
    """Whether a tool is one that the agent's own code runs, in any provider's format."""
    if tool.get("type") in ("function", "custom"):
        return True
    described = {"input_schema", "parameters", "parameters_json_schema"} & set(tool)
    return "type" not in tool and (bool(described) or "toolSpec" in tool)


def _spec(tool: Any) -> Spec:
    """A bound tool, from the fields that all providers' formats share."""
    form = cast("dict[str, Any]", tool if isinstance(tool, dict) else {"name": str(tool)})
    inner = cast("dict[str, Any]", form.get("function") or form.get("toolSpec") or form)
    schema = inner.get("parameters") or inner.get("input_schema") or {}
    parameters = as_object(jsonable(schema))
    return Spec(str(inner.get("name", "")), str(inner.get("description", "")), parameters)


def _schema(given: Any) -> dict[str, Json] | None:
    schema: Any = None if given is None else jsonable(given)
    return cast("dict[str, Json]", schema) if isinstance(schema, dict) else None
