"""Requests and replies between the framework's types and ours."""

from collections.abc import Callable, Iterable
from typing import Any

from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import BaseModel

from greenroom.agents.signature import output_schema
from greenroom.backends.attached import with_references
from greenroom.backends.foreign import Spec, jsonable
from greenroom.ledger.attachments import Attachment, message_value
from greenroom.ledger.blobs import given_blob
from greenroom.ledger.messages import Message, Role, ToolCall
from greenroom.ledger.plain import Json, as_object, as_text, plain
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.models.replies import with_usage

_ANSWER = "set_model_response"
"""The tool by which the framework is given data, where an agent has tools and an output schema."""


def request_of(request: LlmRequest, agent: str) -> ModelRequest:
    """The framework's model request, as ours."""
    config: Any = request.config
    tools: list[Any] = config.tools or []
    declared = [
        declaration
        for tool in tools
        if isinstance(tool, types.Tool)
        for declaration in tool.function_declarations or []
    ]
    return ModelRequest(
        agent=agent,
        messages=tuple([m for content in request.contents for m in _messages(content)]),
        instructions=_instructions(config.system_instruction),
        tools=tuple([_spec(declaration) for declaration in declared]),
        output_schema=_schema(config),
        answer_tools=tuple([one.name for one in declared if one.name == _ANSWER and one.name]),
        model=request.model or "",
        node=agent,
    )


def reply_of(response: LlmResponse, model: str) -> ModelReply:
    """A model's response, as ours; its price is unknown."""
    text, calls = _said(_parts(response.content))
    is_cut = response.finish_reason == types.FinishReason.MAX_TOKENS
    reply = ModelReply(
        text=text,
        calls=calls,
        model=response.model_version or model,
        attachments=attached_to(response.content),
        partial=is_cut or bool(response.interrupted),
    )
    used = response.usage_metadata
    if used is None:
        return reply
    written = used.candidates_token_count
    # A reply of thoughts alone has no candidate, and so none that was counted.
    if written is not None or not (text or calls or reply.attachments):
        written = (written or 0) + (getattr(used, "thoughts_token_count", 0) or 0)
    return with_usage(reply, used.prompt_token_count, written)


def response_of(reply: ModelReply) -> LlmResponse:
    """Our reply, in the form of the framework's model."""
    parts = [types.Part(text=reply.text)] if reply.text else []
    parts += map(part_of, reply.attachments)
    parts += [
        types.Part(
            function_call=types.FunctionCall(
                id=c.id or None, name=c.tool, args=as_object(plain(c.args))
            )
        )
        for c in reply.calls
    ]
    usage = None
    if reply.usage is not None:
        usage = types.GenerateContentResponseUsageMetadata(
            prompt_token_count=reply.usage.input,
            candidates_token_count=reply.usage.output,
            total_token_count=reply.usage.total,
        )
    return LlmResponse(
        content=types.Content(role="model", parts=parts),
        usage_metadata=usage,
        model_version=reply.model or None,
    )


def with_call_ids(
    response: LlmResponse, new_id: Callable[..., str], request: ModelRequest
) -> LlmResponse:
    """The response with an id for every call, so that ledger and framework mean the same call.

    The framework recognises ids that the provider did not give by this prefix.
    """
    content = response.content
    ids = [part.function_call.id for part in _parts(content) if part.function_call]
    if content is None or all(ids):
        return response
    # Only changed parts are copied: the model may return the same response object again.
    parts: list[types.Part] = []
    index = 0
    for part in _parts(content):
        call = part.function_call
        if call is not None:
            call_id = call.id or f"adk-{new_id(request.path, request.n, index)}"
            call = call.model_copy(update={"id": call_id})
            part = part.model_copy(update={"function_call": call})
            index += 1
        parts.append(part)
    content = content.model_copy(update={"parts": parts})
    return response.model_copy(update={"content": content})


def server_side_tools(request: LlmRequest) -> list[str]:
    """Tools in a request that the provider would run by itself."""
    found: list[str] = []
    for tool in request.config.tools or []:
        if isinstance(tool, types.Tool):
            given: dict[str, Any] = {**vars(tool), **(tool.model_extra or {})}
            found += [
                name
                for name, value in given.items()
                if value is not None and name != "function_declarations"
            ]
        else:
            found.append(type(tool).__name__)
    return found


