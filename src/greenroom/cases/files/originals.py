"""Details in other tools' files that a case does not need: kept, and written back while they still fit.

A message may be blocks of many types; a case needs its text. The original is kept in `extra` under
its own name. It is written back to a file as long as it agrees with the case.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import Fields, ProblemList
from greenroom.cases.files.message_blobs import attached_in
from greenroom.cases.literals import literal
from greenroom.cases.names import near_name
from greenroom.cases.problems import at, keys_of, put, shown, wrong
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, is_array, is_object, plain, same

Calls = Sequence[ToolCall | str]


# What google-adk's messages, calls and events may hold, and AgentFlow's.
_PARTS = ("parts", "role")
_CONTENT = ("role", "content", "metadata")
_PART = (
    "text",
    "thought",
    "thought_signature",
    "inline_data",
    "file_data",
    "function_call",
    "function_response",
    "executable_code",
    "code_execution_result",
    "video_metadata",
    "part_metadata",
    "media_resolution",
    "media_processing",
    "audio_transcription",
    "speech_metadata",
    "tool_call",
    "tool_response",
)
_STEPS = ("tool_uses", "tool_responses", "intermediate_responses")
_EVENTS = ("invocation_events",)
_EVENT = ("author", "content", "grounding_metadata", "usage_metadata", "model_version")
_MORE_OF_A_CALL = ("id", "partial_args", "will_continue")


def message_text(message: Json, place: str) -> str:
    """The text of a message: a string, or the text in its `content` or `parts`."""
    if isinstance(message, str):
        return message
    if not is_object(message):
        raise wrong(place, f"{shown(message)} should be a message with `content` or `parts`")
    name = "parts" if any(near_name(key, ("parts",)) for key in message) else "content"
    fields = Fields(message, place, _PARTS if name == "parts" else _CONTENT)
    content = fields.take(name)
    fields.rest()
    if isinstance(content, str):
        fields.settle()
        return content
    if not is_array(content):
        fields.remember(fields.at(name), f"{shown(content)} should be a string or a list of blocks")
        content = []
    read = _part_text if name == "parts" else _block_text
    texts = fields.problems.each(content, fields.at(name), read)
    fields.settle()
    return "\n".join(text for text in texts if text)


def _part_text(part: Json, place: str) -> str:
    if isinstance(part, str):
        return part
    fields = Fields(part, place, _PART)
    text = fields.text("text")
    fields.rest()
    fields.settle()
    return text


def _block_text(block: Json, place: str) -> str:
    """The text of a block; blocks of other types have their own fields."""
    if isinstance(block, str):
        return block
    if not is_object(block):
        raise wrong(place, f"{shown(block)} should be a block of a message")
    if block.get("type", "text") != "text" and "text" not in block:
        return ""
    fields = Fields(block, place, ("type", "text"))
    fields.take("type")
    if not fields.has("text"):
        fields.remember(place, f"{shown(block)} should have a `text`")
    text = fields.text("text")
    fields.free()
    fields.settle()
    return text


def said_in(message: Json, place: str) -> str:
    """The text of a message that the user says; one without any, and without a file, is refused."""
    if message is None:
        raise wrong(place, "it is missing: the user says nothing")
    says = message_text(message, place)
    if not says.strip() and not attached_in(message):
        raise wrong(place, "it has no text for the user to say")
    return says


def responses_text(responses: Json, place: str) -> list[str]:
    """The text of each message in a list."""
    problems = ProblemList()
    found = problems.each(responses, place, _response_text)
    problems.settle()
    return found


def _response_text(response: Json, place: str) -> str:
    """The text of an author with parts, an author with a string, or a message."""
    if is_array(response) and len(response) == 2 and is_array(response[1]):
        return message_text({"parts": response[1]}, place)
    if is_object(response) and "text" in response:
        fields = Fields(response, place, ("author", "text"))
        fields.take("author")
        text = fields.text("text")
        fields.settle()
        return text
    return message_text(response, place)


def calls_in(
    uses: Json, place: str, tool: str = "name", args: str = "args", more: Sequence[str] = ()
) -> Calls:
    """Expected calls from a list of mappings; one without arguments becomes a bare name.

    `more` are the other fields that such a mapping may have.
    """
    if not is_array(uses):
        raise wrong(place, f"{shown(uses)} should be a list of calls")
    problems = ProblemList()
    found = problems.each(uses, place, partial(_call, tool=tool, args=args, more=more))
    problems.settle()
    return found


def _call(
    use: Json,
    place: str,
    tool: str = "name",
    args: str = "args",
    more: Sequence[str] = _MORE_OF_A_CALL,
) -> ToolCall | str:
    if not is_object(use):
        raise wrong(place, f"{shown(use)} should be a mapping with `{tool}` and `{args}`")
    fields = Fields(use, place, (tool, args, *more), {"tools": tool, "args": args})
    name, given = fields.take(tool), fields.take(args)
    fields.rest()
    called = name if isinstance(name, str) else ""
    if not called.strip():
        fields.remember(at(place, tool), f"{shown(name)} should be the name of a tool")
    if given is not None and not is_object(given):
        fields.remember(at(place, args), f"{shown(given)} should be a mapping")
    fields.settle()
    return ToolCall(called, literal(given)) if is_object(given) else called


def steps_in(data: Json, place: str) -> tuple[Calls, list[str]]:
    """The calls and messages on the way to a response, listed separately or as events."""
    if not is_object(data):
        raise wrong(place, f"{shown(data)} should be a mapping")
    by_events = "invocation_events" in data or "invocationEvents" in data
    means = {} if by_events else {"tools": "tool_uses", "intermediate": "intermediate_responses"}
    fields = Fields(data, place, _EVENTS if by_events else _STEPS, means)
    if by_events:
        found = fields.read("invocation_events", _steps_in_events, ([], []))
    else:
        calls = fields.read("tool_uses", partial(calls_in, more=_MORE_OF_A_CALL), [])
        found = calls, fields.read("intermediate_responses", responses_text, [])
    fields.rest()
    fields.settle()
    return found


def _steps_in_events(events: Json, place: str) -> tuple[Calls, list[str]]:
    problems = ProblemList()
    calls: list[ToolCall | str] = []
    texts: list[str] = []
    for parts in problems.each(events, place, _parts_of_event):
        for step in parts:
            if isinstance(step, _Text):
                texts.append(step)
            else:
                calls.append(step)
    problems.settle()
    return calls, texts


class _Text(str):
    """What was said on the way; a bare string is the name of a call."""

    __slots__ = ()


def _parts_of_event(event: Json, place: str) -> list[ToolCall | str]:
    fields = Fields(event, place, _EVENT)
    content = fields.inner("content", _PARTS)
    found = content.each("parts", _step_in_part)
    content.rest()
    content.refuse_others()
    fields.rest()
    fields.free()  # google-adk's editor leaves its own marks on events, and google-adk ignores them
    fields.settle()
    return [step for step in found if step is not None]


def _step_in_part(part: Json, place: str) -> ToolCall | str | None:
    fields = Fields(part, place, _PART)
    call, text = fields.read("function_call", _call, None), fields.text("text")
    fields.rest()
    fields.settle()
    return call if call is not None else _Text(text) if text else None


# Whether a kept original still agrees with the case


def reference_in(message: Json, place: str) -> str | None:
    """The text of an expected response; None if it has none."""
    return message_text(message, place) or None


_EXPECTED: dict[str, tuple[Callable[[Expect], Any], Callable[[Json, str], Any]]] = {
    "final_response": (lambda e: e.reference, reference_in),
    "expected_final_response": (lambda e: e.reference, reference_in),
    "intermediate_data": (
        lambda e: [list(e.tools or ()), list(e.intermediate or ())],
        lambda data, place: [list(steps) for steps in steps_in(data, place)],
    ),
    "expected_intermediate_responses": (lambda e: list(e.intermediate or ()), responses_text),
    "expected_intermediate_agent_responses": (lambda e: list(e.intermediate or ()), responses_text),
}
"""What a case says now, and how it is read from the original that was kept under this name."""


def settled(evalset: EvalSet) -> EvalSet:
    """The set without originals that no longer agree with its cases."""
    cases: list[Case] = []
    for case in evalset.cases:
        if any(turn.extra or (turn.expect and turn.expect.extra) for turn in case.turns):
            case = replace(case, turns=[_settled_turn(turn) for turn in case.turns])
        cases.append(case)
    return replace(evalset, cases=cases)


def _settled_turn(turn: Turn) -> Turn:
    extra = dict(turn.extra or {})
    if "user_content" in extra:
        kept, attached = extra["user_content"], tuple(turn.attachments)
        if message_text(kept, "") != turn.says or attached_in(kept) != attached:
            del extra["user_content"]
    expect = turn.expect
    if expect is not None and expect.extra:
        kept = dict(expect.extra)
        for name, (said, read) in _EXPECTED.items():
            if name in kept and read(kept[name], "") != said(expect):
                del kept[name]
        expect = replace(expect, extra=kept or None)
    return replace(turn, expect=expect, extra=extra or None)


def says_only_text(message: Json) -> bool:
    """Whether a message is only its text, in any form."""
    if not is_object(message):
        return isinstance(message, str)
    inner = message.get("parts", message.get("content"))
    blocks = inner if is_array(inner) else [inner]
    plain_forms = ({"text"}, {"text", "type"})
    is_plain = all(isinstance(b, str) or (is_object(b) and set(b) in plain_forms) for b in blocks)
    return is_plain and message.keys() <= {"parts", "content", "role"} and len(blocks) == 1


def with_extra(extra: dict[str, Json], **originals: Json) -> dict[str, Json] | None:
    """Extra fields, with those originals that say more than the case needs; None if empty."""
    extra = {**extra, **{name: kept for name, kept in originals.items() if kept is not None}}
    return extra or None


_PREFIXES = {"user:": "user", "app:": "app", "temp:": "temp"}
_MADE_UP = {"session_input.app_name": "greenroom", "session_input.user_id": "user"}


def session_extra(session: Fields, state: Mapping[str, Json]) -> dict[str, Json]:
    """The fields of a session besides its state, without names that `session_data` makes up."""
    rest = session.rest("session_input")
    return {key: value for key, value in rest.items() if not state or value != _MADE_UP.get(key)}


def scopes(state: Mapping[str, Json]) -> dict[str, dict[str, Json]]:
    """State by scope, from keys with the prefixes of ADK's scopes."""
    found: dict[str, dict[str, Json]] = {}
    for name, value in state.items():
        prefix = next((prefix for prefix in _PREFIXES if name.startswith(prefix)), "")
        scope = _PREFIXES.get(prefix, "session")
        found.setdefault(scope, {})[name.removeprefix(prefix)] = value
    return found


