"""Cases read from data: a ledger's first event, or one entry of a file.

Every problem has its place, and all problems of a case are raised at once. An unknown field is refused;
what other tools keep next to a case goes under `extra`.
"""

from collections.abc import Mapping
from dataclasses import fields as fields_of
from functools import partial
from typing import Any, cast

from greenroom.cases.attachments import attachment_from, with_attachments
from greenroom.cases.case import EXPECTATIONS, Case, Expect, Stop, Turn
from greenroom.cases.criteria import Criterion, criterion_from
from greenroom.cases.expected import (
    REFUSALS,
    contains_from,
    placed,
    seconds_limit,
    state_from,
    states_from,
    text_from,
    texts_from,
    turns_limit,
)
from greenroom.cases.fields import Fields, ProblemList, blank_words, empty_expectation, only
from greenroom.cases.liveness import LIVE_FIELDS, is_code, is_live, queries_with_code
from greenroom.cases.mock_reader import mocks_from
from greenroom.cases.names import (
    is_expectation,
    meant_by,
    name_and_details,
    near_name,
    unknown_field,
)
from greenroom.cases.problems import at, keys_of, mapping_at, shown, wrong
from greenroom.cases.users import Lines, SimulatedUser, UserAgents, user_from
from greenroom.cases.wire import RecordReader, list_of, read_mapping, read_text
from greenroom.ledger.changes import BUILT_IN_SCOPES
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.plain import Json, as_array, is_array, is_object

CALL_FIELDS = ("tool", "args")
ORIGINALS = (
    "user_content",
    "final_response",
    "expected_final_response",
    "intermediate_data",
    "expected_intermediate_responses",
    "expected_intermediate_agent_responses",
)
"""The originals kept under `extra`, because another tool's file says more than the case needs."""


def case_from(data: Mapping[str, object], where: str = "case", *, live: bool = False) -> Case:
    """The case described in `data`.

    With `live=True` parts that were code are left out instead of refused, as when a ledger is
    scored again: scoring needs no mocks.
    """
    known = mapping_at(where, data, CASE_FIELDS)
    fields = Fields(
        _without_code(known) if live else known, where, CASE_FIELDS, _MEANS, camel=False
    )
    if not live:
        fields.part(lambda: _refuse_code(known, where), None)
    given = _CASE.read(fields)
    made = fields.part(lambda: Case(**given), None)
    fields.settle()
    assert made is not None  # otherwise a problem would have been raised
    return made


def _without_code(data: Mapping[str, Any]) -> dict[str, Json]:
    """The data without mocks and code; of a user, the person is kept."""
    kept = {name: value for name, value in data.items() if name not in ("mocks", "bridge", "agent")}
    if is_live(kept.get("user")):
        kept["user"] = kept["user"].get("person")
    if is_live(kept.get("model")):
        del kept["model"]
    if is_array(tools := kept.get("allow_tools")):
        kept["allow_tools"] = [tool for tool in tools if isinstance(tool, str)]
    if is_array(metrics := kept.get("metrics")):
        kept["metrics"] = [metric for metric in metrics if not is_code(metric)]
    return kept


def _refuse_code(data: Mapping[str, Any], where: str) -> None:
    """Refuse code in the data: silently leaving it out would make it another case."""
    for name in LIVE_FIELDS:
        if name in data and (name not in ("user", "model") or is_live(data[name])):
            raise wrong(
                where,
                f"it has `{name}`, which is code; a file holds data only",
                f"Keep this case in a Python module, or leave `{name}` out",
            )
    for place in queries_with_code(data):
        raise wrong(
            f"{where}.{place}",
            "it has `$live`, which represents a function; a file holds data only",
            "Keep this case in a Python module, or say it with operators",
        )


# Fields