def _messages(content: types.Content) -> list[Message]:
    found: list[Message] = []
    parts = _parts(content)
    text, calls = _said(parts)
    attached = attached_to(content)
    if text or calls or attached:
        role: Role = "assistant" if content.role == "model" else "user"
        found.append(Message(role, text, calls, attachments=attached))
    for part in parts:
        if answer := part.function_response:
            text = as_text(jsonable(answer.response))
            files = _given(getattr(answer, "parts", None) or [])
            found.append(Message("tool", text, (), answer.id or "", answer.name or "", files))
    return found


def said_in(content: types.Content | None) -> Json:
    """What a message says, as one value: its text, and what is attached."""
    return message_value(_said(_parts(content))[0], attached_to(content))


def contents_of(messages: Iterable[Message]) -> list[types.Content]:
    """Our messages in the framework's form; results of parallel calls are one content."""
    found: list[types.Content] = []
    for message in messages:
        if message.role != "tool":
            role = "model" if message.role == "assistant" else "user"
            said = response_of(ModelReply(message.text, message.calls, None)).content
            parts = [*_parts(said), *map(part_of, message.attachments)]
            found.append(types.Content(role=role, parts=parts))
            continue
        answer = types.FunctionResponse(
            id=message.call_id, name=message.tool, response={"result": message.text}
        )
        parts = [types.Part(function_response=answer), *map(part_of, message.attachments)]
        if found and _parts(found[-1]) and _parts(found[-1])[0].function_response:
            parts = [*_parts(found.pop()), *parts]
        found.append(types.Content(role="user", parts=parts))
    return found


def part_of(attachment: Attachment) -> types.Part:
    """An attachment in the framework's form."""
    blob = types.Blob(data=attachment.data, mime_type=attachment.media_type)
    return types.Part(inline_data=blob)


def attachment_of(part: Any, name: str = "") -> Attachment | None:
    """The attachment that a part of a message or of a tool's response is, if it holds bytes."""
    blob = getattr(part, "inline_data", None)
    if blob is None or not blob.data:
        return None
    return given_blob(blob.data, blob.mime_type or "", name or blob.display_name or "")


def attached_to(content: types.Content | None) -> tuple[Attachment, ...]:
    """What is attached to a message; thoughts are not part of it."""
    return _given([part for part in _parts(content) if not part.thought])


def _given(parts: Iterable[Any]) -> tuple[Attachment, ...]:
    found = [attachment_of(part) for part in parts]
    return tuple([one for one in found if one is not None])


def result_as_json(value: Any) -> Json:
    """What a tool returned, with a reference to what is attached."""
    return jsonable(with_references(value, _attached_part))


def _attached_part(value: Any) -> Attachment | None:
    return attachment_of(value) if isinstance(value, types.Part) else None


def _said(parts: list[types.Part]) -> tuple[str, tuple[ToolCall, ...]]:
    """The text in these parts and the calls."""
    texts: list[str] = []
    calls: list[ToolCall] = []
    for part in parts:
        if part.text and not part.thought:
            texts.append(part.text)
        if part.function_call:
            call = part.function_call
            args = as_object(jsonable(call.args or {}))
            calls.append(ToolCall(call.name or "", args, call.id or ""))
    return "".join(texts), tuple(calls)


def _parts(content: types.Content | None) -> list[types.Part]:
    return (content.parts if content else None) or []


def _spec(declared: types.FunctionDeclaration) -> Spec:
    parameters: Any = declared.parameters_json_schema
    if parameters is None and declared.parameters is not None:
        parameters = declared.parameters.model_dump(mode="json", exclude_none=True)
    return Spec(declared.name or "", declared.description or "", parameters or {})


def _schema(config: Any) -> dict[str, Json] | None:
    schema: Any = config.response_json_schema or config.response_schema
    if isinstance(schema, type) and issubclass(schema, BaseModel):
        return output_schema(schema)
    return schema if isinstance(schema, dict) else None  # pyright: ignore[reportUnknownVariableType]


def _instructions(given: Any) -> str:
    if isinstance(given, types.Content):
        return "".join(part.text or "" for part in _parts(given))
    return given if isinstance(given, str) else ""
