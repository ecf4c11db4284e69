"""Every shape people already have is recognised by what it holds, and means what it means there."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases.files.samples import (
    ADK,
    ADK_FLAT,
    ADK_NAMED,
    AGENTFLOW,
    AGENTFLOW_CONFIG,
    FILES,
    FLUENT,
    QUERIES,
    SCENARIOS,
    SESSIONS,
)
from cases.files.sets import said
from greenroom import Case, EvalSet, Expect, SimulatedUser, Stop, Turn, call
from greenroom.cases import Criterion, read_evalset, write_evalset
from greenroom.errors import BadFile
from greenroom.ledger.events import ToolCalled
from greenroom.metrics.trajectory import share_in_place


def reading(folder: Path, content: Any, name: str = "set.json", **how: Any) -> EvalSet:
    text = content if isinstance(content, str) else json.dumps(content)
    (folder / name).write_text(text, encoding="utf-8")
    return read_evalset(folder / name, **how)


@pytest.mark.parametrize("shape", FILES)
def test_a_file_is_taken_for_what_it_holds(tmp_path: Path, shape: str) -> None:
    name, text = FILES[shape]
    found = reading(tmp_path, text, name)
    assert found.shape == shape
    assert len(found) >= 1


@pytest.mark.parametrize("shape", FILES)
def test_a_file_says_the_same_when_its_shape_is_asked_for(tmp_path: Path, shape: str) -> None:
    name, text = FILES[shape]
    assert reading(tmp_path, text, name, shape=shape) == read_evalset(tmp_path / name)


@pytest.mark.parametrize("shape", FILES)
def test_a_file_that_is_read_can_be_written_as_it_was(tmp_path: Path, shape: str) -> None:
    name, text = FILES[shape]
    found = reading(tmp_path, text, name)
    write_evalset(found, tmp_path / "again" / name, shape=shape)
    assert read_evalset(tmp_path / "again" / name) == found


@pytest.mark.parametrize("shape", FILES)
def test_every_shape_can_be_kept_as_our_own(tmp_path: Path, shape: str) -> None:
    name, text = FILES[shape]
    found = reading(tmp_path, text, name)
    write_evalset(found, tmp_path / "own.yaml")
    judged = replace(found, metrics=[*found.metrics, *(found.usual or ())])
    assert said(read_evalset(tmp_path / "own.yaml")) == said(judged)


# What each means


def test_agentflow_expects_calls_and_a_resembling_response(tmp_path: Path) -> None:
    found = reading(tmp_path, AGENTFLOW)
    assert (found.id, found.name) == ("forecasts", "Forecasts")
    assert found["one_city"].turns == [
        Turn(
            "Is it raining in Oslo?",
            Expect(tools=[call("look", city="Oslo")], reference="It is dry in Oslo."),
        )
    ]
    assert found["one_city"].extra == {
        "session_input.app_name": "clerk",
        "session_input.user_id": "ada",
    }


def test_an_empty_trajectory_of_agentflow_says_nothing_about_calls(tmp_path: Path) -> None:
    (turn,) = reading(tmp_path, AGENTFLOW)["two_cities"].turns
    assert turn.expect is None


def test_agentflow_cannot_say_that_no_call_is_allowed(tmp_path: Path) -> None:
    found = reading(tmp_path, AGENTFLOW)
    case = found["one_city"]
    strict = replace(case, turns=[Turn("Hi", Expect(tools=[]))])
    with pytest.raises(BadFile, match=r"no place in the shape agentflow: one_city.*expect"):
        write_evalset(replace(found, cases=[strict]), tmp_path / "s.json", shape="agentflow")


BLOCKS = [
    {"type": "text", "text": "Look at this:"},
    {"type": "image", "url": "lamp.png"},
    {"type": "text", "text": "Is it on?"},
]


def with_blocks() -> Any:
    data = json.loads(json.dumps(AGENTFLOW))
    data["eval_cases"][0]["conversation"][0]["user_content"]["content"] = BLOCKS
    return data


def test_the_texts_of_blocks_are_joined_and_the_blocks_are_written_back(tmp_path: Path) -> None:
    found = reading(tmp_path, with_blocks())
    (turn,) = found["one_city"].turns
    assert turn.says == "Look at this:\nIs it on?"
    write_evalset(found, tmp_path / "again.json", shape="agentflow")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["eval_cases"][0]["conversation"][0]["user_content"]["content"] == BLOCKS


def test_blocks_that_say_something_else_than_the_case_are_not_written_back(tmp_path: Path) -> None:
    found = reading(tmp_path, with_blocks())
    case = found["one_city"]
    changed = replace(case, turns=[replace(case.turns[0], says="Is it off?")])
    write_evalset(replace(found, cases=[changed]), tmp_path / "again.json", shape="agentflow")
    (turn,) = read_evalset(tmp_path / "again.json")["one_city"].turns
    assert (turn.says, turn.extra) == ("Is it off?", None)


def test_blocks_are_not_lost_in_a_shape_that_has_none(tmp_path: Path) -> None:
    found = reading(tmp_path, with_blocks())
    with pytest.raises(BadFile, match=r"one_city.turns\[0\].extra"):
        write_evalset(found, tmp_path / "s.json", shape="fluent")


def test_adk_files_say_who_asks_in_which_state(tmp_path: Path) -> None:
    found = reading(tmp_path, ADK)
    case = found["off"]
    assert case.turns == [
        Turn(
            "Lamp off.",
            Expect(tools=[call("switch", lamp=2, on=False)], reference="It is off."),
            {"invocation_id": "e-1"},
        )
    ]
    assert case.state == {"session": {"room": "hall"}, "user": {"name": "Ada"}}
    assert found["chat"].says == "Hello"
    assert found["chat"].user == SimulatedUser(plan="Ask for the hall lamp.")


def test_adk_files_may_be_in_camel_case(tmp_path: Path) -> None:
    text = json.dumps(ADK)
    for name in ("eval_id", "user_content", "final_response", "intermediate_data", "tool_uses"):
        head, *tail = name.split("_")
        camel = "".join([head, *(part.title() for part in tail)])
        if name != "tool_uses":
            text = text.replace(f'"{name}"', f'"{camel}"')
    assert said(reading(tmp_path, text)) == said(reading(tmp_path, ADK, "snake.json"))


def adk_with(**turn: Any) -> Any:
    user = {"user_content": {"parts": [{"text": "Hi"}]}}
    return {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "a", "conversation": [{**user, **turn}]}],
    }


@pytest.mark.parametrize(
    "steps, tools",
    [
        (None, None),
        ({"tool_uses": []}, []),
        ({"tool_uses": [{"name": "look"}]}, ["look"]),
        ({"tool_uses": [{"name": "look", "args": {}}]}, [call("look")]),
        ({"invocation_events": []}, []),
        (
            {
                "invocation_events": [
                    {"author": "a", "content": {"parts": [{"text": "Let me see."}]}},
                    {
                        "author": "a",
                        "content": {
                            "parts": [{"function_call": {"name": "look", "args": {"n": 1}}}]
                        },
                    },
                ]
            },
            [call("look", n=1)],
        ),
    ],
)
def test_adk_steps_say_which_calls_are_expected(tmp_path: Path, steps: Any, tools: Any) -> None:
    (case,) = reading(tmp_path, adk_with(intermediate_data=steps))
    expect = case.turns[0].expect
    assert (None if expect is None else expect.tools) == tools


def test_adk_intermediate_responses_are_kept_with_their_authors(tmp_path: Path) -> None:
    steps = {"tool_uses": [], "intermediate_responses": [["clerk", [{"text": "One moment."}]]]}
    found = reading(tmp_path, adk_with(intermediate_data=steps))
    expect = found["a"].turns[0].expect
    assert expect is not None
    assert expect.intermediate == ["One moment."]
    write_evalset(found, tmp_path / "again.json", shape="adk")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["eval_cases"][0]["conversation"][0]["intermediate_data"] == steps


def test_an_adk_id_that_is_a_path_becomes_a_name_and_is_written_back(tmp_path: Path) -> None:
    data = adk_with()
    data["eval_cases"][0]["eval_id"] = "/home/ada/evals/../lamp.test.json"
    found = reading(tmp_path, data)
    assert found.ids == ["home_ada_evals___lamp.test.json"]
    write_evalset(found, tmp_path / "again.json", shape="adk")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["eval_cases"][0]["eval_id"] == "/home/ada/evals/../lamp.test.json"


def test_what_adk_has_no_field_for_stands_where_adk_leaves_it_alone(tmp_path: Path) -> None:
    found = reading(tmp_path, ADK)
    case = replace(found["off"], tags=["smoke"], mocks={"switch": "ok"}, stop=Stop(max_turns=3))
    write_evalset(replace(found, cases=[case], trials=2), tmp_path / "s.json", shape="adk")
    data = json.loads((tmp_path / "s.json").read_text())
    assert data["greenroom"] == {"trials": 2}
    assert sorted(data["eval_cases"][0]["greenroom"]) == ["mocks", "stop", "tags"]
    assert read_evalset(tmp_path / "s.json")["off"] == case


def test_a_flat_adk_list_is_one_conversation(tmp_path: Path) -> None:
    found = reading(tmp_path, ADK_FLAT, "lamp.test.json")
    assert found.ids == ["lamp"]
    first, second = found["lamp"].turns
    assert first.expect == Expect(tools=[call("switch", lamp=2)], reference="It is off.")
    assert second.expect == Expect(tools=[], reference="You are welcome.")


def test_a_named_adk_list_holds_several_with_their_state(tmp_path: Path) -> None:
    found = reading(tmp_path, ADK_NAMED)
    assert found["off"].state == {"session": {"room": "hall"}}
    assert found["off"].extra == {"session_input.app_name": "x"}


def test_queries_expect_calls_in_order_and_no_call_where_the_list_is_empty(tmp_path: Path) -> None:
    found = reading(tmp_path, QUERIES)
    assert found.id == "forecast_tests"
    expects = {case.id: case.expect for case in found}
    assert expects["one_city"] == Expect(tools=[call("look", city="Oslo")], reference="dry in Oslo")
    assert expects["compare"] == Expect(tools=["look", "look"])
    assert expects["no_tool"] == Expect(tools=[])


def test_a_reference_answer_is_looked_for_in_the_response(tmp_path: Path) -> None:
    asked = {"metrics": ["safety_v1"], "thresholds": {"response_match_score": 0.7}}
    recall = Criterion("response_match_score", options={"mode": "recall"})
    assert reading(tmp_path, QUERIES).metrics == [recall]
    assert reading(tmp_path, {**QUERIES, **asked}).metrics == [
        Criterion("safety_v1"),
        replace(recall, threshold=0.7),
    ]


def test_a_judge_of_references_needs_no_other_measure_of_them(tmp_path: Path) -> None:
    found = reading(tmp_path, {**QUERIES, "metrics": ["final_response_match_v2"]})
    assert found.metrics == [Criterion("final_response_match_v2")]


def test_sessions_expect_something_of_each_turn(tmp_path: Path) -> None:
    found = reading(tmp_path, SESSIONS)
    assert found["flight"].turns == [
        Turn("I want to fly", Expect(tools=["search"], contains="Where")),
        Turn("To Oslo", Expect(tools=[])),
    ]


def test_a_fluent_suite_expects_something_of_the_last_turn(tmp_path: Path) -> None:
    found = reading(tmp_path, FLUENT, "billing.yaml")
    assert (found.id, found.trials) == ("billing_v2", 2)
    assert found.metrics == [
        Criterion("tool_trajectory_avg_score", threshold=1.0),
        Criterion("response_evaluation_score"),
    ]
    assert found["case_1"].expect == Expect(tools=["classify", "ticket"])
    case = found["refund"]
    assert case.turns == [
        Turn("Hello"),
        Turn(
            "I want a refund",
            Expect(
                tools=["classify", "refund"],
                contains="done",
                state={"session": {"intent": "refund"}},
            ),
        ),
    ]
    assert (case.mocks, case.target) == ({"refund": {"ok": True}}, "clerk")
    assert (case.state, case.metadata) == ({"session": {"order": 7}}, {"owner": "ada"})


def test_a_fluent_trajectory_may_be_that_of_the_whole_conversation(tmp_path: Path) -> None:
    case = {"input": ["Hi", "Refund!"], "expected_trajectory": ["look", "pay"], "scope": "all"}
    found = reading(tmp_path, {"cases": [case], "thresholds": {"tool_trajectory_avg_score": 0.5}})
    assert found["case_1"].metrics == [
        Criterion("tool_trajectory_avg_score", threshold=0.5, options={"scope": "all"})
    ]
    write_evalset(found, tmp_path / "again.json", shape="fluent")
    assert json.loads((tmp_path / "again.json").read_text())["cases"][0] == case


def test_a_fluent_suite_may_say_who_plays_the_users(tmp_path: Path) -> None:
    data = {
        "name": "s",
        "simulation": {"model": "m", "persona": "Ada", "success_criteria": "paid", "max_turns": 4},
        "cases": [{"input": "Hi"}],
    }
    (case,) = reading(tmp_path, data)
    assert case.user == SimulatedUser("Ada", goal="paid", model="m", max_turns=4)


def test_a_scenario_is_a_user_who_improvises(tmp_path: Path) -> None:
    (case,) = reading(tmp_path, SCENARIOS)
    assert (case.id, case.says, case.stop) == ("impatient", "Weather?", Stop(max_turns=6))
    assert case.user == SimulatedUser(
        plan="Ask for Oslo, then for tomorrow.", goals=("a temperature", "a forecast")
    )


@pytest.mark.parametrize("camel", [False, True])
def test_every_name_of_a_scenarios_field_is_known_in_a_file(tmp_path: Path, camel: bool) -> None:
    told = {
        "id": "impatient",
        "starting_prompt": "Weather?",
        "plan": "Ask for Oslo.",
        "success_criteria": "a temperature",
        "max_allowed_invocations": 6,
    }
    if camel:
        told = {re.sub("_(.)", lambda hump: hump[1].upper(), key): v for key, v in told.items()}
    found = reading(tmp_path, [told])
    (case,) = found
    assert (case.id, case.stop, case.extra) == ("impatient", Stop(max_turns=6), None)
    assert case.user == SimulatedUser(plan="Ask for Oslo.", goal="a temperature")
    write_evalset(found, tmp_path / "again" / "set.json", shape="scenarios")
    assert said(read_evalset(tmp_path / "again" / "set.json")) == said(found)


def test_a_scenarios_field_given_under_two_names_is_refused(tmp_path: Path) -> None:
    told = {"starting_prompt": "Hi", "max_turns": 3, "max_allowed_invocations": 4}
    with pytest.raises(BadFile, match=r"\[0\].*'max_turns' twice.*keep one"):
        reading(tmp_path, [told])


# Sessions and their state


@pytest.mark.parametrize(
    "session",
    [
        {"user_id": "ada", "state": {"room": "hall"}},
        {"app_name": "home", "state": {"room": "hall"}},
        {"app_name": "home", "user_id": "user", "state": {"room": "hall"}},
        {"app_name": "greenroom", "user_id": "ada", "state": {"user:name": "Ada"}},
        {"session_id": "s1", "state": {"room": "hall"}},
        {"user_id": "ada"},
        {"app_name": "greenroom", "user_id": "user"},
    ],
)
@pytest.mark.parametrize("data", [ADK, AGENTFLOW])
def test_who_asks_is_kept_however_little_a_session_says(
    tmp_path: Path, data: Any, session: Any
) -> None:
    data = json.loads(json.dumps(data))
    data["eval_cases"][0]["session_input"] = session
    found = reading(tmp_path, data)
    write_evalset(found, tmp_path / "again.json", shape=found.shape)
    again = json.loads((tmp_path / "again.json").read_text())["eval_cases"][0]["session_input"]
    assert {key: again[key] for key in session} == session
    assert set(again) >= ({"app_name", "user_id"} if "state" in session else set())
    assert said(read_evalset(tmp_path / "again.json")) == said(found)


def test_state_under_both_roofs_of_an_adk_case_is_joined_by_scope(tmp_path: Path) -> None:
    data = adk_with()
    state = {"room": "hall", "user:name": "Ada", "app:tax": 2, "temp:step": 1}
    data["eval_cases"][0]["session_input"] = {"state": state}
    ours = {"session": {"lamp": 2}, "user": {"vip": True}, "app": {"tax": 2}, "patient": {"n": 1}}
    data["eval_cases"][0]["greenroom"] = {"state": ours}
    found = reading(tmp_path, data)
    assert found["a"].state == {
        "session": {"room": "hall", "lamp": 2},
        "user": {"name": "Ada", "vip": True},
        "app": {"tax": 2},
        "temp": {"step": 1},
        "patient": {"n": 1},
    }
    write_evalset(found, tmp_path / "again.json", shape="adk")
    assert said(read_evalset(tmp_path / "again.json")) == said(found)


@pytest.mark.parametrize("value", [3, True, None])
def test_state_that_contradicts_itself_is_refused(tmp_path: Path, value: Any) -> None:
    data = adk_with()
    data["eval_cases"][0]["session_input"] = {"state": {"user:n": 1}}
    data["eval_cases"][0]["greenroom"] = {"state": {"user": {"n": value}}}
    with pytest.raises(BadFile, match=r"eval_cases\[0\]\.greenroom\.state\.user\.n: .*Keep one"):
        reading(tmp_path, data)


def test_an_older_adk_list_has_scopes_too(tmp_path: Path) -> None:
    data = json.loads(json.dumps(ADK_NAMED))
    data[0]["initial_session"]["state"] = {"room": "hall", "user:name": "Ada", "app:tax": 2}
    found = reading(tmp_path, data)
    scopes = {"session": {"room": "hall"}, "user": {"name": "Ada"}, "app": {"tax": 2}}
    assert found["off"].state == scopes
    write_evalset(found, tmp_path / "again" / "set.json", shape="adk-named")
    again = json.loads((tmp_path / "again" / "set.json").read_text())
    assert again[0]["initial_session"] == data[0]["initial_session"]


# Arguments that look like operators


def adk_calls(args: Any) -> Any:
    return adk_with(intermediate_data={"tool_uses": [{"name": "look", "args": args}]})


def event_calls(args: Any) -> Any:
    part = {"function_call": {"name": "look", "args": args}}
    return adk_with(intermediate_data={"invocation_events": [{"content": {"parts": [part]}}]})


def flow_calls(args: Any) -> Any:
    turn = {"user_content": "Hi", "expected_tool_trajectory": [{"name": "look", "args": args}]}
    return {"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation": [turn]}]}


def flat_calls(args: Any) -> Any:
    use = {"tool_name": "look", "tool_input": args}
    return [{"query": "Hi", "expected_tool_use": [use]}]


def query_calls(args: Any) -> Any:
    asked = {"expected_tool_calls": ["look"], "expected_tool_args": {"look": args}}
    return {"data": [{"query": "Hi", **asked}]}


FOREIGN_CALLS = [adk_calls, event_calls, flow_calls, flat_calls, query_calls]
LITERAL = [
    {"filter": {"$gt": 3}},
    {"filter": {"$unheard": 3}},
    {"filter": {"$eq": {"$gt": 3}}},
    {"filter": {"$eq": 3}},
    {"filter": [{"a": {"$regex": "("}}], "n": 1},
    {"$gt": 3},
]


def meets(expect: Expect, args: Any) -> bool:
    made = ToolCalled(tool="look", args=args, call_id="1")
    return share_in_place(expect.tools or (), [made]) == 1


@pytest.mark.parametrize("args", LITERAL)
@pytest.mark.parametrize("content", FOREIGN_CALLS)
def test_operators_in_foreign_arguments_are_taken_by_the_letter(
    tmp_path: Path, content: Any, args: Any
) -> None:
    found = reading(tmp_path, content(args))
    (turn,) = next(iter(found)).script
    assert turn.expect is not None
    assert meets(turn.expect, args)
    assert not meets(turn.expect, {"filter": 4})
    write_evalset(found, tmp_path / "set" / "set.json", shape=found.shape)
    again = json.loads((tmp_path / "set" / "set.json").read_text())
    assert json.dumps(args) in json.dumps(again)
    assert "$eq" in json.dumps(args) or "$eq" not in json.dumps(again)
    assert said(read_evalset(tmp_path / "set" / "set.json")) == said(found)


def test_operators_in_foreign_arguments_survive_in_our_own_shape(tmp_path: Path) -> None:
    found = reading(tmp_path, adk_calls({"filter": {"$gt": 3}}))
    write_evalset(found, tmp_path / "own.yaml")
    (turn,) = read_evalset(tmp_path / "own.yaml")["a"].turns
    assert turn.expect is not None
    assert meets(turn.expect, {"filter": {"$gt": 3}})
    assert not meets(turn.expect, {"filter": 4})


@pytest.mark.parametrize("shape", ["adk", "adk-flat", "adk-named", "agentflow", "queries"])
@pytest.mark.parametrize("wanted", [{"$gt": 3}, {"$eq": 3}, {"$eq": [3]}])
def test_an_operator_that_is_meant_has_no_place_in_a_foreign_file(
    tmp_path: Path, shape: str, wanted: Any
) -> None:
    case = Case("s", turns=[Turn("Hi", Expect(tools=[call("look", n=wanted)]))])
    with pytest.raises(BadFile, match=rf"no place in the shape {shape}: s\.turns.*args\.n"):
        write_evalset(EvalSet("s", [case]), tmp_path / "s.json", shape=shape)


# What is not an eval set


def test_a_file_of_no_known_shape_is_refused_with_what_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="is a mapping with 'rows'") as told:
        reading(tmp_path, {"rows": []})
    for shape in FILES:
        assert shape == "table" or f"- {shape}: " in str(told.value)


def test_a_config_given_as_cases_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        BadFile, match="is a config, not an eval set: it has `criteria` and no cases"
    ):
        reading(tmp_path, AGENTFLOW_CONFIG)
    with pytest.raises(
        BadFile, match="is a config, not an eval set: it has `metrics` and no cases"
    ):
        reading(tmp_path, {"version": 1, "metrics": ["exact"]})


def test_a_file_with_the_signs_of_two_shapes_is_refused(tmp_path: Path) -> None:
    mixed = {**AGENTFLOW, "eval_cases": [*AGENTFLOW["eval_cases"], *ADK["eval_cases"]]}
    with pytest.raises(
        BadFile, match=r"several kinds of eval set \(adk: .*; agentflow: .*Give shape="
    ):
        reading(tmp_path, mixed)


def test_an_error_says_what_the_file_was_taken_for(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"format: sessions, since it has `sessions`"):
        reading(tmp_path, {"sessions": [{"name": "a", "turns": [{"user": 7}]}]})


@pytest.mark.parametrize(
    "content, told",
    [
        ({"eval_set_id": "s", "eval_cases": [{"eval_id": "a", "conversation_scenario": {}}]}, "neither `conversation` nor"),
        (adk_with(user_content={"parts": [{"file_data": {"file_uri": "gs://a"}}]}), "no text for the user"),
        (adk_with(user_content=None, final_response={"parts": []}), "user_content: it is missing"),
        (adk_with(final_response={"parts": 5}), "final_response.parts: 5 should be a string or a list"),
        (adk_with(intermediate_data={"tool_uses": [{}]}), r"tool_uses\[0\].name: null should be the name"),
        ([{"query": "Hi", "expected_tool_use": [{"tool_name": "t"}]}], "no `tool_input`"),
        ([{"query": 5}], r"\[0\].query: 5 should be a string"),
        ({"data": [{"query": "Hi", "expected_tool_calls": "t"}]}, "expected_tool_calls: 't' should be a list"),
        ({"data": [{"query": "Hi", "expected_tool_args": {"t": {}}}]}, "'t' is not among `expected_tool_calls`"),
        ({"data": [{"query": "Hi"}], "thresholds": {"x": "high"}}, "thresholds.x: 'high' should be a number"),
        ({"type": "x", "sessions": []}, "type: 'x' should be 'evalset'"),
        ({"cases": [{"input": []}]}, r"cases\[0\].input: \[\] should be a string or a list of strings"),
        ({"cases": [{"input": "Hi", "scope": "some"}]}, "'some' should be 'last' or 'all'"),
        ({"cases": [{"input": "Hi"}], "num_runs": 0}, "num_runs: 0 should be 1 or more"),
        ({"cases": [{"input": "Hi"}], "num_runs": True}, "num_runs: true should be a whole number"),
        ([{"starting_prompt": "Hi", "max_turns": 0}], "must be positive"),
        ([{"starting_prompt": "Hi", "goals": "x"}], "goals"),
    ],
)  # fmt: skip
def test_a_mistake_in_a_foreign_file_is_named(tmp_path: Path, content: Any, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        reading(tmp_path, content)


def test_there_is_no_shape_of_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"no shape 'adkk'\. Did you mean 'adk'"):
        reading(tmp_path, ADK, shape="adkk")


ODD: list[Any] = [
    None, 5, "x", [], {}, [1], [[]], [{}], {"cases": 5}, {"version": 1}, {"eval_cases": {}}, {"data": 5},
    {"eval_cases": [5, {}, {"eval_id": 5}]}, {"sessions": [{"turns": 5}]}, {"cases": [{"input": 5}, 5]},
    [{"query": "Hi", "expected_tool_use": 5}], [{"name": "a", "data": 5}], [{"starting_prompt": 5}],
    {"version": 1, "cases": [{"id": "a", "turns": 5, "expect": 5, "user": {"by_args": [5]}}]},
    {"version": 1, "cases": [{"id": "a", "user": {"live": 1}}], "extra": 5, "metadata": None},
]  # fmt: skip


@pytest.mark.parametrize("shape", FILES)
@pytest.mark.parametrize("data", ODD, ids=json.dumps)
def test_data_of_another_shape_is_read_or_refused(tmp_path: Path, shape: str, data: Any) -> None:
    (tmp_path / "set.json").write_text(json.dumps(data))
    try:
        found = read_evalset(tmp_path / "set.json", shape=shape)
    except BadFile as error:
        assert error.problems  # noqa: PT017
    else:
        assert all(case.id for case in found)
