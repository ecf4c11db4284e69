"""What a foreign file says in more words than a case needs: kept, and written back while it is true.

A message may be blocks of many types; a case needs its text. The original is kept in `extra` under
its own name. It goes back into a file as long as it still says what the case says.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.evalset import EvalSet
from greenroom.cases.literals import literal
from greenroom.cases.places import at, shown, wrong
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, is_array, is_object

Calls = Sequence[ToolCall | str]


def message_text(message: Json, place: str) -> str:
    """The text of a message: a text itself, or the texts among its `content` or `parts`."""
    if isinstance(message, str):
        return message
    if not is_object(message):
        raise wrong(place, f"{shown(message)} should be a message with `content` or `parts`")
    name = "parts" if "parts" in message else "content"
    content = message.get(name)
    if isinstance(content, str):
        return content
    if not is_array(content):
        raise wrong(at(place, name), f"{shown(content)} should be a text or a list of blocks")
    texts = [_block_text(block, at(place, name, i)) for i, block in enumerate(content)]
    return "\n".join(text for text in texts if text)


def _block_text(block: Json, place: str) -> str:
    if isinstance(block, str):
        return block
    if not is_object(block):
        raise wrong(place, f"{shown(block)} should be a block of a message")
    text = block.get("text")
    if text is None:
        return ""
    if not isinstance(text, str):
        raise wrong(at(place, "text"), f"{shown(text)} should be a text")
    return text


def responses_text(responses: Json, place: str) -> list[str]:
    """The texts of a list of messages."""
    if not is_array(responses):
        raise wrong(place, f"{shown(responses)} should be a list")
    return [_response_text(item, at(place, i)) for i, item in enumerate(responses)]


def _response_text(response: Json, place: str) -> str:
    """An author with parts, an author with a text, or a message."""
    if is_array(response) and len(response) == 2 and is_array(response[1]):
        return message_text({"parts": response[1]}, place)
    if is_object(response) and "text" in response:
        return _block_text(response, place)
    return message_text(response, place)


def calls_in(uses: Json, place: str, tool: str = "name", args: str = "args") -> Calls:
    """Expected calls from a list of mappings; one that says nothing of its arguments is a name."""
    if not is_array(uses):
        raise wrong(place, f"{shown(uses)} should be a list of calls")
    return [_call(use, at(place, i), tool, args) for i, use in enumerate(uses)]


def _call(use: Json, place: str, tool: str, args: str) -> ToolCall | str:
    if not is_object(use):
        raise wrong(place, f"{shown(use)} should be a mapping with `{tool}` and `{args}`")
    name, given = use.get(tool), use.get(args)
    if not isinstance(name, str) or not name:
        raise wrong(at(place, tool), f"{shown(name)} should be the name of a tool")
    if given is None:
        return name
    if not is_object(given):
        raise wrong(at(place, args), f"{shown(given)} should be a mapping")
    return ToolCall(name, literal(given))


def steps_in(data: Json, place: str) -> tuple[Calls, list[str]]:
    """The calls and the texts on the way to a response, listed apart or as events."""
    if not is_object(data):
        raise wrong(place, f"{shown(data)} should be a mapping")
    if "invocation_events" in data:
        return _steps_in_events(data["invocation_events"], at(place, "invocation_events"))
    calls = calls_in(data.get("tool_uses", []), at(place, "tool_uses"))
    said = data.get("intermediate_responses", [])
    return calls, responses_text(said, at(place, "intermediate_responses"))


def _steps_in_events(events: Json, place: str) -> tuple[Calls, list[str]]:
    if not is_array(events):
        raise wrong(place, f"{shown(events)} should be a list")
    calls: list[ToolCall | str] = []
    texts: list[str] = []
    for i, event in enumerate(events):
        content = event.get("content") if is_object(event) else None
        parts = content.get("parts") if is_object(content) else None
        for part in parts if is_array(parts) else ():
            if is_object(part) and is_object(part.get("function_call")):
                calls.append(_call(part["function_call"], at(place, i), "name", "args"))
            elif is_object(part) and isinstance(part.get("text"), str):
                texts.append(part["text"])
    return calls, texts


# Whether what was kept still says what the case says


def still_says(kept: Json, said: Any, read: Callable[[Json, str], Any]) -> bool:
    """Whether reading the kept original gives what the case says now."""
    return read(kept, "") == said


def reference_in(message: Json, place: str) -> str | None:
    """The text of an expected response; one without any says nothing."""
    return message_text(message, place) or None


def _steps_said(expect: Expect) -> Any:
    return list(expect.tools or ()), list(expect.intermediate or ())


def _steps_read(data: Json, place: str) -> Any:
    calls, texts = steps_in(data, place)
    return list(calls), texts


_EXPECTED: dict[str, tuple[Callable[[Expect], Any], Callable[[Json, str], Any]]] = {
    "final_response": (lambda expect: expect.reference, reference_in),
    "expected_final_response": (lambda expect: expect.reference, reference_in),
    "intermediate_data": (_steps_said, _steps_read),
    "expected_intermediate_responses": (lambda e: list(e.intermediate or ()), responses_text),
    "expected_intermediate_agent_responses": (lambda e: list(e.intermediate or ()), responses_text),
}


def settled(evalset: EvalSet) -> EvalSet:
    """The set without originals that do not say any more what its cases say."""
    return replace(evalset, cases=[_settled_case(case) for case in evalset.cases])


def _settled_case(case: Case) -> Case:
    if not any(turn.extra or (turn.expect and turn.expect.extra) for turn in case.turns):
        return case
    return replace(case, turns=[_settled_turn(turn) for turn in case.turns])


def _settled_turn(turn: Turn) -> Turn:
    extra = dict(turn.extra or {})
    if "user_content" in extra and not still_says(extra["user_content"], turn.says, message_text):
        del extra["user_content"]
    expect = turn.expect
    if expect is not None and expect.extra:
        expect = replace(expect, extra=_true_extra(expect) or None)
    return replace(turn, expect=expect, extra=extra or None)


def _true_extra(expect: Expect) -> dict[str, Json]:
    kept = dict(expect.extra or {})
    for name, (said, read) in _EXPECTED.items():
        if name in kept and not still_says(kept[name], said(expect), read):
            del kept[name]
    return kept


def with_extra(extra: dict[str, Json], **originals: Json) -> dict[str, Json] | None:
    """Extra fields, with the originals among these that say more than needed; None if empty."""
    extra = {**extra, **{name: kept for name, kept in originals.items() if kept is not None}}
    return extra or None
