"""Fluent eval suites: cases with `input`, and what is expected of the last turn.

With `scope: all` the expected trajectory is that of the whole conversation.
"""

from collections.abc import Sequence
from typing import Any

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.cases.expected import contains_from, placed, text_from
from greenroom.cases.fields import Fields
from greenroom.cases.files.criteria import TRAJECTORY, listed_metrics, metric_lists
from greenroom.cases.files.originals import prefixed, scopes
from greenroom.cases.files.own import trials_from
from greenroom.cases.files.queries import named, names
from greenroom.cases.files.shapes import Shape
from greenroom.cases.names import checked_id
from greenroom.cases.problems import shown, wrong
from greenroom.cases.reader import expect_of
from greenroom.cases.users import SimulatedUser, user_data
from greenroom.ledger.plain import JSON_TYPES, Json, as_object, is_array, is_object, plain

_SIMULATION = ("model", "persona", "success_criteria", "stop_signal", "max_turns")
_SET = (
    "id",
    "name",
    "description",
    "metadata",
    "metrics",
    "thresholds",
    "num_runs",
    "simulation",
    "cases",
)
_CASE = (
    "input",
    "expected_trajectory",
    "expected_response_contains",
    "reference_response",
    "state_assertions",
    "scope",
    "mock_tool_outputs",
    "initial_state",
    "tags",
    "target_node",
    "metadata",
)
_MEANS = {
    "says": "input",
    "tools": "expected_trajectory",
    "contains": "expected_response_contains",
    "reference": "reference_response",
    "response": "reference_response",
    "state": "state_assertions",
}


def _recognises(data: Json) -> str | None:
    if not is_object(data) or "version" in data or not is_array(cases := data.get("cases")):
        return None
    if any(is_object(case) and "input" in case for case in cases):
        return "it has `cases` with an `input` each"
    settings = [name for name in ("num_runs", "thresholds") if name in data]
    return f"it has `cases` and `{settings[0]}`" if settings else None


def _read(data: Json, stem: str) -> EvalSet:
    fields = Fields(data, "", _SET)
    user = fields.read("simulation", _user, None)
    metrics = listed_metrics(fields)
    whole = _of_whole(metrics)
    cases = fields.cases_by(
        "cases", lambda item, place: _case(item, place, user, whole), "metadata", "id"
    )
    set_id, name = fields.problems.part("name", lambda: named(fields, stem), ("", ""))
    parts: dict[str, Any] = {
        "name": name,
        "description": fields.text("description"),
        "metadata": fields.mapping("metadata"),
        "trials": fields.read("num_runs", trials_from, 1),
    }
    fields.settle()
    return EvalSet(set_id, cases, metrics=metrics, **parts)


def _of_whole(metrics: Sequence[object]) -> Criterion:
    """The suite's criterion of trajectories, for the calls of a whole conversation."""
    asked = [m for m in metrics if isinstance(m, Criterion) and m.name == TRAJECTORY]
    threshold = asked[0].threshold if asked else None
    return Criterion(TRAJECTORY, threshold=threshold, options={"scope": "all"})


def _user(data: Json, place: str) -> SimulatedUser:
    fields = Fields(data, place, _SIMULATION)
    given: dict[str, Any] = {
        name: value for name in _SIMULATION if (value := fields.take(name)) is not None
    }
    fields.settle()
    return placed(place, SimulatedUser, goal=given.pop("success_criteria", ""), **given)


def _case(data: Json, place: str, user: SimulatedUser | None, whole: Criterion) -> Case:
    fields = Fields(data, place, _CASE, _MEANS)
    metadata = dict(fields.mapping("metadata"))
    number = int(place.rpartition("[")[2].rstrip("]")) + 1
    given = metadata.pop("id", None)
    case_id = fields.part(lambda: _id(given, number, fields.at("metadata", "id")), "")
    turns = fields.part(lambda: _inputs(fields.take("input"), fields.at("input")), [])
    expect = _expect(fields)
    parts: dict[str, Any] = {
        "mocks": fields.mapping("mock_tool_outputs"),
        "tags": fields.texts("tags") or (),
        "target": fields.text("target_node"),
        "metadata": metadata,
        "state": scopes(fields.mapping("initial_state")),
        "user": user,
    }
    scope = fields.take("scope", "last")
    if scope not in ("last", "all"):
        fields.remember(fields.at("scope"), f"{shown(scope)} should be 'last' or 'all'")
    if scope == "all" and expect is not None and expect.tools is not None:
        parts["metrics"] = [whole]
    fields.settle()
    if isinstance(turns, str):
        return Case(case_id, turns, expect=expect, **parts)
    script = [*(Turn(says) for says in turns[:-1]), Turn(turns[-1], expect)]
    return Case(case_id, turns=script, **parts)


