"""Google ADK's eval sets: `.evalset.json` and `.test.json` since version 1.0.

What ADK has no field for is under `greenroom`, on the set and on a case: ADK keeps or ignores it
there, and can run the file. Your own fields are where ADK keeps them: on a case and in its
session, nowhere else.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.criteria import Criterion
from greenroom.cases.data import written_data
from greenroom.cases.evalset import EvalSet
from greenroom.cases.fields import Fields
from greenroom.cases.files.adk_expect import expectations_beyond, with_expectations
from greenroom.cases.files.adk_turns import TURN, TURN_MEANS, turn_data, turn_from
from greenroom.cases.files.originals import (
    joined_state,
    prefixed,
    put_back,
    scopes,
    session_data,
    session_extra,
)
from greenroom.cases.files.own import evalset_data, trials_from
from greenroom.cases.files.shapes import Shape
from greenroom.cases.literals import literal, unquoted
from greenroom.cases.names import foreign_id
from greenroom.cases.problems import at, shown, wrong
from greenroom.cases.reader import case_from, metrics_from
from greenroom.cases.scenarios import scenario_case
from greenroom.cases.users import SimulatedUser
from greenroom.ledger.plain import Json, is_array, is_object, plain

OURS = "greenroom"
_SET = ("eval_set_id", "name", "description", "eval_cases", "creation_timestamp")
_CASE = (
    "eval_id",
    "conversation",
    "conversation_scenario",
    "session_input",
    "creation_timestamp",
    "rubrics",
    "final_session_state",
)
_SCENARIO = ("starting_prompt", "conversation_plan", "user_persona")
_SESSION = ("app_name", "user_id", "session_id", "state")
_SIGNS = ("final_response", "intermediate_data", "finalResponse", "intermediateData")
_BESIDES = ("name", "description", "tags", "metadata", "mocks", "allow_tools", "stop", "metrics")
_ON_CASE = (*_BESIDES, "now", "target")
_ON_SET = ("metadata", "metrics", "trials")
_CASE_MEANS = {
    **{name: f"{OURS}.{name}" for name in _ON_CASE},
    **dict.fromkeys(("criteria", "thresholds", "threshold"), f"{OURS}.metrics"),
    "mock_tool_outputs": f"{OURS}.mocks",
    "target_node": f"{OURS}.target",
    "initial_state": "session_input.state",
    **{name: f"conversation[].{field}" for name, field in TURN_MEANS.items()},
}
_FINAL_STATE = "state_matches"


# Reading


def _recognises(data: Json) -> str | None:
    listed = data.get("eval_cases") if is_object(data) else None
    if not is_array(listed):
        return None
    cases = [case for case in listed if is_object(case)]
    if any("conversation_scenario" in case or "conversationScenario" in case for case in cases):
        return "it has `eval_cases` with a `conversation_scenario`"
    if not cases:
        return "it has `eval_cases`, which are empty"
    for turn in turns_of(cases):
        content = turn.get("user_content", turn.get("userContent"))
        if (is_object(content) and "parts" in content) or any(sign in turn for sign in _SIGNS):
            return "it has `eval_cases` whose messages have `parts`"
    return None


def turns_of(cases: list[dict[str, Json]]) -> list[dict[str, Json]]:
    """Every entry of the cases' conversations that is a mapping."""
    found: list[dict[str, Json]] = []
    for case in cases:
        conversation = case.get("conversation")
        found += (
            [turn for turn in conversation if is_object(turn)] if is_array(conversation) else []
        )
    return found


def _read(data: Json, stem: str) -> EvalSet:
    fields = Fields(data, "", (*_SET, OURS))
    cases = fields.cases_by("eval_cases", _case, "eval_id")
    given = fields.text("eval_set_id", stem)
    set_id, was = fields.part(lambda: foreign_id(given, "eval_set_id", "eval_set_id"), (stem, {}))
    ours = fields.read(OURS, _on_set, {})
    titles = {name: fields.text(name) for name in ("name", "description")}
    extra = {**was, **fields.rest()}
    fields.settle()
    return EvalSet(set_id, cases, extra=extra or None, **titles, **ours)


