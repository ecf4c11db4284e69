"""What a span represents, in whichever dialect it was written.

Known dialects: OpenTelemetry's conventions for generative AI (google-adk, pydantic-ai, Greenroom), those of
OpenInference, those of OpenLLMetry before it followed the conventions, and google-adk's own.
"""

from collections.abc import Iterator, Mapping
from typing import Literal

from msgspec import Struct, structs

from greenroom.errors import BadTrace
from greenroom.ledger.events import Unseen
from greenroom.ledger.messages import Message, ToolCall, Usage
from greenroom.ledger.plain import Json, is_array, is_object
from greenroom.traces.messages import (
    has_other_parts,
    is_hollow,
    message_of,
    messages_in,
    parsed,
    text_in,
)
from greenroom.traces.records import Span
from greenroom.traces.writer import price_of, usage_of

Kind = Literal["agent", "model", "tool", ""]

_OPERATIONS: Mapping[str, Kind] = {
    "chat": "model",
    "generate_content": "model",
    "text_completion": "model",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "invoke_workflow": "agent",
    "call_llm": "model",
    "invocation": "agent",
    "agent_run": "agent",
}
_KINDS: Mapping[str, Kind] = {
    "LLM": "model",
    "TOOL": "tool",
    "AGENT": "agent",
    "workflow": "agent",
    "agent": "agent",
    "tool": "tool",
    "llm": "model",
}
_KIND_NAMES = ("openinference.span.kind", "traceloop.span.kind", "langsmith.span.kind")
_CONVERSATIONS = (
    "gen_ai.conversation.id",
    "gcp.vertex.agent.session_id",
    "session.id",
    "langsmith.metadata.thread_id",
    "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id",
    "langfuse.session.id",
)
_NOTHING = ("", "<not specified>", "<not serializable>", "{}")
_HIDDEN = "__REDACTED__"
"""What OpenInference writes in place of hidden content."""
_CONTENT: Mapping[str, Unseen] = {
    "gen_ai.input.messages": "user",
    "gen_ai.output.messages": "words",
    "gcp.vertex.agent.llm_request": "user",
    "gcp.vertex.agent.llm_response": "words",
    "gen_ai.prompt": "user",
    "gen_ai.completion": "words",
    "input.value": "user",
    "output.value": "words",
}


def kind_of(span: Span) -> Kind:
    """Whether a span is an agent's work, a model request, a tool call, or none of these."""
    attributes = span.attributes
    operation = attributes.get("gen_ai.operation.name")
    if (
        span.name == "execute_tool (merged)"
        or attributes.get("gen_ai.tool.name") == "(merged tools)"
    ):
        return ""
    if isinstance(operation, str) and operation in _OPERATIONS:
        return _OPERATIONS[operation]
    for name in _KIND_NAMES:
        kind = attributes.get(name)
        if isinstance(kind, str) and kind in _KINDS:
            return _KINDS[kind]
    if attributes.get("llm.request.type") in ("chat", "completion"):
        return "model"
    return _OPERATIONS.get(span.name.split(" ", 1)[0], "")


def as_shown(span: Span) -> Span:
    """The span without attributes whose content was hidden when it was written."""
    shown = {name: value for name, value in span.attributes.items() if value != _HIDDEN}
    if len(shown) == len(span.attributes):
        return span
    return structs.replace(span, attributes=shown, lacks=True)


def left_out(span: Span) -> Iterator[Unseen]:
    """The parts of a span that are not read because they are not text: pictures, sound, files."""
    for name, value in span.attributes.items():
        if name.endswith(".message_content.type") and value != "text":
            yield "user" if name.startswith("llm.input_messages.") else "words"
        elif name in _CONTENT and has_other_parts(value):
            yield _CONTENT[name]


def conversation_of(span: Span) -> str:
    """The conversation that a span says it belongs to; "" if it does not say."""
    for name in _CONVERSATIONS:
        if (found := span.attributes.get(name)) and isinstance(found, str):
            return found
    metadata = parsed(span.attributes.get("metadata"))
    if is_object(metadata):
        for name in ("thread_id", "session_id", "conversation_id"):
            if (found := metadata.get(name)) and isinstance(found, str):
                return found
    return ""


