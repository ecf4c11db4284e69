"""AgentFlow's eval sets: like ADK's to look at, with `expected_...` fields and messages of blocks.

There an empty or missing trajectory says nothing about calls, so it says nothing here.
"""

from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.adk import put_back, session_data, session_extra, turns_of
from greenroom.cases.files.fields import Fields, Gathering, without_nulls
from greenroom.cases.files.ids import foreign_id
from greenroom.cases.files.kept import (
    calls_in,
    message_text,
    reference_in,
    responses_text,
    with_extra,
)
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import unquoted
from greenroom.cases.places import at, wrong
from greenroom.ledger.plain import Json, is_array, is_object, plain

_PATH, _FINAL = "expected_tool_trajectory", "expected_final_response"
_SAID = "expected_intermediate_responses"


def _recognises(data: Json) -> str | None:
    if not is_object(data) or not is_array(data.get("eval_cases")):
        return None
    for turn in turns_of([case for case in data["eval_cases"] if is_object(case)]):
        content = turn.get("user_content")
        if isinstance(content, str) or (is_object(content) and "content" in content):
            return "it has `eval_cases` whose messages have `content`"
        for name in (_PATH, _FINAL, _SAID):
            if name in turn:
                return f"it has `eval_cases` with `{name}`"
    return None


def _read(data: Json, stem: str) -> EvalSet:
    gathering = Gathering()
    fields = Fields(data, "")
    cases = gathering.cases(fields.cases("eval_cases"), "eval_cases", _case, "eval_id")
    given = fields.text("eval_set_id", stem)
    set_id, was = gathering.part(
        "eval_set_id", lambda: foreign_id(given, "eval_set_id", "eval_set_id"), (given, {})
    )
    name = gathering.part("name", lambda: fields.text("name"), "")
    description = gathering.part("description", lambda: fields.text("description"), "")
    metadata = gathering.part("metadata", lambda: fields.mapping("metadata"), {})
    gathering.settle()
    extra = {**was, **fields.rest()}
    told: dict[str, Any] = {"name": name, "description": description, "metadata": metadata}
    return EvalSet(set_id, cases, extra=extra or None, **told)


def _case(data: Json, place: str) -> Case:
    fields = Fields(data, place)
    case_id, was = foreign_id(fields.text("eval_id"), fields.at("eval_id"))
    conversation = fields.items("conversation")
    if conversation is None:
        raise wrong(place, "the case has no `conversation`")
    turns = [_turn(turn, at(place, "conversation", i), i) for i, turn in enumerate(conversation)]
    session = fields.inner("session_input")
    state = session.mapping("state")
    told: dict[str, Any] = {
        "name": fields.text("name"),
        "description": fields.text("description"),
        "tags": fields.texts("tags") or (),
        "metadata": fields.mapping("metadata"),
    }
    extra = {**was, **session_extra(session, state), **fields.rest()}
    scopes = {"session": state} if state else {}
    return Case(case_id, turns=turns, state=scopes, extra=extra or None, **told)


def _turn(data: Json, place: str, index: int) -> Turn:
    fields = Fields(data, place)
    content = without_nulls(fields.take("user_content"))
    if content is None:
        raise wrong(at(place, "user_content"), "it is missing: the user says nothing")
    says = message_text(content, at(place, "user_content"))
    if not says.strip():
        raise wrong(at(place, "user_content"), "it has no text for the user to say")
    expect = _expect(fields)
    number = fields.take("invocation_id")
    extra = fields.rest()
    if number not in (None, _number(index)):
        extra["invocation_id"] = number
    kept = None if content == _message(says, "user") else content
    return Turn(says, expect, with_extra(extra, user_content=kept))


def _expect(fields: Fields) -> Expect | None:
    path, said = fields.items(_PATH), without_nulls(fields.items(_SAID))
    final = without_nulls(fields.take(_FINAL))
    if not path and not said and final is None:
        return None
    texts = responses_text(said or [], fields.at(_SAID))
    reference = None if final is None else reference_in(final, fields.at(_FINAL))
    usual = _message(reference or "", "assistant")
    beyond = {
        at(_PATH, i, key): value
        for i, call in enumerate(path or ())
        if is_object(call)
        for key, value in call.items()
        if key not in ("name", "args") and value is not None
    }
    originals = {
        _FINAL: None if reference and final == usual else final,
        _SAID: None if not said or said == _said(texts) else said,
    }
    return Expect(
        tools=calls_in(path, fields.at(_PATH)) if path else None,
        reference=reference,
        intermediate=texts or None,
        extra=with_extra(beyond, **originals),
    )


def _number(index: int) -> str:
    return f"inv_{index + 1:03d}"


def _write(evalset: EvalSet) -> Json:
    extra = dict(evalset.extra or {})
    data: dict[str, Json] = {
        "eval_set_id": extra.pop("eval_set_id", evalset.id),
        "name": evalset.name,
        "description": evalset.description,
        "eval_cases": [_case_data(case) for case in evalset.cases],
    }
    if evalset.metadata:
        data["metadata"] = plain(evalset.metadata)
    put_back(data, extra)
    return data


def _case_data(case: Case) -> dict[str, Json]:
    extra = dict(case.extra or {})
    data: dict[str, Json] = {
        "eval_id": extra.pop("eval_id", case.id),
        "name": case.name,
        "description": case.description,
        "tags": list(case.tags),
        "metadata": plain(case.metadata),
    }
    data = {name: value for name, value in data.items() if value}
    data["conversation"] = [_turn_data(turn, i) for i, turn in enumerate(case.script)]
    data |= session_data(case.state.get("session", {}), extra)
    put_back(data, extra)
    return data


def _turn_data(turn: Turn, index: int) -> dict[str, Json]:
    extra = dict(turn.extra or {})
    data: dict[str, Json] = {
        "invocation_id": extra.pop("invocation_id", _number(index)),
        "user_content": extra.pop("user_content", None) or _message(turn.says, "user"),
    }
    expect = turn.expect or Expect()
    kept = dict(expect.extra or {})
    if expect.tools:
        data[_PATH] = [
            {"name": call}
            if isinstance(call, str)
            else {"name": call.tool, "args": unquoted(call.args)}
            for call in expect.tools
        ]
    if _SAID in kept or expect.intermediate:
        data[_SAID] = kept.pop(_SAID, None) or _said(expect.intermediate or ())
    if _FINAL in kept or expect.reference is not None:
        data[_FINAL] = kept.pop(_FINAL, None) or _message(expect.reference or "", "assistant")
    put_back(data, kept)
    put_back(data, extra)
    return data


def _message(text: str, role: str) -> dict[str, Json]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _said(texts: Any) -> list[Json]:
    return [_message(text, "assistant") for text in texts]


_USUAL = (Criterion("tool_trajectory_avg_score"), Criterion("response_match_score"))
SHAPES = (
    Shape(
        "agentflow",
        "a mapping with `eval_cases` whose messages have `content`, or with `expected_...` fields",
        _recognises,
        _read,
        _write,
        _USUAL,
    ),
)