def _on_set(data: Json, place: str) -> dict[str, Any]:
    fields = Fields(data, place, _ON_SET)
    found: dict[str, Any] = {}
    if metrics := fields.read("metrics", metrics_from, []):
        found["metrics"] = metrics
    if metadata := fields.mapping("metadata"):
        found["metadata"] = metadata
    found["trials"] = fields.read("trials", trials_from, 1)
    fields.settle()
    return found


def _case(data: Json, place: str) -> Case:
    fields = Fields(data, place, (*_CASE, OURS), {**_CASE_MEANS, "state": "final_session_state"})
    problems = fields.problems
    case_id, was = fields.named("eval_id", foreign_id, ("unnamed", {}))
    is_scripted, is_improvised = fields.has("conversation"), fields.has("conversation_scenario")
    scenario = fields.inner("conversation_scenario", _SCENARIO)
    turns = fields.turns("conversation", turn_from) if is_scripted else []
    ours, session = dict(fields.mapping(OURS)), fields.inner("session_input", _SESSION)
    if is_scripted and (more := ours.pop("expect", None)) is not None:
        turns = fields.part(
            lambda: with_expectations(turns, more, at(fields.at(OURS), "expect")), turns
        )
    state = session.mapping("state")
    asked = fields.read("final_session_state", _final_state, [])
    extra = {**was, **session_extra(session, state), **session.free("session_input")}
    if is_scripted == is_improvised or (is_improvised and not scenario.has_any()):
        message = "has both `conversation` and `conversation_scenario`"
        both = wrong(place, f"it {message}", "Keep one")
        none = wrong(place, "the case has neither `conversation` nor a scenario")
        problems.add(both if is_scripted else none, place)
    at_ours = at(place, OURS)
    base = problems.part(
        at_ours, lambda: case_from({**ours, "id": case_id, "user": None}, at_ours), Case(case_id)
    )
    if is_scripted:
        user = problems.part(
            at_ours,
            lambda: case_from({"id": case_id, "user": ours.get("user")}, at_ours).user,
            None,
        )
        base = replace(base, turns=turns, user=user)
        scenario.rest()
    elif not problems.found:
        base, extra = fields.part(lambda: _improvised(base, scenario, ours, extra), (base, extra))
    extra = {**(base.extra or {}), **extra, **fields.rest(), **fields.free()}
    joined = fields.part(lambda: joined_state(scopes(state), base.state, at(at_ours, "state")), {})
    session.refuse_others()
    scenario.refuse_others()
    fields.settle()
    return replace(base, state=joined, metrics=[*base.metrics, *asked] or (), extra=extra or None)


def _final_state(data: Json, place: str) -> list[Criterion]:
    """The expected final session state, as a criterion; google-adk itself only keeps it."""
    if not is_object(data):
        raise wrong(place, f"{shown(data)} should be a mapping")
    return [_state_asked(data)] if data else []


def _state_asked(state: Mapping[str, Json]) -> Criterion:
    query: Json = {scope: literal(content) for scope, content in scopes(state).items()}
    return Criterion(_FINAL_STATE, options={"query": query})


def _improvised(
    base: Case, scenario: Fields, ours: Mapping[str, Json], extra: dict[str, Json]
) -> tuple[Case, dict[str, Json]]:
    """A case whose user follows a scenario."""
    given = {name: scenario.take(name) for name in _SCENARIO}
    played = scenario_case({**given, "scenario_id": base.id}, scenario.place)
    person = {
        "persona": played.user.persona,
        "plan": plain(played.user.plan),
        **_mapping(ours.get("user")),
    }
    user = case_from({"id": base.id, "user": person}, scenario.place).user
    if given["user_persona"] not in (None, _persona(played.user.persona)):
        extra["conversation_scenario.user_persona"] = given["user_persona"]
    return replace(base, says=played.says, user=user), extra