class ModelAct(Struct, kw_only=True):
    """A model request: what the model heard and said; None for what was not recorded."""

    span: Span
    model: str = ""
    agent: str = ""
    heard: list[Message] | None = None
    said: Message | None = None
    instructions: str = ""
    usage: Usage | None = None
    cost: float | None = None


class ToolAct(Struct, kw_only=True):
    """A tool call; `has_result` is False if its result was not recorded."""

    span: Span
    tool: str
    call_id: str = ""
    args: dict[str, Json] | None = None
    result: Json = None
    has_result: bool = False


def model_act(span: Span) -> ModelAct:
    """The model request that a span describes."""
    had = span.attributes
    heard, said, instructions = _conventions(had)
    if heard is None and said is None:
        heard, said, instructions = _google(had)
    if heard is None and said is None and not span.lacks:
        heard, said = _indexed(had)
    if heard is None and said is None:
        heard = messages_in(had.get("gen_ai.prompt", had.get("input.value")))
        said = reply_of(_completion(had.get("gen_ai.completion", had.get("output.value"))))
    systems = [one.text for one in heard or () if one.role == "system"]
    first = ("gen_ai.response.model", "gen_ai.request.model", "llm.model_name")
    return ModelAct(
        span=span,
        model=next((str(had[name]) for name in first if had.get(name)), ""),
        heard=heard,
        said=said,
        instructions=instructions or "\n".join(systems),
        usage=_usage(had),
        cost=_cost(had),
    )


def tool_act(span: Span) -> ToolAct:
    """The tool call that a span describes."""
    had = span.attributes
    named = ("gen_ai.tool.name", "tool.name", "traceloop.entity.name")
    by_span = span.name.removeprefix("execute_tool").strip().removesuffix(".tool")
    name = next((str(had[key]) for key in named if had.get(key)), by_span)
    if not name:
        raise BadTrace(f"span {span.id!r} ({span.place}) calls a tool, but does not name it.")
    call_id = str(had.get("gen_ai.tool.call.id", had.get("tool_call.id", "")) or "")
    given = _first(had, "gen_ai.tool.call.arguments", "gcp.vertex.agent.tool_call_args")
    if given is None:
        given = _first(had, "tool.parameters", "input.value", "traceloop.entity.input")
    args = parsed(given) if given is not None else None
    if is_object(args) and args.keys() <= {"inputs", "input", "tags", "metadata", "kwargs"}:
        # OpenLLMetry records how LangChain was called.
        inner = args.get("inputs")
        args = inner if is_object(inner) else args
    returned = ("gen_ai.tool.call.result", "gcp.vertex.agent.tool_response", "output.value")
    found = _first(had, *returned, "traceloop.entity.output")
    result = parsed(found)
    return ToolAct(
        span=span,
        tool=name,
        call_id="" if call_id in _NOTHING else call_id,
        args=args if is_object(args) else None,
        result=_unwrapped(result),
        has_result=found is not None and result is not None,
    )


def _first(had: Mapping[str, Json], *names: str) -> Json:
    """The value of the first of these names that has one; placeholders do not count."""
    for name in names:
        value = had.get(name)
        if value is not None and value not in _NOTHING[:3]:
            # google-adk writes {} if it was configured to hide content.
            if value == "{}" and name.startswith("gcp.vertex.agent."):
                continue
            return value
    return None


def _unwrapped(result: Json) -> Json:
    """A tool's result, without the message that LangChain wraps it in."""
    if is_object(result):
        kwargs = result.get("kwargs")
        is_wrapped = is_array(result.get("id")) and is_object(kwargs)
        held = kwargs if is_wrapped else result if result.get("type") == "tool" else None
        if is_object(held) and "content" in held:
            return held["content"]
        update = result.get("update")
        if is_object(update) and (said := messages_in(update)):
            return said[-1].text
    return result


Exchange = tuple[list[Message] | None, Message | None, str]


def _conventions(had: Mapping[str, Json]) -> Exchange:
    asked, answered = had.get("gen_ai.input.messages"), had.get("gen_ai.output.messages")
    heard = None if asked is None or is_hollow(asked) else messages_in(asked)
    said = None if answered is None or is_hollow(answered) else reply_of(messages_in(answered))
    instructions = parsed(had.get("gen_ai.system_instructions"))
    return heard, said, text_in(instructions) if instructions is not None else ""


