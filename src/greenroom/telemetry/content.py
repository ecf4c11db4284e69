"""Messages in the format of the conventions: JSON strings of roles and parts."""

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from greenroom.ledger.messages import Message, ToolCall
from greenroom.models.model import ModelRequest
from greenroom.traces.messages import CUT


def messages_of(messages: Iterable[Message]) -> Iterator[dict[str, object]]:
    """Messages by role, each in its parts."""
    return ({"role": one.role, "parts": _parts(one)} for one in messages)


def reply_of(text: str, calls: Iterable[ToolCall]) -> list[dict[str, object]]:
    """A model's reply."""
    calls = tuple(calls)
    parts = _parts(Message("assistant", text, calls))
    return [
        {"role": "assistant", "parts": parts, "finish_reason": "tool_call" if calls else "stop"}
    ]


def tools_of(request: ModelRequest) -> list[dict[str, object]]:
    """The tools that a model is offered."""
    return [
        {"type": "function", "name": tool.name, "description": tool.description}
        for tool in request.tools
    ]


def written(value: object, most: int) -> str:
    """A value as JSON, shortened with a mark if it is longer than `most` characters."""
    if isinstance(value, str):
        text = value
    elif isinstance(value, Iterator):
        text = _listed(cast("Iterator[Any]", value), most)
    else:
        text = json.dumps(value, default=repr, ensure_ascii=False)
    return text if len(text) <= most else f"{text[:most]}{CUT}"


def _listed(values: Iterator[object], most: int) -> str:
    """A list as JSON, encoded only as far as it will be kept: a conversation grows with every request."""
    parts: list[str] = []
    for value in values:
        parts.append(json.dumps(value, default=repr, ensure_ascii=False))
        most -= len(parts[-1])
        if most < 0:
            break
    return f"[{', '.join(parts)}]"


def _parts(message: Message) -> list[Mapping[str, object]]:
    if message.role == "tool":
        return [
            {"type": "tool_call_response", "id": message.call_id, "response": message.text},
        ]
    parts: list[Mapping[str, object]] = []
    if message.text:
        parts.append({"type": "text", "content": message.text})
    parts += [
        {"type": "tool_call", "id": one.id, "name": one.tool, "arguments": one.args}
        for one in message.calls
    ]
    return parts