def _mapping(data: Json) -> dict[str, Json]:
    return data if is_object(data) else {}


# Writing


def _write(evalset: EvalSet) -> Json:
    extra = dict(evalset.extra or {})
    data: dict[str, Json] = {"eval_set_id": extra.pop("eval_set_id", evalset.id)}
    if evalset.name:
        data["name"] = evalset.name
    if evalset.description:
        data["description"] = evalset.description
    data["eval_cases"] = [_case_data(case) for case in evalset.cases]
    whole = evalset_data(replace(evalset, cases=()))
    if ours := {name: whole[name] for name in _ON_SET if name in whole}:
        data[OURS] = ours
    put_back(data, extra, _SET)
    return data


def _case_data(case: Case) -> dict[str, Json]:
    extra = dict(case.extra or {})
    asked, state_asked = _asked_state(case)
    whole = written_data(asked)
    ours = {name: whole[name] for name in _ON_CASE if name in whole}
    data: dict[str, Json] = {"eval_id": extra.pop("eval_id", case.id)}
    if isinstance(case.user, SimulatedUser) and not case.turns and not case.expect:
        data["conversation_scenario"] = _scenario_data(case, extra)
        person = _mapping(whole.get("user"))
        person = {k: v for k, v in person.items() if k not in ("persona", "plan")}
        ours |= {"user": person} if person else {}
    else:
        data["conversation"] = [turn_data(turn) for turn in case.script]
        ours |= {"expect": more} if (more := expectations_beyond(case)) else {}
        ours |= {"user": whole["user"]} if "user" in whole else {}
    state, others = prefixed(case.state)
    data |= session_data(state, extra)
    data |= {"final_session_state": state_asked} if state_asked else {}
    ours |= {"state": plain(others)} if others else {}
    if ours:
        data[OURS] = ours
    put_back(data, extra)
    return data


def _asked_state(case: Case) -> tuple[Case, dict[str, Json]]:
    """The case without a last criterion of the final state, and that state as ADK writes it."""
    last = case.metrics[-1] if case.metrics else None
    if not isinstance(last, Criterion) or last.name != _FINAL_STATE:
        return case, {}
    query = last.options.get("query")
    if not is_object(query):
        return case, {}
    by_scope = {scope: unquoted(held) for scope, held in query.items() if is_object(held)}
    if len(by_scope) < len(query):
        return case, {}
    asked, others = prefixed(by_scope)
    if others or not asked or _state_asked(asked) != last:
        return case, {}
    return replace(case, metrics=case.metrics[:-1] or ()), asked


def _scenario_data(case: Case, extra: dict[str, Json]) -> dict[str, Json]:
    user: SimulatedUser = case.user
    plan = user.plan if isinstance(user.plan, str) else "\n".join(user.plan)
    data: dict[str, Json] = {"starting_prompt": case.says, "conversation_plan": plan}
    kept = extra.pop("conversation_scenario.user_persona", None)
    if kept is not None:
        again = scenario_case({"scenario_id": "a", "user_persona": kept}).user
        if again.persona == user.persona:
            data["user_persona"] = kept
    if user.persona and "user_persona" not in data:
        data["user_persona"] = _persona(user.persona)
    return data


def _persona(persona: str) -> dict[str, Json]:
    return {"id": "custom", "description": persona, "behaviors": []}


USUAL = (
    Criterion("tool_trajectory_avg_score", options={"match_type": "ADK"}),
    Criterion("response_match_score"),
)
SHAPE = Shape(
    "adk",
    "a mapping with `eval_cases` whose `user_content` has `parts`, or with scenarios",
    _recognises,
    _read,
    _write,
    USUAL,
    ("eval_cases", "conversation"),
    names=(*_SET, *_CASE, *TURN, *_SCENARIO, *_SESSION, "parts"),
)
