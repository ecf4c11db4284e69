"""Test files by query, `<agent>.test.json`, and conversations in sessions, `type: "evalset"`.

An empty list of tools allows no call. A reference answer is a part of what is expected, so it is
looked for in the response: recall, not F1.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.cases.files.adk import put_back
from greenroom.cases.files.criteria import RESEMBLES, listed_metrics, metric_lists
from greenroom.cases.files.fields import Fields, Gathering
from greenroom.cases.files.ids import checked_id, id_trouble
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import literal, unquoted
from greenroom.cases.places import at, shown, wrong
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, is_array, is_object, plain

_RECALL = {"mode": "recall"}
_JUDGES = ("final_response_match_v2",)


def _is_queries(data: Json) -> str | None:
    listed = data.get("data") if is_object(data) else None
    if is_array(listed) and (not listed or any(is_object(i) and "query" in i for i in listed)):
        return "it has `data` with a `query` each"
    return None


def _is_sessions(data: Json) -> str | None:
    if is_object(data) and is_array(data.get("sessions")):
        return "it has `sessions`"
    return None


def _read_queries(data: Json, stem: str) -> EvalSet:
    return _read(data, stem, "data", _query_case)


def _read_sessions(data: Json, stem: str) -> EvalSet:
    given = Fields(data, "").take("type")
    if given not in (None, "evalset"):
        raise wrong("type", f"{shown(given)} should be 'evalset'")
    rest = {key: value for key, value in data.items() if key != "type"}
    return _read(rest, stem, "sessions", _session_case)


def _read(data: Json, stem: str, cases_name: str, read: Any) -> EvalSet:
    gathering = Gathering()
    fields = Fields(data, "")
    cases = gathering.cases(fields.cases(cases_name), cases_name, read, "name")
    metrics = gathering.part("metrics", lambda: listed_metrics(fields), [])
    set_id, name = gathering.part("name", lambda: named(fields, stem), ("", ""))
    description = gathering.part("description", lambda: fields.text("description"), "")
    gathering.settle()
    return EvalSet(
        set_id,
        cases,
        name=name,
        description=description,
        metrics=_with_recall(metrics, cases),
        extra=fields.rest() or None,
    )


def named(fields: Fields, stem: str) -> tuple[str, str]:
    """The id and the name of a set that has one name for both, unless it gives an id."""
    given, name = fields.text("id"), fields.text("name")
    if given:
        return checked_id(given, "id"), name
    return (name, "") if name and not id_trouble(name) else (stem, name)


def names(evalset: EvalSet) -> dict[str, Json]:
    """The same again."""
    return {"id": evalset.id, "name": evalset.name} if evalset.name else {"name": evalset.id}


def _with_recall(metrics: list[Criterion], cases: Sequence[Case]) -> list[Criterion]:
    """Metrics under which a reference answer is looked for in the response."""
    found = [replace(m, options=_RECALL) if m.name == RESEMBLES else m for m in metrics]
    refers = any(turn.expect and turn.expect.reference for case in cases for turn in case.script)
    if refers and not any(m.name in (RESEMBLES, *_JUDGES) for m in found):
        found.append(Criterion(RESEMBLES, options=_RECALL))
    return found


def _query_case(data: Json, place: str) -> Case:
    fields = Fields(data, place)
    case_id = _case_id(fields)
    says = _said(fields, "query")
    tools, args = fields.texts("expected_tool_calls"), fields.mapping("expected_tool_args")
    answer = fields.maybe_text("reference_answer")
    expect = None
    if tools is not None or args or answer is not None:
        expect = Expect(tools=_calls(tools, args, fields), reference=answer)
    return Case(case_id, says, expect=expect, extra=fields.rest() or None)


def _case_id(fields: Fields) -> str:
    number = fields.place.rpartition("[")[2].rstrip("]")
    return checked_id(fields.text("name") or f"case_{int(number) + 1}", fields.at("name"))


def _said(fields: Fields, name: str) -> str:
    says = fields.text(name)
    if not says.strip():
        raise wrong(fields.at(name), "the user says nothing")
    return says


def _calls(
    tools: list[str] | None, args: Mapping[str, Json], fields: Fields
) -> list[ToolCall | str] | None:
    """Calls in order; arguments are given by tool, one mapping for all its calls or one for each."""
    for tool in args:
        if tool not in (tools or ()):
            place = fields.at("expected_tool_args", tool)
            raise wrong(place, f"{shown(tool)} is not among `expected_tool_calls`", "Add it there")
    if tools is None:
        return None
    seen: dict[str, int] = {}
    calls: list[ToolCall | str] = []
    for tool in tools:
        number = seen[tool] = seen.get(tool, -1) + 1
        calls.append(_call(tool, args.get(tool), number, fields.at("expected_tool_args", tool)))
    return calls


def _call(tool: str, args: Json, number: int, place: str) -> ToolCall | str:
    if is_array(args):
        if number >= len(args):
            raise wrong(place, f"there are fewer arguments than calls of {shown(tool)}")
        args, place = args[number], at(place, number)
    if args is None:
        return tool
    if not is_object(args):
        raise wrong(place, f"{shown(args)} should be a mapping")
    return ToolCall(tool, literal(args))


def _session_case(data: Json, place: str) -> Case:
    fields = Fields(data, place)
    case_id = _case_id(fields)
    turns = [
        _turn(turn, at(place, "turns", i)) for i, turn in enumerate(fields.items("turns") or ())
    ]
    return Case(case_id, turns=turns, extra=fields.rest() or None)


def _turn(data: Json, place: str) -> Turn:
    fields = Fields(data, place)
    says = _said(fields, "user")
    tools, contains = fields.texts("expected_tools"), fields.take("expected_response_contains")
    expect = None
    if tools is not None or contains is not None:
        expect = Expect(tools=tools, contains=contains)
    return Turn(says, expect, fields.rest() or None)


# Writing


def _write_queries(evalset: EvalSet) -> Json:
    return _written(evalset, {"data": [_query_data(case) for case in evalset.cases]})


def _write_sessions(evalset: EvalSet) -> Json:
    sessions = [_session_data(case) for case in evalset.cases]
    return {"type": "evalset", **_written(evalset, {"sessions": sessions})}


def _written(evalset: EvalSet, cases: dict[str, Json]) -> dict[str, Json]:
    data = names(evalset)
    if evalset.description:
        data["description"] = evalset.description
    data |= {**metric_lists(evalset.metrics), **cases}
    put_back(data, evalset.extra)
    return data


def _query_data(case: Case) -> dict[str, Json]:
    data: dict[str, Json] = {"name": case.id, "query": case.script[0].says if case.script else ""}
    expect = (case.script[0].expect if case.script else None) or Expect()
    if expect.tools is not None:
        data["expected_tool_calls"] = [c if isinstance(c, str) else c.tool for c in expect.tools]
        if args := _args_data(expect.tools):
            data["expected_tool_args"] = args
    if expect.reference is not None:
        data["reference_answer"] = expect.reference
    put_back(data, case.extra)
    return data


def _args_data(tools: Sequence[ToolCall | str]) -> dict[str, Json]:
    """Arguments by tool: one mapping if all its calls have the same, else one for each call."""
    given: dict[str, list[Json]] = {}
    for call in tools:
        name, args = (call, None) if isinstance(call, str) else (call.tool, unquoted(call.args))
        given.setdefault(name, []).append(args)
    return {
        tool: args[0] if all(one == args[0] for one in args) else args
        for tool, args in given.items()
        if any(one is not None for one in args)
    }


def _session_data(case: Case) -> dict[str, Json]:
    data: dict[str, Json] = {"name": case.id, "turns": [_turn_data(turn) for turn in case.script]}
    put_back(data, case.extra)
    return data


def _turn_data(turn: Turn) -> dict[str, Json]:
    data: dict[str, Json] = {"user": turn.says}
    expect = turn.expect or Expect()
    if expect.tools is not None:
        data["expected_tools"] = [c if isinstance(c, str) else c.tool for c in expect.tools]
    if expect.contains is not None:
        data["expected_response_contains"] = plain(expect.contains)
    put_back(data, turn.extra)
    return data


SHAPES = (
    Shape(
        "queries",
        "a mapping with `data`: a list of mappings with `query`",
        _is_queries,
        _read_queries,
        _write_queries,
    ),
    Shape(
        "sessions",
        "a mapping with `sessions`: a list of mappings with `turns`",
        _is_sessions,
        _read_sessions,
        _write_sessions,
    ),
)
