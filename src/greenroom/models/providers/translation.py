"""Requests translated for pydantic-ai's model layer, and its replies and failures translated back."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_ai import messages as theirs
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from greenroom.errors import (
    GarbledReply,
    KeyRefused,
    ModelBroke,
    ModelTimedOut,
    ModelUnreachable,
    RateLimited,
    RequestRefused,
)
from greenroom.ledger.blobs import given_blob
from greenroom.ledger.messages import Message, ToolCall
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.models.providers.model import ProviderModel
from greenroom.models.replies import with_usage

_FENCED: Final = re.compile(r"\s*```[\w-]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL)

# Some providers do not accept a request without a user's message, so all get the same one.
_BEGIN: Final = "(The user has not said anything yet. Speak first.)"
_GO_ON: Final = "(The user is waiting for more. Go on.)"
_YOURS: Final = "(You have attached this:)"


def messages_of(model: ProviderModel, request: ModelRequest) -> list[theirs.ModelMessage]:
    """The conversation as messages; everything that the model did not say itself becomes a request to it."""
    found: list[theirs.ModelMessage] = []
    asked: list[theirs.ModelRequestPart] = []
    own: list[theirs.BinaryContent] = []
    for message in request.messages:
        if own and message.role != "tool":
            asked.append(theirs.UserPromptPart([_YOURS, *own]))
            own = []
        if message.role != "assistant":
            asked.append(_asked(message))
            continue
        if asked:
            found.append(theirs.ModelRequest(parts=asked))
            asked = []
        files = _files(message)
        if not model.provider.takes_own_files:
            files, own = [], files
        found.append(_said(message, files))
    is_waiting = all(isinstance(part, theirs.SystemPromptPart) for part in asked)
    if own:
        asked.append(theirs.UserPromptPart([_YOURS, *own]))
    if is_waiting:
        asked.append(theirs.UserPromptPart(_GO_ON if found else _BEGIN))
    last = theirs.ModelRequest(parts=asked, instructions=request.instructions or None)
    return [*found, last]


def _said(message: Message, files: list[theirs.BinaryContent]) -> theirs.ModelResponse:
    said = message.text
    if not said and message.attachments and not files and not message.calls:
        said = f"(attached: {', '.join(one.name for one in message.attachments)})"
    text = [theirs.TextPart(said)] if said else []
    calls = [theirs.ToolCallPart(c.tool, dict(c.args), c.id) for c in message.calls]
    return theirs.ModelResponse(parts=[*text, *map(theirs.FilePart, files), *calls])


def parameters_of(
    model: ProviderModel, client: Model, request: ModelRequest
) -> ModelRequestParameters:
    """The tools, the instructions and the schema of a question."""
    given = ModelRequestParameters(
        function_tools=[
            ToolDefinition(
                name=spec.name,
                description=spec.description or None,
                parameters_json_schema=dict(spec.parameters),
            )
            for spec in request.tools
        ],
        instruction_parts=[InstructionPart(content=request.instructions)]
        if request.instructions
        else None,
    )
    schema = request.output_schema
    if schema is None:
        return given
    given.output_mode = "native" if _is_native(model, client, request, schema) else "prompted"
    # A name that every provider accepts.
    title = re.sub(r"\W+", "_", str(schema.get("title") or "answer"), flags=re.ASCII)[:60]
    given.output_object = OutputObjectDefinition(dict(schema), name=title)
    return given


def reply_of(model: ProviderModel, response: theirs.ModelResponse, *, prompted: bool) -> ModelReply:
    """The reply as a ModelReply, not yet priced; its model is the one that the provider reports."""
    text = response.text or ""
    if prompted and (fenced := _FENCED.fullmatch(text)):
        # Models wrap JSON in a Markdown fence when they are asked for it in words.
        text = fenced["inside"]
    reply = ModelReply(
        text=text,
        # Arguments that are not JSON stay visible under a special name: the agent's tool refuses them and
        # its model sees that, as in production.
        calls=tuple(
            ToolCall(part.tool_name, part.args_as_dict(), part.tool_call_id)
            for part in response.tool_calls
        ),
        model=f"{model.provider.name}:{response.model_name or model.called}",
        attachments=tuple(given_blob(file.data, file.media_type) for file in response.files),
        partial=response.finish_reason == "length",
    )
    used = response.usage
    if used.unmeasured_requests:
        return reply
    return with_usage(reply, used.input_tokens, used.output_tokens)


def _asked(message: Message) -> theirs.ModelRequestPart:
    if message.attachments:
        text = [message.text] if message.text else []
        if message.role == "tool":
            return theirs.ToolReturnPart(message.tool, [*text, *_files(message)], message.call_id)
        return theirs.UserPromptPart([*text, *_files(message)])
    match message.role:
        case "system":
            return theirs.SystemPromptPart(message.text)
        case "tool":
            return theirs.ToolReturnPart(message.tool, message.text, message.call_id)
        case _:
            return theirs.UserPromptPart(message.text)


def _files(message: Message) -> list[theirs.BinaryContent]:
    return [
        theirs.BinaryContent(one.data, media_type=one.media_type, identifier=one.name)
        for one in message.attachments
    ]


def _is_native(
    model: ProviderModel, client: Model, request: ModelRequest, schema: Mapping[str, object]
) -> bool:
    """Whether the provider itself can enforce this schema."""
    profile = cast("Mapping[str, Any]", client.profile)
    with_tools = profile.get("google_supports_tool_combination", model.provider.name != "google")
    return (
        model.structured == "native"
        and schema.get("type") == "object"
        and bool(profile.get("supports_json_schema_output"))
        and (not request.tools or bool(with_tools))
    )


# Failures

_SHOWN = 400


def failure_of(error: Exception, model: ProviderModel, key: str, *, again: int) -> ModelBroke:
    """The failure as a Greenroom error; `again` is how often to ask again if it may pass."""
    who = _who(model)
    why = _why(error, key)
    match error:
        case ModelAuthenticationError():
            keys = " or ".join(model.provider.keys)
            advice = f"check {keys}, and that it may use this model."
            if model.api_key:
                advice = "give another api_key."
            return KeyRefused(f"{who} refused the API key{_status(error)}: {advice}")
        case ModelQuotaExceededError():
            return RequestRefused(f"{who} has used up its quota or credit{_status(error)}: {why}")
        case ModelRateLimitError():
            after = error.retry_after
            asks = "" if after is None else f" and asks to wait {after:g} s"
            return RateLimited(
                f"{who} was asked too often{_status(error)}{asks}: {why}",
                again=again,
                retry_after=after,
            )
        case ModelRequestTimeout() | ModelTimeoutError():
            return ModelTimedOut(
                f"{who} gave no reply within {model.timeout:g} s. Raise it with "
                f"provider_model({model.name!r}, timeout=...).",
                again=again,
            )
        case ModelUnavailableError() | ModelServerError():
            after = error.retry_after
            return ModelUnreachable(
                f"{who} has a server error{_status(error)}: {why}", again=again, retry_after=after
            )
        case ModelConnectionError():
            return ModelUnreachable(f"the connection to {who} failed: {why}", again=again)
        case ModelRequestRejectedError() | ContentFilterError() | UserError():
            return RequestRefused(f"{who} will not answer this{_status(error)}: {why}")
        case _:
            return GarbledReply(f"{who} gave a reply that cannot be read: {why}", again=again)


def check_whole(
    model: ProviderModel, response: theirs.ModelResponse, *, streamed: bool, again: int
) -> None:
    """Refuse a reply that is incomplete, or that the provider's filter blocked."""
    if response.finish_reason == "content_filter" and not response.parts:
        raise RequestRefused(f"{_who(model)} withheld its reply: the provider's filter blocked it.")
    is_over = bool((response.provider_details or {}).get("finish_reason"))
    # Some servers never report the end; there complete JSON counts as the end.
    has_end = not streamed and bool(response.parts) and response.finish_reason is not None
    if not is_over and not has_end:
        raise GarbledReply(
            f"{_who(model)} gave a reply that breaks off: {(response.text or '')[-80:]!r}",
            again=again,
        )


def _who(model: ProviderModel) -> str:
    return f"the model {model.name!r}" + (f" at {model.url()}" if model.url() else "")


def _status(error: Exception) -> str:
    return f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _why(error: Exception, key: str) -> str:
    """The provider's message, without the key if it repeats it."""
    body = error.body if isinstance(error, ModelAPIError) else None
    text = _message(body) or str(error) or type(error).__name__
    return text.replace(key, "…")[:_SHOWN]


def _message(body: object) -> str:
    """The message in an error's body, wherever the provider puts it."""
    if isinstance(body, Mapping):
        inner = cast("Mapping[str, Any]", body)
        return _message(inner.get("error")) or str(inner.get("message") or "")
    return body if isinstance(body, str) else ""
