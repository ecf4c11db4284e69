"""Converts the messages of other tools to Greenroom's.

Known formats: OpenAI's (also used by LangSmith and Langfuse), OpenTelemetry's conventions, google-adk's, and
LangChain's serialised objects.
"""

import json
from collections.abc import Mapping
from typing import cast

from greenroom.cases.files.bounds import Unreadable
from greenroom.cases.files.json_text import parsed_json
from greenroom.errors import BadTrace
from greenroom.ledger.messages import Message, Role, ToolCall
from greenroom.ledger.plain import Json, as_text, is_array, is_object, short_repr

CUT = "…[cut]"
"""The end of a string that Greenroom's own spans have shortened."""
_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "humanmessage": "user",
    "systemmessage": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
    "aimessage": "assistant",
    "aimessagechunk": "assistant",
    "tool": "tool",
    "function": "tool",
    "toolmessage": "tool",
}


_TEXTS = ("text", "input_text", "output_text", None)
_READ = (
    *("text", "input_text", "output_text", "refusal", "reasoning", "thinking", "redacted_thinking"),
    *("tool_call", "tool_call_response", "tool_use", "tool_result", "message_content"),
)
"""The types of parts that are read, or hold only what a model thought."""
_READ_FIELDS = frozenset(
    [
        *("text", "content", "thought", "thoughtSignature", "thought_signature"),
        *("function_call", "functionCall", "function_response", "functionResponse"),
    ]
)
_CALL_FIELDS = ("tool_calls", "function_call", "tools", "functions")
"""The fields of a message in which its calls are read, or in which tools are only described."""


def messages_in(value: Json) -> list[Message] | None:
    """The messages in a value, in whatever format; None if it has none or was shortened."""
    value = parsed(value)
    if is_object(value):
        for name in ("messages", "contents", "input", "choices"):
            inner = value.get(name)
            if is_array(inner) or (name == "messages" and isinstance(inner, str)):
                return messages_in(inner)
        return messages_in([value]) if _role(value) else None
    if is_array(value):
        # LangChain asks models with lists of conversations, each one a list of messages.
        if len(value) == 1 and is_array(value[0]):
            return messages_in(value[0])
        found = [message for one in value for message in message_of(one)]
        return found or None
    return None


def message_of(value: Json) -> list[Message]:
    """One entry of a conversation: several messages if it holds several results of tools."""
    if not is_object(value):
        return []
    if is_object(inner := value.get("message")):  # a choice of OpenAI
        return message_of(inner)
    if is_object(kwargs := value.get("kwargs")) and is_array(value.get("id")):  # LangChain's own
        kind = str(cast("list[Json]", value["id"])[-1])
        return message_of({**kwargs, "role": kind.lower()})
    if value.get("type") in ("human", "ai", "tool", "system") and "data" in value:
        data = value["data"]
        return message_of({**data, "role": value["type"]}) if is_object(data) else []
    role = _role(value)
    if role is None:
        return []
    parts = value.get("parts")
    if is_array(parts):
        return _by_parts(role, parts)
    if role == "tool":
        call_id = _text(value.get("tool_call_id")) or _text(value.get("id"))
        return [
            Message("tool", text_in(value.get("content")), (), call_id, _text(value.get("name")))
        ]
    content = value.get("content")
    calls = [*_calls(value.get("tool_calls")), *_calls_in_blocks(content)]
    if (old := value.get("function_call")) is not None:
        calls += _calls([old])
    said = text_in(content) or _text(value.get("refusal"))
    results = _results_in_blocks(content)
    return [*results, Message(role, said, tuple(calls))] if said or not results else results


def _role(value: Mapping[str, Json]) -> Role | None:
    named = value.get("role", value.get("type"))
    return _ROLES.get(named.lower()) if isinstance(named, str) else None


def text_in(content: Json) -> str:
    """What a message says: a string, or the strings among its parts."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if is_array(content):
        return "".join(_part_text(part) for part in content)
    return as_text(content)


def _part_text(part: Json) -> str:
    if isinstance(part, str):
        return part
    if not is_object(part):
        return ""
    if part.get("type") == "refusal":
        return _text(part.get("refusal"))
    return _text(part.get("text") or part.get("content")) if part.get("type") in _TEXTS else ""


def failure_in(answer: Mapping[str, Json]) -> str:
    """What went wrong, if a tool's answer says that it is an error, as Inspect's and LangChain's do."""
    error = answer.get("error")
    if is_object(error):
        return _text(error.get("message")) or as_text(error)
    is_error = answer.get("is_error") is True or answer.get("status") == "error"
    return (text_in(answer.get("content")) or "the tool failed") if is_error else ""


def has_other_parts(value: Json) -> bool:
    """Whether messages have parts that are not read: pictures, sound, files, or parts of an unknown type."""
    value = parsed(value)
    if is_object(value):
        inner = [value.get(name) for name in ("messages", "contents", "choices", "message")]
        parts = value.get("parts", value.get("content"))
        if is_array(parts) and any(is_object(part) and not _is_read(part) for part in parts):
            return True
        return any(
            has_other_parts(one) for one in (*inner, parts) if is_object(one) or is_array(one)
        )
    return is_array(value) and any(
        has_other_parts(one) for one in value if not isinstance(one, str)
    )