def _inputs(asked: Json, place: str) -> str | list[str]:
    """What the user says: one string, or one for each turn."""
    if isinstance(asked, str) and asked.strip():
        return asked
    inputs = asked if is_array(asked) else []
    texts = [text for text in inputs if isinstance(text, str) and text.strip()]
    if not inputs or len(texts) < len(inputs):
        raise wrong(place, f"{shown(asked)} should be a string or a list of strings")
    return texts


def _id(given: Json, number: int, place: str) -> str:
    if given is None:
        return f"case_{number}"
    if not isinstance(given, str):
        raise wrong(place, f"{shown(given)} should be a string")
    return checked_id(given, place)


def _expect(fields: Fields) -> Expect | None:
    tools = fields.texts("expected_trajectory")
    contains = fields.read("expected_response_contains", contains_from, None)
    reference = fields.read("reference_response", text_from, None)
    has_state = fields.has("state_assertions")
    state = scopes(fields.mapping("state_assertions")) if has_state else None
    if tools is None and contains is None and reference is None and state is None:
        return None
    said: dict[str, Any] = {
        "tools": tools,
        "contains": contains,
        "reference": reference,
        "state": state,
    }
    return expect_of(fields, {name: _MEANS[name] for name in said}, **said)


# Writing


def _write(evalset: EvalSet) -> Json:
    data = names(evalset)
    if evalset.description:
        data["description"] = evalset.description
    data |= metric_lists(evalset.metrics)
    if evalset.metadata:
        data["metadata"] = plain(evalset.metadata)
    if evalset.trials != 1:
        data["num_runs"] = evalset.trials
    users = [case.user for case in evalset.cases]
    if users and isinstance(users[0], SimulatedUser) and all(user == users[0] for user in users):
        data["simulation"] = _simulation_data(users[0])
    whole = _of_whole(evalset.metrics)
    data["cases"] = [_case_data(case, i + 1, whole) for i, case in enumerate(evalset.cases)]
    return data


def _simulation_data(user: SimulatedUser) -> Json:
    person = as_object(user_data(user) or {})
    named = {{"goal": "success_criteria"}.get(key, key): value for key, value in person.items()}
    return {key: value for key, value in named.items() if value != "" and key in _SIMULATION}


def _case_data(case: Case, number: int, whole: Criterion) -> dict[str, Json]:
    says: list[Json] = [turn.says for turn in case.script]
    data: dict[str, Json] = {"input": says if case.turns else case.says}
    expect = (case.script[-1].expect if case.script else None) or Expect()
    data |= _expect_data(expect)
    if list(case.metrics) == [whole]:
        data["scope"] = "all"
    if case.mocks:
        constants = {t: mock for t, mock in case.mocks.items() if type(mock) in JSON_TYPES}
        data["mock_tool_outputs"] = plain(constants)
    state, _ = prefixed(case.state)
    if state:
        data["initial_state"] = plain(state)
    if case.tags:
        data["tags"] = list(case.tags)
    if case.target:
        data["target_node"] = case.target
    metadata: dict[str, Json] = {} if case.id == f"case_{number}" else {"id": case.id}
    metadata |= as_object(plain(case.metadata))
    if metadata:
        data["metadata"] = metadata
    return data


def _expect_data(expect: Expect) -> dict[str, Json]:
    data: dict[str, Json] = {}
    if expect.tools is not None:
        data["expected_trajectory"] = [c if isinstance(c, str) else c.tool for c in expect.tools]
    if expect.contains is not None:
        data["expected_response_contains"] = plain(expect.contains)
    if expect.reference is not None:
        data["reference_response"] = expect.reference
    if expect.state is not None:
        state, others = prefixed(expect.state)
        data |= {"state_assertions": plain(state)} if state and not others else {}
    return data


SHAPE = Shape(
    "fluent",
    "a mapping with `cases` that have an `input`, and no `version`",
    _recognises,
    _read,
    _write,
    lists=("cases", "input"),
    names=(*_SET, *_CASE),
)
