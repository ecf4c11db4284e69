"""Questions and replies of ours in the words of pydantic-ai's model layer, and back."""

import re
from collections.abc import Mapping
from typing import Any, Final, cast

from pydantic_ai import messages as theirs
from pydantic_ai.messages import InstructionPart
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.output import OutputObjectDefinition
from pydantic_ai.tools import ToolDefinition

from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.models.model import ModelReply, ModelRequest, ToolSpec
from greenroom.models.providers.model import ProviderModel

_FENCED: Final = re.compile(r"\s*```[\w-]*\n(?P<inside>.*?)\n?```\s*", re.DOTALL)

# Some providers take no question without a user's message, so all get the same one.
_BEGIN: Final = "(The user has not said anything yet. Speak first.)"
_GO_ON: Final = "(The user is waiting for more. Go on.)"


def messages_of(request: ModelRequest) -> list[theirs.ModelMessage]:
    """The conversation; what is not the model's own word becomes requests to it."""
    found: list[theirs.ModelMessage] = []
    asked: list[theirs.ModelRequestPart] = []
    for message in request.messages:
        if message.role != "assistant":
            asked.append(_asked(message))
            continue
        if asked:
            found.append(theirs.ModelRequest(parts=asked))
            asked = []
        found.append(_said(message))
    if not any(message.role in ("user", "tool") for message in _since_reply(request)):
        asked.append(theirs.UserPromptPart(_GO_ON if found else _BEGIN))
    last = theirs.ModelRequest(parts=asked, instructions=request.instructions or None)
    return [*found, last]


def parameters_of(
    model: ProviderModel, client: Model, request: ModelRequest
) -> ModelRequestParameters:
    """The tools, the instructions and the schema of a question."""
    given = ModelRequestParameters(
        function_tools=[_tool(spec) for spec in request.tools],
        instruction_parts=[InstructionPart(content=request.instructions)]
        if request.instructions
        else None,
    )
    schema = request.output_schema
    if schema is None:
        return given
    given.output_mode = "native" if _is_native(model, client, request, schema) else "prompted"
    given.output_object = OutputObjectDefinition(dict(schema), name=_title(schema))
    return given


def reply_of(model: ProviderModel, response: theirs.ModelResponse, *, prompted: bool) -> ModelReply:
    """The reply as ours, not yet priced; its model is what the provider says answered."""
    text = response.text or ""
    used = response.usage
    known = used.has_values() and not used.unmeasured_requests
    return ModelReply(
        text=_unfenced(text) if prompted else text,
        calls=tuple(_call(part) for part in response.tool_calls),
        usage=Usage(used.input_tokens, used.output_tokens) if known else None,
        model=f"{model.provider.name}:{response.model_name or model.called}",
    )


def _since_reply(request: ModelRequest) -> list[Message]:
    """What came after the model's last word, or everything if it has said none."""
    own = [n for n, message in enumerate(request.messages) if message.role == "assistant"]
    return list(request.messages[own[-1] + 1 if own else 0 :])


def _asked(message: Message) -> theirs.ModelRequestPart:
    match message.role:
        case "system":
            return theirs.SystemPromptPart(message.text)
        case "tool":
            return theirs.ToolReturnPart(message.tool, message.text, message.call_id)
        case _:
            return theirs.UserPromptPart(message.text)


def _said(message: Message) -> theirs.ModelResponse:
    text = [theirs.TextPart(message.text)] if message.text else []
    calls = [theirs.ToolCallPart(c.tool, dict(c.args), c.id) for c in message.calls]
    return theirs.ModelResponse(parts=[*text, *calls])


def _tool(spec: ToolSpec) -> ToolDefinition:
    return ToolDefinition(
        name=spec.name,
        description=spec.description or None,
        parameters_json_schema=dict(spec.parameters),
    )


def _call(part: theirs.ToolCallPart) -> ToolCall:
    # Arguments that are no JSON stay visible under a name of their own: the agent's tool refuses
    # them, and its model is told, as in real life.
    return ToolCall(part.tool_name, part.args_as_dict(), part.tool_call_id)


def _is_native(
    model: ProviderModel, client: Model, request: ModelRequest, schema: Mapping[str, Any]
) -> bool:
    """Whether the provider itself can hold the model to this schema."""
    profile = cast("Mapping[str, Any]", client.profile)
    with_tools = profile.get("google_supports_tool_combination", model.provider.name != "google")
    return (
        model.structured == "native"
        and schema.get("type") == "object"
        and bool(profile.get("supports_json_schema_output"))
        and (not request.tools or bool(with_tools))
    )


def _title(schema: Mapping[str, Any]) -> str:
    """A name that every provider takes."""
    return re.sub(r"\W+", "_", str(schema.get("title") or "answer"), flags=re.ASCII)[:60]


def _unfenced(text: str) -> str:
    """The JSON that a model wrapped into a Markdown fence, which it does when asked in words."""
    found = _FENCED.fullmatch(text)
    return found["inside"] if found else text
