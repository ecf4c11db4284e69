"""Google ADK's older files: one conversation as a flat list, or a list of named conversations."""

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import Fields, ProblemList, refuse_silence
from greenroom.cases.files.adk import USUAL
from greenroom.cases.files.originals import (
    Calls,
    calls_in,
    prefixed,
    put_back,
    responses_text,
    scopes,
    with_extra,
)
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import unquoted
from greenroom.cases.names import foreign_id, near_name
from greenroom.cases.problems import at, wrong
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json, is_array, is_object, plain

_SAID = "expected_intermediate_agent_responses"
_USES = "expected_tool_use"
_TURN = ("query", _USES, _SAID, "reference")
_CASE = ("name", "data", "initial_session", "initial_state")
_SESSION = ("state", "app_name", "user_id", "session_id")
_MORE_OF_A_USE = ("mock_tool_output",)
_MEANS = {
    "says": "query",
    "tools": _USES,
    "args": f"{_USES}[].tool_input",
    "reference": "reference",
    "response": "reference",
    "intermediate": _SAID,
}


def _first(data: Json) -> dict[str, Json]:
    return data[0] if is_array(data) and data and is_object(data[0]) else {}


# One conversation


def _is_flat(data: Json) -> str | None:
    return "it is a list of mappings with `query`" if "query" in _first(data) else None


def _read_flat(data: Json, stem: str) -> EvalSet:
    problems = ProblemList()
    turns = problems.each(data, "", _turn)
    problems.settle()
    case = Case(stem, turns=turns)
    refuse_silence(case, "")
    return EvalSet(stem, [case])


def _write_flat(evalset: EvalSet) -> Json:
    if not evalset.cases:
        raise BadFile(f"a flat list holds one case, but {evalset.id!r} has none.")
    return [_turn_data(turn) for turn in evalset.cases[0].script]


# Several, with names


def _is_named(data: Json) -> str | None:
    first = _first(data)
    if "name" in first and is_array(first.get("data")):
        return "it is a list of mappings with `name` and `data`"
    return None


def _read_named(data: Json, stem: str) -> EvalSet:
    problems = ProblemList()
    cases = problems.cases(data, "", _case, "name")
    problems.settle()
    return EvalSet(stem, cases)


def _case(data: Json, place: str) -> Case:
    fields = Fields(data, place, _CASE, {name: f"data[].{where}" for name, where in _MEANS.items()})
    case_id, was = fields.named("name", foreign_id, ("unnamed", {}))
    turns = fields.turns("data", _turn)
    session = fields.inner("initial_session", _SESSION)
    state = scopes(session.mapping("state"))
    # Under the name of such a session in ADK's newer files, so that it can be written to them.
    extra = {**was, **session.rest("session_input")}
    extra |= fields.read("initial_state", _unread_state, {})
    session.refuse_others()
    fields.settle()
    return Case(case_id, turns=turns, state=state, extra=extra or None)


def _unread_state(data: Json, place: str) -> dict[str, Json]:
    """A field that some old files have and ADK never reads: kept if it is empty."""
    if is_object(data) and not any(data.values()):
        return {"initial_state": data}
    message = "ADK does not read it, so the case would begin without this state"
    raise wrong(place, message, "Write it as `initial_session: {state: ...}`")


def _case_data(case: Case) -> dict[str, Json]:
    extra = dict(case.extra or {})
    data: dict[str, Json] = {
        "name": extra.pop("eval_id", case.id),
        "data": [_turn_data(turn) for turn in case.script],
    }
    state, _ = prefixed(case.state)
    if state:
        data["initial_session"] = {"state": plain(state)}
    known = {place.replace("session_input", "initial_session", 1): extra[place] for place in extra}
    put_back(data, known, _CASE)
    return data


# Turns of both


def _turn(data: Json, place: str) -> Turn:
    fields = Fields(data, place, _TURN, _MEANS)
    says = fields.text("query")
    if not says.strip():
        fields.remember(fields.at("query"), "the user says nothing")
    expect = fields.part(lambda: _expect(fields), None)
    fields.settle()
    return Turn(says, expect)


def _expect(fields: Fields) -> Expect | None:
    uses, said = fields.items(_USES), fields.items(_SAID)
    reference = fields.maybe_text("reference")
    if uses is None and said is None and reference is None:
        return None
    texts = fields.problems.part(
        fields.at(_SAID), lambda: responses_text(said or [], fields.at(_SAID)), []
    )
    tools = fields.problems.part(fields.at(_USES), lambda: _calls(uses, fields.at(_USES)), None)
    texts = [text for text in texts if text.strip()]
    return Expect(
        tools=tools,
        # ADK treats an empty answer as a missing one.
        reference=((reference or "").strip() and reference) or None,
        intermediate=texts or None,
        extra=with_extra(
            _beyond(uses or []), **{_SAID: None if not said or said == _said(texts) else said}
        ),
    )


def _calls(uses: Sequence[Json] | None, place: str) -> Calls | None:
    if uses is None:
        return None
    for i, use in enumerate(uses):
        if is_object(use) and not any(near_name(key, ("tool_input",)) for key in use):
            named = f", but {', '.join(map(repr, use))}" if use else ""
            raise wrong(
                at(place, i),
                f"the call has no `tool_input`{named}",
                "Name the arguments `tool_input`; ADK refuses the file too",
            )
    return calls_in(list(uses), place, "tool_name", "tool_input", _MORE_OF_A_USE)


def _beyond(uses: Sequence[Json]) -> dict[str, Json]:
    return {
        at(_USES, i, key): value
        for i, use in enumerate(uses)
        if is_object(use)
        for key, value in use.items()
        if key in _MORE_OF_A_USE
    }


def _turn_data(turn: Turn) -> dict[str, Json]:
    data: dict[str, Json] = {"query": turn.says}
    expect = turn.expect or Expect()
    if expect.tools is not None:
        data[_USES] = [_use_data(call) for call in expect.tools]
    kept: Mapping[str, Json] = expect.extra or {}
    if _SAID in kept or expect.intermediate:
        data[_SAID] = kept.get(_SAID) or _said(expect.intermediate or ())
    if expect.reference is not None:
        data["reference"] = expect.reference
    put_back(data, {key: value for key, value in kept.items() if key != _SAID}, (_USES,))
    return data


def _use_data(call: Any) -> dict[str, Json]:
    if isinstance(call, str):
        return {"tool_name": call, "tool_input": {}}
    return {"tool_name": call.tool, "tool_input": unquoted(call.args)}


def _said(texts: Sequence[str]) -> list[Json]:
    return [{"author": "agent", "text": text} for text in texts]


FLAT = Shape(
    "adk-flat",
    "a list of mappings with `query`: the turns of one conversation",
    _is_flat,
    _read_flat,
    _write_flat,
    USUAL,
    ("", ""),
    names=_TURN,
    called_by_file="case",
)
NAMED = Shape(
    "adk-named",
    "a list of mappings with `name` and `data`: conversations by name",
    _is_named,
    _read_named,
    lambda evalset: [_case_data(case) for case in evalset.cases],
    USUAL,
    ("", "data"),
    names=(*_CASE, *_TURN),
    called_by_file="set",
)
