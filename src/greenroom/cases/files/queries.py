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
from greenroom.cases.expected import contains_from, text_from
from greenroom.cases.fields import Fields
from greenroom.cases.files.criteria import RESEMBLES, listed_metrics, metric_lists
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import literal, unquoted
from greenroom.cases.names import checked_id, id_trouble
from greenroom.cases.problems import at, shown, wrong
from greenroom.cases.reader import expect_of
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, is_array, is_object, plain

_RECALL = {"mode": "recall"}
_JUDGES = ("final_response_match_v2",)
_SET = ("id", "name", "description", "metadata", "metrics", "thresholds")
_QUERY = (
    "name",
    "query",
    "expected_tool_calls",
    "expected_tool_args",
    "reference_answer",
    "metadata",
)
_SESSION = ("name", "turns", "metadata")
_TURN = ("user", "expected_tools", "expected_response_contains")
_QUERY_MEANS = {
    "says": "query",
    "tools": "expected_tool_calls",
    "args": "expected_tool_args",
    "reference": "reference_answer",
    "response": "reference_answer",
    "contains": "reference_answer",
}
_TURN_MEANS = {
    "says": "user",
    "tools": "expected_tools",
    "contains": "expected_response_contains",
    "reference": "expected_response_contains",
    "response": "expected_response_contains",
}


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
    return _read(Fields(data, "", (*_SET, "data")), stem, "data", _query_case)


def _read_sessions(data: Json, stem: str) -> EvalSet:
    fields = Fields(data, "", (*_SET, "type", "sessions"))
    if (given := fields.take("type")) not in (None, "evalset"):
        fields.remember("type", f"{shown(given)} should be 'evalset'")
    return _read(fields, stem, "sessions", _session_case)


def _read(fields: Fields, stem: str, cases_name: str, read: Any) -> EvalSet:
    cases = fields.cases_by(cases_name, read, "name")
    metrics = listed_metrics(fields)
    set_id, name = fields.problems.part("name", lambda: named(fields, stem), ("", ""))
    parts: dict[str, Any] = {
        "description": fields.text("description"),
        "metadata": fields.mapping("metadata"),
    }
    fields.settle()
    # Metrics under which a reference answer is looked for in the response.
    found = [replace(m, options=_RECALL) if m.name == RESEMBLES else m for m in metrics]
    refers = any(turn.expect and turn.expect.reference for case in cases for turn in case.script)
    if refers and not any(m.name in (RESEMBLES, *_JUDGES) for m in found):
        found.append(Criterion(RESEMBLES, options=_RECALL))
    return EvalSet(set_id, cases, name=name, metrics=found, **parts)


def named(fields: Fields, stem: str) -> tuple[str, str]:
    """The id and the name of a set that has one name for both, unless it gives an id."""
    given, name = fields.text("id"), fields.text("name")
    if given:
        return checked_id(given, "id"), name
    return (name, "") if name and not id_trouble(name) else (stem, name)


def names(evalset: EvalSet) -> dict[str, Json]:
    """The id and name fields of a set."""
    return {"id": evalset.id, "name": evalset.name} if evalset.name else {"name": evalset.id}


def _query_case(data: Json, place: str) -> Case:
    fields = Fields(data, place, _QUERY, _QUERY_MEANS)
    case_id = fields.named("name", _case_id, "unnamed")
    says = _said(fields, "query")
    tools, args = fields.texts("expected_tool_calls"), fields.mapping("expected_tool_args")
    answer = fields.read("reference_answer", text_from, None)
    expect = None
    if tools is not None or args or answer is not None:
        calls = fields.part(lambda: _calls(tools, args, fields), None)
        places = {"tools": "expected_tool_calls", "reference": "reference_answer"}
        expect = expect_of(fields, places, tools=calls, reference=answer)
    metadata = fields.mapping("metadata")
    fields.settle()
    return Case(case_id, says, expect=expect, metadata=metadata)


def _case_id(name: str, place: str) -> str:
    number = place.rpartition("[")[2].partition("]")[0]
    return checked_id(name or f"case_{int(number) + 1}", place)


def _said(fields: Fields, name: str) -> str:
    says = fields.text(name)
    if not says.strip():
        fields.remember(fields.at(name), "the user says nothing")
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
    means = {name: f"turns[].{field}" for name, field in _TURN_MEANS.items()}
    fields = Fields(data, place, _SESSION, means)
    case_id = fields.named("name", _case_id, "unnamed")
    turns, metadata = fields.turns("turns", _turn), fields.mapping("metadata")
    fields.settle()
    return Case(case_id, turns=turns, metadata=metadata)


def _turn(data: Json, place: str) -> Turn:
    fields = Fields(data, place, _TURN, _TURN_MEANS)
    says = _said(fields, "user")
    tools = fields.texts("expected_tools")
    contains = fields.read("expected_response_contains", contains_from, None)
    expect = None
    if tools is not None or contains is not None:
        places = {"tools": "expected_tools", "contains": "expected_response_contains"}
        expect = expect_of(fields, places, tools=tools, contains=contains)
    fields.settle()
    return Turn(says, expect)


# Writing


def _write_queries(evalset: EvalSet) -> Json:
    return _written(evalset, {"data": [_query_data(case) for case in evalset.cases]})


def _write_sessions(evalset: EvalSet) -> Json:
    sessions: list[Json] = [_session_data(case) for case in evalset.cases]
    return {"type": "evalset", **_written(evalset, {"sessions": sessions})}


def _written(evalset: EvalSet, cases: dict[str, Json]) -> dict[str, Json]:
    data = names(evalset)
    if evalset.description:
        data["description"] = evalset.description
    data |= {"metadata": plain(evalset.metadata)} if evalset.metadata else {}
    return {**data, **metric_lists(evalset.metrics), **cases}


def _query_data(case: Case) -> dict[str, Json]:
    data: dict[str, Json] = {"name": case.id, "query": case.script[0].says if case.script else ""}
    expect = (case.script[0].expect if case.script else None) or Expect()
    if expect.tools is not None:
        data["expected_tool_calls"] = [c if isinstance(c, str) else c.tool for c in expect.tools]
        if args := _args_data(expect.tools):
            data["expected_tool_args"] = args
    if expect.reference is not None:
        data["reference_answer"] = expect.reference
    return {**data, **({"metadata": plain(case.metadata)} if case.metadata else {})}


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
    return {**data, **({"metadata": plain(case.metadata)} if case.metadata else {})}


def _turn_data(turn: Turn) -> dict[str, Json]:
    data: dict[str, Json] = {"user": turn.says}
    expect = turn.expect or Expect()
    if expect.tools is not None:
        data["expected_tools"] = [c if isinstance(c, str) else c.tool for c in expect.tools]
    if expect.contains is not None:
        data["expected_response_contains"] = plain(expect.contains)
    return data


QUERIES = Shape(
    "queries",
    "a mapping with `data`: a list of mappings with `query`",
    _is_queries,
    _read_queries,
    _write_queries,
    lists=("data", ""),
    names=(*_SET, "data", *_QUERY),
)
SESSIONS = Shape(
    "sessions",
    "a mapping with `sessions`: a list of mappings with `turns`",
    _is_sessions,
    _read_sessions,
    _write_sessions,
    lists=("sessions", "turns"),
    names=(*_SET, "type", "sessions", *_SESSION, *_TURN),
)
