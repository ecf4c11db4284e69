"""AgentFlow's eval sets: similar to ADK's, with `expected_...` fields and messages of blocks.

There an empty or missing trajectory says nothing about calls, so it says nothing here.
"""

from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import Fields, without_nulls
from greenroom.cases.files.adk import turns_of
from greenroom.cases.files.originals import (
    calls_in,
    put_back,
    reference_in,
    responses_text,
    said_in,
    session_data,
    session_extra,
    with_extra,
)
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import unquoted
from greenroom.cases.names import foreign_id
from greenroom.cases.problems import at, keys_of, shown, wrong
from greenroom.ledger.plain import Json, is_array, is_object, plain

_PATH, _FINAL = "expected_tool_trajectory", "expected_final_response"
_SAID, _NODES = "expected_intermediate_responses", "expected_node_order"
_SET = ("eval_set_id", "name", "description", "metadata", "eval_cases")
_CASE = (
    "eval_id",
    "name",
    "description",
    "tags",
    "metadata",
    "conversation",
    "session_input",
    "creation_timestamp",
)
_TURN = ("invocation_id", "user_content", _PATH, _SAID, _FINAL, _NODES, "metadata")
_SESSION = ("app_name", "user_id", "session_id", "state", "config")
_MORE_OF_A_CALL = ("call_id", "result")
_MEANS = {
    "says": "user_content",
    "tools": _PATH,
    "args": f"{_PATH}[].args",
    "reference": _FINAL,
    "response": _FINAL,
    "intermediate": _SAID,
}


def _recognises(data: Json) -> str | None:
    listed = data.get("eval_cases") if is_object(data) else None
    if not is_array(listed):
        return None
    for turn in turns_of([case for case in listed if is_object(case)]):
        content = turn.get("user_content")
        if isinstance(content, str) or (is_object(content) and "content" in content):
            return "it has `eval_cases` whose messages have `content`"
        for name in (_PATH, _FINAL, _SAID):
            if name in turn:
                return f"it has `eval_cases` with `{name}`"
    return None


def _read(data: Json, stem: str) -> EvalSet:
    fields = Fields(data, "", _SET)
    cases = fields.cases_by("eval_cases", _case, "eval_id")
    given = fields.text("eval_set_id", stem)
    set_id, was = fields.part(lambda: foreign_id(given, "eval_set_id", "eval_set_id"), (stem, {}))
    parts: dict[str, Any] = {
        "name": fields.text("name"),
        "description": fields.text("description"),
        "metadata": fields.mapping("metadata"),
    }
    fields.settle()
    return EvalSet(set_id, cases, extra=was or None, **parts)


def _case(data: Json, place: str) -> Case:
    means = {name: f"conversation[].{field}" for name, field in _MEANS.items()}
    fields = Fields(data, place, _CASE, means)
    case_id, was = fields.named("eval_id", foreign_id, ("unnamed", {}))
    turns = fields.turns("conversation", _turn)
    session = fields.inner("session_input", _SESSION)
    state = session.mapping("state")
    parts: dict[str, Any] = {
        "name": fields.text("name"),
        "description": fields.text("description"),
        "tags": fields.texts("tags") or (),
        "metadata": fields.mapping("metadata"),
    }
    extra = {**was, **session_extra(session, state), **fields.rest()}
    session.refuse_others()
    fields.settle()
    scopes = {"session": state} if state else {}
    return Case(case_id, turns=turns, state=scopes, extra=extra or None, **parts)


def _turn(data: Json, place: str) -> Turn:
    fields = Fields(data, place, _TURN, _MEANS)
    content = without_nulls(fields.take("user_content"))
    says = fields.part(lambda: said_in(content, fields.at("user_content")), "")
    expect = fields.part(lambda: _expect(fields), None)
    if fields.take(_NODES):
        fix = "Leave it out, and measure `node_sequence`"
        fields.remember(at(place, _NODES), "the order of nodes is not part of a turn here", fix)
    index = int(place.rpartition("[")[2].rstrip("]"))
    number = fields.take("invocation_id")
    extra = fields.rest()
    if number not in (None, _number(index)):
        extra["invocation_id"] = number
    kept = None if content == _message(says, "user") else content
    fields.settle()
    return Turn(says, expect, with_extra(extra, user_content=kept))


def _expect(fields: Fields) -> Expect | None:
    path, said = fields.items(_PATH), without_nulls(fields.items(_SAID))
    final = without_nulls(fields.take(_FINAL))
    if not path and not said and final is None:
        return None
    problems, place = fields.problems, fields.at(_FINAL)
    texts = problems.part(
        fields.at(_SAID), lambda: responses_text(said or [], fields.at(_SAID)), []
    )
    reference = problems.part(place, lambda: _reference(final, place), None)
    tools = problems.part(
        fields.at(_PATH),
        lambda: calls_in(path, fields.at(_PATH), more=_MORE_OF_A_CALL) if path else None,
        None,
    )
    usual = _message(reference or "", "assistant")
    beyond: dict[str, Json] = {
        at(_PATH, i, key): value
        for i, call in enumerate(path or ())
        if is_object(call)
        for key, value in call.items()
        if key in _MORE_OF_A_CALL and value is not None
    }
    originals = {
        _FINAL: None if reference and final == usual else final,
        _SAID: None if not said or said == _said(texts) else said,
    }
    return Expect(
        tools=tools,
        reference=reference,
        intermediate=texts or None,
        extra=with_extra(beyond, **originals),
    )


def _reference(final: Json, place: str) -> str | None:
    """The text of the expected response; one with only pictures is kept, and expects no text."""
    reference = None if final is None else reference_in(final, place)
    content = final.get("content") if is_object(final) else final
    blocks = [block for block in content if is_object(block)] if is_array(content) else []
    if final is not None and not (reference or "").strip() and not blocks:
        raise wrong(place, f"{shown(final)} checks nothing", "Write a string, or leave it out")
    return reference


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
    put_back(data, extra, _SET)
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
    for place in list(extra):
        first, *rest = keys_of(place) or [place]
        if first == "session_input" and rest and rest[0] not in _SESSION:
            del extra[place]
    put_back(data, extra, _CASE)
    return data


def _turn_data(turn: Turn, index: int) -> dict[str, Json]:
    extra = dict(turn.extra or {})
    data: dict[str, Json] = {
        "invocation_id": extra.pop("invocation_id", _number(index)),
        "user_content": _message(turn.says, "user"),
    }
    kept_content = extra.pop("user_content", None)
    if isinstance(kept_content, str) or (is_object(kept_content) and "content" in kept_content):
        data["user_content"] = kept_content
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
    put_back(data, kept, (_PATH,))
    put_back(data, extra, _TURN)
    return data


def _message(text: str, role: str) -> dict[str, Json]:
    return {"role": role, "content": [{"type": "text", "text": text}]}


def _said(texts: Any) -> list[Json]:
    return [_message(text, "assistant") for text in texts]


_USUAL = (Criterion("tool_trajectory_avg_score"), Criterion("response_match_score"))
SHAPE = Shape(
    "agentflow",
    "a mapping with `eval_cases` whose messages have `content`, or with `expected_...` fields",
    _recognises,
    _read,
    _write,
    _USUAL,
    ("eval_cases", "conversation"),
    names=(*_SET, *_CASE, *_TURN, *_SESSION, "content"),
)