def _google(had: Mapping[str, Json]) -> Exchange:
    request = parsed(had.get("gcp.vertex.agent.llm_request"))
    response = parsed(had.get("gcp.vertex.agent.llm_response"))
    heard = messages_in(request) if is_object(request) and "contents" in request else None
    said: Message | None = None
    if is_object(response) and is_object(content := response.get("content")):
        said = reply_of(message_of({"role": "model", **content}))
    config = request.get("config") if is_object(request) else None
    instructions = config.get("system_instruction") if is_object(config) else None
    return heard, said, instructions if isinstance(instructions, str) else ""


def _indexed(had: Mapping[str, Json]) -> tuple[list[Message] | None, Message | None]:
    """Messages whose every field is an attribute: `llm.input_messages.0.message.content`."""
    heard = _listed(had, "llm.input_messages", "message.") or _listed(had, "gen_ai.prompt", "")
    said = _listed(had, "llm.output_messages", "message.") or _listed(had, "gen_ai.completion", "")
    return heard, reply_of(said)


def _listed(had: Mapping[str, Json], prefix: str, inner: str) -> list[Message] | None:
    tree = _tree(
        {k.removeprefix(f"{prefix}."): v for k, v in had.items() if k.startswith(f"{prefix}.")}
    )
    entries: list[Json] = []
    for key in sorted(tree, key=_number):
        entry = tree[key]
        if inner and is_object(entry):
            entry = entry.get(inner.rstrip("."))
        if is_object(entry):
            entries.append(_message(entry))
    found = [message for entry in entries for message in message_of(entry)]
    return found or None


def _number(key: str) -> tuple[int, str]:
    """A sort key for numbers of any length: the longer one is the greater."""
    return len(key), key


def _message(entry: Mapping[str, Json]) -> dict[str, Json]:
    """A message whose lists were written as objects with numbers for keys."""
    made = dict(entry)
    for name, wrap in (("tool_calls", "tool_call"), ("contents", "message_content")):
        held = entry.get(name)
        if is_object(held):
            ordered = [held[key] for key in sorted(held, key=_number)]
            made[name] = [one.get(wrap, one) if is_object(one) else one for one in ordered]
    if "content" not in made and "contents" in made:
        made["content"] = made["contents"]
    return made


def _tree(flat: Mapping[str, Json]) -> dict[str, Json]:
    """Attributes with dots in their names as nested objects."""
    tree: dict[str, Json] = {}
    for name, value in flat.items():
        at = tree
        *way, last = name.split(".")
        for step in way:
            inner = at.setdefault(step, {})
            if not is_object(inner):
                break
            at = inner
        else:
            at.setdefault(last, value)
    return tree


def _completion(value: Json) -> list[Message] | None:
    """A reply in one of the formats of LangChain and LangSmith, or as a bare string."""
    value = parsed(value)
    if is_object(value):
        generations = value.get("generations")
        while is_array(generations) and generations:
            generations = generations[0]
        if is_object(generations):
            return messages_in([generations.get("message")])
        if is_array(choices := value.get("choices")):
            return messages_in(choices)
    found = messages_in(value)
    if found is None and isinstance(value, str) and value:
        return [Message("assistant", value)]
    return found


def reply_of(messages: list[Message] | None) -> Message | None:
    """What a model or agent said in these messages, joined into one."""
    own = [one for one in messages or () if one.role == "assistant"]
    if not own:
        return None
    calls: tuple[ToolCall, ...] = tuple(call for one in own for call in one.calls)
    return Message("assistant", "".join(one.text for one in own), calls)


def _usage(had: Mapping[str, Json]) -> Usage | None:
    for read, wrote in (
        ("gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"),
        ("gen_ai.usage.prompt_tokens", "gen_ai.usage.completion_tokens"),
        ("llm.token_count.prompt", "llm.token_count.completion"),
    ):
        if (found := usage_of(had.get(read), had.get(wrote))) is not None:
            return found
    return None


def _cost(had: Mapping[str, Json]) -> float | None:
    for name in ("greenroom.cost_usd", "llm.cost.total", "gen_ai.usage.cost"):
        if (found := price_of(had.get(name))) is not None:
            return found
    return None
