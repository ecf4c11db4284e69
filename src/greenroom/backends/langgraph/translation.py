"""Requests and replies between LangChain's messages and ours."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false

from collections.abc import Sequence
from typing import Any, cast
from weakref import WeakKeyDictionary

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

from greenroom.backends.foreign import Spec, jsonable
from greenroom.ledger.events import ModelReplied
from greenroom.ledger.messages import Message, Role, ToolCall, Usage
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelReply, ModelRequest

# By their names: `isinstance` is slow to say no of a pydantic class.
_ROLES: dict[str, Role] = {
    "ai": "assistant",
    "AIMessageChunk": "assistant",
    "system": "system",
    "SystemMessageChunk": "system",
    "tool": "tool",
    "ToolMessageChunk": "tool",
}
_NAMES = ("model_name", "model", "model_id")
_NAMED: "WeakKeyDictionary[type, tuple[str, ...]]" = WeakKeyDictionary()
"""Which of these the models of a class have."""


def request_of(
    messages: Sequence[BaseMessage], options: dict[str, Any], **asker: Any
) -> ModelRequest:
    """A question of the framework to its model, as ours; `asker` says who asks, and where."""
    told = [_message(found) for found in messages]
    return ModelRequest(
        messages=tuple(told),
        instructions="\n\n".join([one.text for one in told if one.role == "system"]),
        tools=tuple([_spec(tool) for tool in options.get("tools") or ()]),
        output_schema=_schema(options.get("response_format")),
        **asker,
    )


def provider_tools(options: dict[str, Any]) -> list[str]:
    """Tools that a model's provider would run, by their kind."""
    return [
        str(tool.get("type") or next(iter(tool), "unknown"))
        for tool in cast("list[Any]", options.get("tools") or [])
        if isinstance(tool, dict) and not _is_function(cast("dict[str, Any]", tool))
    ]


def reply_of(message: BaseMessage) -> ModelReply:
    """A model's message, as ours; its price is not known."""
    used: Any = getattr(message, "usage_metadata", None)
    told: dict[str, Any] = message.response_metadata
    return ModelReply(
        text=text_of(message),
        calls=_calls(message),
        usage=Usage(used["input_tokens"], used["output_tokens"]) if used else None,
        model=str(told.get("model_name") or ""),
    )


def message_of(reply: ModelReply | ModelReplied) -> AIMessage:
    """A reply of ours, as the framework's model would have given it."""
    used = reply.usage
    return AIMessage(
        content=reply.text,
        tool_calls=[WantedValue(name=c.tool, args=plain(c.args), id=c.id) for c in reply.calls],
        usage_metadata=UsageMetadata(
            input_tokens=used.input, output_tokens=used.output, total_tokens=used.total
        )
        if used
        else None,
        response_metadata={"model_name": reply.model} if reply.model else {},
    )


def identified(message: BaseMessage, reply: ModelReply) -> AIMessage | None:
    """The model's own message with the ids its calls were given; None if more was changed."""
    told = reply_of(message)
    bare = [(call.tool, call.args) for call in reply.calls]
    if told.text != reply.text or [(call.tool, call.args) for call in told.calls] != bare:
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
                name=call["name"], args=_encoded(call["args"]), id=call["id"], index=index
            )
            for index, call in enumerate(message.tool_calls)
        ],
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
        chunk_position="last",
    )


def text_of(message: BaseMessage) -> str:
    """A message's text, quickly where it is nothing else."""
    return message.content if isinstance(message.content, str) else str(message.text)


def model_name(model: BaseChatModel) -> str:
    """What to call a model in ledgers."""
    kind = type(model)
    # What a class may take beside its fields is each model's own affair.
    fields = _NAMED.get(kind) if model.model_extra is None else _NAMES
    if fields is None:
        # Pydantic is slow to say that a model has none of them.
        fields = _NAMED[kind] = tuple([field for field in _NAMES if hasattr(model, field)])
    for field in fields:
        if isinstance(name := getattr(model, field, None), str) and name:
            return name
    return kind.__name__


def _message(message: BaseMessage) -> Message:
    role = _ROLES.get(message.type, "user")
    if role == "tool":
        answer, name = cast(ToolMessage, message), message.name or ""
        return Message("tool", text_of(answer), call_id=answer.tool_call_id, tool=name)
    return Message(role, text_of(message), _calls(message) if role == "assistant" else ())


def _calls(message: BaseMessage) -> tuple[ToolCall, ...]:
    # Only some kinds have this field, and pydantic is slow to say that one is missing.
    wanted: list[WantedValue] = vars(message).get("tool_calls") or []
    return tuple(
        [ToolCall(call["name"], jsonable(call["args"]), call["id"] or "") for call in wanted]
    )


def _is_function(tool: dict[str, Any]) -> bool:
    """Whether a tool is a description the agent's own code answers to, in any provider's words."""
    if tool.get("type") in ("function", "custom"):
        return True
    described = {"input_schema", "parameters", "parameters_json_schema"} & set(tool)
    return "type" not in tool and (bool(described) or "toolSpec" in tool)


def _spec(tool: Any) -> Spec:
    """A bound tool by what providers' forms have in common."""
    told = cast("dict[str, Any]", tool if isinstance(tool, dict) else {"name": str(tool)})
    inner = cast("dict[str, Any]", told.get("function") or told.get("toolSpec") or told)
    schema = inner.get("parameters") or inner.get("input_schema") or {}
    return Spec(str(inner.get("name", "")), str(inner.get("description", "")), jsonable(schema))


def _schema(given: Any) -> dict[str, Json] | None:
    told: Any = None if given is None else jsonable(given)
    return cast("dict[str, Json]", told) if isinstance(told, dict) else None


def _encoded(args: dict[str, Any]) -> str:
    import json

    return json.dumps(args)
