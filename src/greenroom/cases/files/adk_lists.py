"""Google ADK's older files: one conversation as a flat list, or a list of named conversations."""

from collections.abc import Mapping, Sequence
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.adk import USUAL, prefixed, put_back, scopes
from greenroom.cases.files.fields import Fields, Gathering
from greenroom.cases.files.ids import foreign_id
from greenroom.cases.files.kept import Calls, calls_in, responses_text, with_extra
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import unquoted
from greenroom.cases.places import at, wrong
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json, is_array, is_object, plain

_SAID = "expected_intermediate_agent_responses"
_USES = "expected_tool_use"


def _first(data: Json) -> dict[str, Json]:
    return data[0] if is_array(data) and data and is_object(data[0]) else {}


# One conversation


def _is_flat(data: Json) -> str | None:
    return "it is a list of mappings with `query`" if "query" in _first(data) else None


def _read_flat(data: Json, stem: str) -> EvalSet:
    gathering = Gathering()
    turns = gathering.each(data, "", _turn)
    gathering.settle()
    return EvalSet(stem, [Case(stem, turns=turns)])


def _write_flat(evalset: EvalSet) -> Json:
    if len(evalset) != 1:
        raise BadFile(f"a flat list holds one case, but {evalset.id!r} has {len(evalset)}.")
    return [_turn_data(turn) for turn in evalset.cases[0].script]


# Several, with names


def _is_named(data: Json) -> str | None:
    first = _first(data)
    if "name" in first and is_array(first.get("data")):
        return "it is a list of mappings with `name` and `data`"
    return None


def _read_named(data: Json, stem: str) -> EvalSet:
    gathering = Gathering()
    cases = gathering.cases(data, "", _case, "name")
    gathering.settle()
    return EvalSet(stem, cases)


def _case(data: Json, place: str) -> Case:
    fields = Fields(data, place)
    case_id, was = foreign_id(fields.text("name"), fields.at("name"))
    turns = [_turn(turn, at(place, "data", i)) for i, turn in enumerate(fields.items("data") or ())]
    session = fields.inner("initial_session")
    state = scopes(session.mapping("state"))
    extra = {**was, **session.rest("initial_session"), **fields.rest()}
    return Case(case_id, turns=turns, state=state, extra=extra or None)


def _write_named(evalset: EvalSet) -> Json:
    return [_case_data(case) for case in evalset.cases]


def _case_data(case: Case) -> dict[str, Json]:
    extra = dict(case.extra or {})
    data: dict[str, Json] = {
        "name": extra.pop("eval_id", case.id),
        "data": [_turn_data(turn) for turn in case.script],
    }
    state, _ = prefixed(case.state)
    if state:
        data["initial_session"] = {"state": plain(state)}
    put_back(data, extra)
    return data


# Turns of both


def _turn(data: Json, place: str) -> Turn:
    fields = Fields(data, place)
    says = fields.text("query")
    if not says.strip():
        raise wrong(fields.at("query"), "the user says nothing")
    return Turn(says, _expect(fields), fields.rest() or None)


def _expect(fields: Fields) -> Expect | None:
    uses, said, reference = fields.items(_USES), fields.items(_SAID), fields.maybe_text("reference")
    if uses is None and said is None and reference is None:
        return None
    texts = responses_text(said or [], fields.at(_SAID))
    return Expect(
        tools=None if uses is None else _calls(uses, fields.at(_USES)),
        reference=reference,
        intermediate=texts or None,
        extra=with_extra(
            _beyond(uses or []), **{_SAID: None if not said or said == _said(texts) else said}
        ),
    )


def _calls(uses: Sequence[Json], place: str) -> Calls:
    for i, use in enumerate(uses):
        if is_object(use) and "tool_input" not in use:
            named = f", but {', '.join(map(repr, use))}" if use else ""
            raise wrong(
                at(place, i),
                f"the call has no `tool_input`{named}",
                "Name the arguments `tool_input`; ADK refuses the file as well",
            )
    return calls_in(list(uses), place, "tool_name", "tool_input")


def _beyond(uses: Sequence[Json]) -> dict[str, Json]:
    known = ("tool_name", "tool_input")
    return {
        at(_USES, i, key): value
        for i, use in enumerate(uses)
        if is_object(use)
        for key, value in use.items()
        if key not in known
    }


def _turn_data(turn: Turn) -> dict[str, Json]:
    data: dict[str, Json] = {"query": turn.says}
    expect = turn.expect or Expect()
    if expect.tools is not None:
        data[_USES] = [_use_data(call) for call in expect.tools]
    kept: Mapping[str, Any] = expect.extra or {}
    if _SAID in kept or expect.intermediate:
        data[_SAID] = kept.get(_SAID) or _said(expect.intermediate or ())
    if expect.reference is not None:
        data["reference"] = expect.reference
    put_back(data, {key: value for key, value in kept.items() if key != _SAID})
    put_back(data, turn.extra)
    return data


def _use_data(call: Any) -> dict[str, Json]:
    if isinstance(call, str):
        return {"tool_name": call, "tool_input": {}}
    return {"tool_name": call.tool, "tool_input": unquoted(call.args)}


def _said(texts: Sequence[str]) -> list[Json]:
    return [{"author": "agent", "text": text} for text in texts]


SHAPES = (
    Shape(
        "adk-flat",
        "a list of mappings with `query`: the turns of one conversation",
        _is_flat,
        _read_flat,
        _write_flat,
        USUAL,
    ),
    Shape(
        "adk-named",
        "a list of mappings with `name` and `data`: conversations by name",
        _is_named,
        _read_named,
        _write_named,
        USUAL,
    ),
)