def joined_state(
    session: Mapping[str, Mapping[str, Json]], ours: Mapping[str, Mapping[str, Json]], place: str
) -> dict[str, dict[str, Json]]:
    """The state from both places where a file can hold it, scope by scope."""
    found = {scope: dict(content) for scope, content in session.items()}
    for scope, content in ours.items():
        held = found.setdefault(scope, {})
        for key, value in content.items():
            if key in held and not same(held[key], value):
                message = f"{shown(value)} contradicts {shown(held[key])} in `session_input.state`"
                raise wrong(at(place, scope, key), message, "Keep one of them")
            held[key] = value
    return found


def session_data(state: Mapping[str, Json], extra: dict[str, Json]) -> dict[str, Json]:
    """A session with its state, if the case has any; names that ADK requires are made up if missing."""
    if not state:
        return {}
    data: dict[str, Json] = {"session_input": {"state": plain(state)}}
    put_back(data, {place: name for place, name in _MADE_UP.items() if place not in extra})
    return data


def prefixed(state: Mapping[str, Any]) -> tuple[dict[str, Json], dict[str, Json]]:
    """State as ADK's prefixed keys, and the scopes that it does not know."""
    prefixes = {"session": "", **{scope: prefix for prefix, scope in _PREFIXES.items()}}
    known = {
        f"{prefixes[scope]}{key}": value
        for scope, content in state.items()
        if scope in prefixes
        for key, value in content.items()
    }
    return known, {scope: content for scope, content in state.items() if scope not in prefixes}


def put_back(
    data: dict[str, Json], extra: Mapping[str, Json] | None, known: Collection[str] | None = None
) -> None:
    """Put a file's extra fields back where they were, if this shape allows them."""
    for place, value in (extra or {}).items():
        if known is None or (keys_of(place) or [place])[0] in known:
            put(data, place, value)