def has_other_calls(value: Mapping[str, Json]) -> bool:
    """Whether a message has fields or parts that speak of calls and are not read.

    So do `toolInvocations` of Vercel's AI SDK, and its parts of the type `tool-call`.
    """
    fields = {name for name, held in value.items() if held and (is_object(held) or is_array(held))}
    parts = value.get("parts", value.get("content"))
    kinds = {_text(one.get("type")) for one in (parts if is_array(parts) else ()) if is_object(one)}
    unread = {*fields.difference(_CALL_FIELDS), *kinds.difference(_READ)}
    return any(word in name.lower() for name in unread for word in ("tool", "function", "call"))


def _is_read(part: Mapping[str, Json]) -> bool:
    kind = part.get("type")
    return kind in _READ if kind is not None else not part or not _READ_FIELDS.isdisjoint(part)


def parsed(value: Json) -> Json:
    """A JSON string parsed; anything else as it is. A shortened string is None."""
    if not isinstance(value, str):
        return value
    if value.endswith(CUT):
        return None
    if value.lstrip()[:1] not in ("{", "[", '"'):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _text(value: Json) -> str:
    return value if isinstance(value, str) else "" if value is None else as_text(value)


def _by_parts(role: Role, parts: list[Json]) -> list[Message]:
    """A message of the conventions or of google-adk, which consists of parts."""
    said: list[str] = []
    calls: list[ToolCall] = []
    results: list[Message] = []
    for part in parts:
        if not is_object(part):
            continue
        kind = part.get("type")
        asked = part.get("function_call") or part.get("functionCall")
        answer = part.get("function_response") or part.get("functionResponse")
        if is_object(asked):
            calls.append(_call(asked))
        elif kind == "tool_call":
            calls.append(_call(part))
        elif is_object(answer):
            results.append(_result(answer))
        elif kind == "tool_call_response":
            results.append(_result(part))
        elif part.get("thought") is True or kind in ("reasoning", "thinking"):
            continue
        elif kind in ("text", None):
            said.append(_text(part.get("content", part.get("text"))))
    if results:
        return results
    return [Message(role, "".join(said), tuple(calls))]


def is_hollow(value: Json) -> bool:
    """Whether messages were written without their content, as `{"type": "text"}`."""
    value = parsed(value)
    messages = value if is_array(value) else []
    parts = [
        part
        for message in messages
        if is_object(message) and is_array(listed := message.get("parts"))
        for part in listed
        if is_object(part)
    ]
    return any(
        (part.get("type") == "text" and "content" not in part and "text" not in part)
        or (part.get("type") == "tool_call" and "arguments" not in part)
        for part in parts
    )


def _result(part: Mapping[str, Json]) -> Message:
    value = next((part[name] for name in ("response", "result") if name in part), None)
    return Message("tool", _text(value), (), _text(part.get("id")), _text(part.get("name")))


def _calls(value: Json) -> list[ToolCall]:
    if value is None or value == "":
        return []
    listed = parsed(value)
    if is_array(listed) and all(is_object(one) for one in listed):
        return [_call(one) for one in listed if is_object(one)]
    raise BadTrace(f"its calls of tools should be a list of objects, not {short_repr(value)}.")


def _calls_in_blocks(content: Json) -> list[ToolCall]:
    """The calls among the parts of a message, as Anthropic and LangChain write them."""
    parts = content if is_array(content) else []
    return [_call(one) for one in parts if is_object(one) and one.get("type") == "tool_use"]


def _results_in_blocks(content: Json) -> list[Message]:
    """The tool results among the parts of a message, which Anthropic puts into user messages."""
    parts = content if is_array(content) else []
    return [
        Message("tool", text_in(one.get("content")), (), _text(one.get("tool_use_id")))
        for one in parts
        if is_object(one) and one.get("type") == "tool_result"
    ]


def _call(value: Mapping[str, Json]) -> ToolCall:
    inner = value.get("function")
    named = inner if is_object(inner) else value
    given: Json = next((named[n] for n in ("arguments", "args", "input") if n in named), None)
    name = inner if isinstance(inner, str) else _text(named.get("name"))
    if not name:
        raise BadTrace("a call of a tool has no name.")
    return ToolCall(name, arguments_of(given, name), _text(value.get("id")))


def named_arguments(inputs: Json) -> Json:
    """The arguments of a tool; a bare value under `input` has no names, so they are unknown."""
    if not is_object(inputs):
        return None
    if inputs.keys() <= {"input"}:
        inner = parsed(inputs.get("input"))
        return inner if is_object(inner) else None
    return inputs


def arguments_of(value: Json, tool: str) -> dict[str, Json]:
    """The arguments of a call, as an object or as its JSON string, in which no key may be given twice."""
    if value is None or value == "":
        return {}
    given, why = value, ""
    if isinstance(value, str):
        try:
            value = parsed_json(value)
        except Unreadable as error:
            why = f": {error}"
    if is_object(value):
        return value
    raise BadTrace(
        f"the arguments of {tool!r} should be a JSON object, not {short_repr(given)}{why}."
    )