def extra_from(data: Json, where: str) -> dict[str, Json] | None:
    """What another tool's file said next to a case; an expectation there would never be checked, so it is refused."""
    given = mapping_at(where, data)
    for key in given:
        name = str((keys_of(key) or [key])[0])
        if name not in ORIGINALS and is_expectation(name):
            raise unknown_field(where, key, ("metadata",), _MEANS)
    return dict(given) or None


def _said(data: Json, where: str) -> str:
    text = read_text(data, where)
    if text and not text.strip():
        raise blank_words(where, text)
    return text


def _left_out(_data: Json, _where: str) -> None:
    """A field that is code: it was refused before."""


# Turns


def _turns_from(data: Json, where: str) -> list[Turn]:
    problems = ProblemList()
    found = problems.each(data, where, _turn_from)
    for i, turn in enumerate(as_array(data)):
        if not i or not is_object(turn) or turn.get("attachments"):
            continue
        if turn.get("says") in (None, "") and not _misspells_says(turn):
            message = "the user says nothing; that is allowed only in the first turn, where the agent begins"
            place = at(where, i, "says") if "says" in turn else at(where, i)
            problems.add(wrong(place, message, "Write what they say, or drop the turn"), place)
    problems.settle()
    return found


def _misspells_says(turn: Mapping[str, Json]) -> bool:
    return any(meant_by(key, _TURN.names, _MEANS) == "says" for key in turn.keys() - {*_TURN.names})


def _turn_from(data: Json, where: str) -> Turn:
    fields = Fields(data, where, _TURN.names, _MEANS, camel=False)
    given = _TURN.read(fields)
    fields.settle()
    return placed(where, Turn, **given)


def expect_from(data: Json, where: str) -> Expect:
    """An expectation, as our own shape writes it."""
    fields = Fields(data, where, EXPECT_FIELDS, _MEANS_INSIDE, camel=False)
    given = _EXPECT.read(fields)
    found = expect_of(fields, {name: name for name in given if name != "extra"}, **given)
    fields.settle()
    if not given and not fields.problems.found:
        raise empty_expectation(where)
    return found or Expect()


def expect_of(fields: Fields, named: Mapping[str, str], **said: Any) -> Expect | None:
    """An expectation from its parts; None if a part is refused, which is remembered.

    `named` says which field holds each part.
    """
    try:
        return Expect(**said)
    except REFUSALS as error:
        before = len(fields.problems.found)
        for name, field in named.items():
            place = fields.at(field)
            fields.problems.part(place, partial(placed, place, Expect, **{name: said[name]}), None)
        if len(fields.problems.found) == before:  # the error is about something else
            fields.problems.add(error, fields.place)
        return None


def _call_from(data: Json, where: str) -> ToolCall | str:
    if isinstance(data, str):
        return data
    name, details = name_and_details(data, CALL_FIELDS)
    if name and (details is None or is_object(details)):
        message = f"{shown(name)} is where `tool` should be"
        raise wrong(where, message, "Write", example={"tool": name, "args": details or {}})
    fields = Fields(data, where, CALL_FIELDS, {"tools": "tool", "args": "args"}, camel=False)
    tool, args = fields.text("tool"), fields.mapping("args")
    fields.settle()
    if not tool.strip():
        message = f"{shown(data)} names no tool"
        raise wrong(where, message, "Give `tool`, and `args` if they matter")
    return ToolCall(tool, args)


def _stop_from(data: Json, where: str) -> Stop:
    fields = Fields(data, where, _STOP.names, camel=False)
    given = _STOP.read(fields)
    fields.settle()
    return placed(where, Stop, **given)


# Users, metrics, tools


def _tool_name(data: Json, where: str) -> str:
    if not isinstance(data, str):
        raise wrong(where, f"{shown(data)} is not the name of a tool")
    return data


