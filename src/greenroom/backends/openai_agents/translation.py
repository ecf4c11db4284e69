"""Requests and replies between the items of OpenAI's Responses API and ours."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false, reportUnknownArgumentType=false, reportUnknownVariableType=false, reportPrivateUsage=false

import json
from base64 import b64encode
from collections.abc import Iterable, Sequence
from typing import Any, cast

from agents.agent_output import AgentOutputSchemaBase
from agents.handoffs import Handoff
from openai.types.responses import (
    Response,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)
from pydantic_core import from_json

from agents import (
    FunctionTool,
    ModelResponse,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    Usage,
)
from greenroom.backends.attached import content_attachments, data_uri
from greenroom.backends.foreign import Spec, jsonable
from greenroom.ledger.attachments import Attachment, text_and_attachments
from greenroom.ledger.messages import Message, Role, ToolCall
from greenroom.ledger.messages import Usage as Tokens
from greenroom.ledger.plain import Json, as_object
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.models.replies import with_usage

_SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}
_ROLES: dict[str, Role] = {"assistant": "assistant", "system": "system", "developer": "system"}


def request_of(
    instructions: str | None,
    items: Any,
    tools: Iterable[Any],
    schema: AgentOutputSchemaBase | None,
    handoffs: Iterable[Handoff[Any, Any]],
    **asker: Any,
) -> ModelRequest:
    """The framework's model request, as ours; `asker` says who asks, and where."""
    specs = [
        Spec(t.name, t.description, t.params_json_schema)
        for t in tools
        if isinstance(t, FunctionTool)
    ]
    for one in handoffs:
        specs.append(Spec(one.tool_name, one.tool_description, one.input_json_schema))
    said = [Message("user", items)] if isinstance(items, str) else _messages(items)
    return ModelRequest(
        messages=tuple(said),
        instructions=instructions or "",
        tools=tuple(specs),
        output_schema=None if schema is None or schema.is_plain_text() else schema.json_schema(),
        **asker,
    )


def reply_of(response: ModelResponse) -> ModelReply:
    """A model's response, as ours; its price is unknown."""
    reply = ModelReply(
        text="".join([_said(item) for item in response.output]),
        calls=tuple(
            [
                ToolCall(item.name, args_of(item.arguments), item.call_id)
                for item in response.output
                if _kind(item) == "function_call" and isinstance(item, ResponseFunctionToolCall)
            ]
        ),
    )
    return with_usage(reply, response.usage.input_tokens, response.usage.output_tokens)


def response_of(reply: ModelReply, id: str) -> ModelResponse:
    """Our reply, in the form of the framework's model."""
    output: list[Any] = [
        ResponseFunctionToolCall(
            type="function_call", name=c.tool, call_id=c.id, arguments=json.dumps(dict(c.args))
        )
        for c in reply.calls
    ]
    if reply.text or not output:
        text = ResponseOutputText(type="output_text", text=reply.text, annotations=[])
        said = ResponseOutputMessage(
            id=id, type="message", role="assistant", status="completed", content=[text]
        )
        output.insert(0, said)
    used = reply.usage or Tokens()
    usage = Usage(
        requests=1,
        input_tokens=used.input,
        output_tokens=used.output,
        total_tokens=used.total,
    )
    return ModelResponse(output=output, usage=usage, response_id=None)


def identified(response: ModelResponse, reply: ModelReply) -> ModelResponse | None:
    """The model's own response with the ids its calls were given; None if more was changed."""
    own = reply_of(response)
    wanted = [(call.tool, call.args) for call in reply.calls]
    if own.text != reply.text or [(call.tool, call.args) for call in own.calls] != wanted:
        return None
    ids = iter([call.id for call in reply.calls])
    output = [
        item.model_copy(update={"call_id": next(ids)})
        if isinstance(item, ResponseFunctionToolCall)
        else item
        for item in response.output
    ]
    return ModelResponse(output=output, usage=response.usage, response_id=response.response_id)


def response_in(event: Any) -> ModelResponse | None:
    """The whole response that a stream ended with, if this is its last event."""
    if getattr(event, "type", "") not in ("response.completed", "response.incomplete"):
        return None
    whole: Response = event.response
    used = whole.usage
    usage = Usage(
        requests=1,
        input_tokens=used.input_tokens if used else 0,
        output_tokens=used.output_tokens if used else 0,
        total_tokens=used.total_tokens if used else 0,
    )
    return ModelResponse(output=list(whole.output), usage=usage, response_id=whole.id)


def args_of(encoded: str) -> dict[str, Json]:
    """Arguments as the model wrote them; text that is not a JSON object is passed as `input`."""
    try:
        args: Json = from_json(encoded or "{}")
    except (ValueError, TypeError):
        try:
            args = json.loads(encoded)  # accepts more, such as half a surrogate pair
        except ValueError:
            return {"input": encoded}
    return cast("dict[str, Json]", args) if isinstance(args, dict) else {"input": args}


def _said(item: Any) -> str:
    if _kind(item) != "message":
        return ""
    return "".join([p.refusal if _kind(p) == "refusal" else p.text for p in item.content])


def _kind(item: Any) -> str:
    return getattr(item, "type", "")


def _messages(items: Iterable[Any]) -> list[Message]:
    found: list[Message] = []
    named: dict[str, str] = {}
    for item in items:
        data: dict[str, Any] = item if isinstance(item, dict) else as_object(jsonable(item))
        kind = data.get("type", "message")
        if kind == "message":
            role = _ROLES.get(str(data.get("role")), "user")
            content = data.get("content")
            attached = content_attachments(content)
            found.append(Message(role, _text(content), attachments=attached))
        elif kind == "function_call":
            call_id, tool = str(data["call_id"]), str(data["name"])
            named[call_id] = tool
            call = ToolCall(tool, args_of(str(data["arguments"])), call_id)
            found.append(Message("assistant", "", (call,)))
        elif kind == "function_call_output":
            call_id = str(data["call_id"])
            tool = named.get(call_id, "")
            given = data["output"]
            files = content_attachments(given)
            found.append(Message("tool", _text(given), (), call_id, tool, files))
    return found


def user_item(text: str, attachments: Sequence[Attachment]) -> dict[str, Any]:
    """What the user said, as an item of a conversation."""
    if not attachments:
        return {"role": "user", "content": text}
    said = [{"type": "input_text", "text": text}] if text else []
    return {"role": "user", "content": [*said, *map(_input, attachments)]}


def _input(one: Attachment) -> dict[str, Any]:
    if one.modality == "image":
        return {"type": "input_image", "image_url": data_uri(one), "detail": "auto"}
    if one.media_type in _SOUNDS:
        coded = b64encode(one.data).decode()
        audio = {"data": coded, "format": _SOUNDS[one.media_type]}
        return {"type": "input_audio", "input_audio": audio}
    return {"type": "input_file", "filename": one.name, "file_data": data_uri(one)}


def as_returned(value: Json) -> Any:
    """The World's answer in the form a tool returns it: with files, a list of outputs."""
    text, attached = text_and_attachments(value)
    if not attached:
        return value
    return [ToolOutputText(text=text), *map(_output, attached)]


def _output(one: Attachment) -> ToolOutputImage | ToolOutputFileContent:
    if one.modality == "image":
        return ToolOutputImage(image_url=data_uri(one))
    return ToolOutputFileContent(file_data=data_uri(one), filename=one.name)


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)
    return "" if content is None else str(content)