def _user_from(data: Json, where: str) -> Lines | SimulatedUser | None:
    if is_live(data):
        return None
    # An unknown field is refused, with the form of a user that has most of the other fields.
    given = mapping_at(where, data, ("lines", "tools", *_PERSON))
    forms = (_PERSON, ("lines", "then"), _AGENTS)
    only(given, max(forms, key=lambda form: sum(bool(near_name(k, form)) for k in given)), where)
    return placed(where, user_from, with_attachments(data, where), where)


def _metric_from(data: Json, where: str) -> Criterion:
    name, details = name_and_details(data, ("criterion",))
    if name:
        more = details if is_object(details) else {"threshold": 0.8 if details is None else details}
        message = f"{shown(name)} is where `criterion` should be"
        raise wrong(where, message, "Write", example={"criterion": name, **more})
    if is_object(data) and "criterion" not in data and data:
        only(dict.fromkeys(data) | {next(iter(data)): 1}, ("criterion",), where)
    if not isinstance(data, str) and not (is_object(data) and "criterion" in data):
        example: Json = {"criterion": "...", "threshold": 0.8}
        raise wrong(where, f"{shown(data)} names no metric", "Write its name, or", example=example)
    found: Criterion = placed(where, criterion_from, data, where)
    threshold = cast(object, found.threshold)
    if isinstance(threshold, bool) or not isinstance(threshold, int | float | None):
        raise wrong(at(where, "threshold"), f"{shown(threshold)} should be a number")
    return found


metrics_from = list_of(_metric_from, of_names=True)
"""The metrics that a list names."""


_PERSON = tuple(part.name for part in fields_of(SimulatedUser))
_AGENTS = tuple(part.name for part in fields_of(UserAgents))


# The state


def _state_of(data: object, where: str) -> Mapping[str, Json]:
    """The state that a case begins with: keys by scope."""
    given, problems = mapping_at(where, data), ProblemList()
    for scope, content in given.items():
        if not isinstance(content, Mapping):
            key = "key" if scope in BUILT_IN_SCOPES else scope
            message = f"{scope!r} is {shown(content)} and has no keys; group by scope"
            example: Json = {"state": {"session": {key: content}}}
            place = at(where, scope)
            problems.add(wrong(place, message, "Write", example=example), place)
    problems.settle()
    return given


# The fields that are read by more than their type. Code was refused before this.
_CASE = RecordReader(
    Case,
    {
        "says": _said,
        "expect": expect_from,
        "turns": _turns_from,
        "mocks": mocks_from,
        "allow_tools": list_of(_tool_name, of_names=True),
        "state": _state_of,
        "stop": _stop_from,
        "metrics": metrics_from,
        "user": _user_from,
        "bridge": _left_out,
        "agent": _left_out,
        "history": list_of(read_mapping),
        "model": lambda data, where: None if is_live(data) else read_text(data, where),
        "extra": extra_from,
        "attachments": list_of(attachment_from),
    },
    without=("origin",),
)
_TURN = RecordReader(
    Turn,
    {
        "says": _said,
        "expect": expect_from,
        "extra": extra_from,
        "attachments": list_of(attachment_from),
    },
)
_EXPECT = RecordReader(
    Expect,
    {
        **dict.fromkeys(("response", "reference", "stopped_by"), text_from),
        "contains": contains_from,
        "intermediate": texts_from,
        "state": state_from,
        "state_after": states_from,
        "tools": list_of(_call_from, of_names=True),
        "extra": extra_from,
    },
)
_STOP = RecordReader(
    Stop,
    {"max_turns": turns_limit, "max_seconds": seconds_limit, "state_matches": state_from},
)
CASE_FIELDS = _CASE.names
EXPECT_FIELDS = _EXPECT.names

# How fields of other shapes are written here, in a case or a turn, and inside `expect`.
_MEANS = {
    "says": "says",
    "args": "expect.tools",
    "expect": "expect",
    **{name: f"expect.{name}" for name in EXPECTATIONS},
}
_MEANS_INSIDE = {"args": "tools", **{name: name for name in EXPECTATIONS}}
