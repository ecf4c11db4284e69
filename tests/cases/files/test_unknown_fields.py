"""What nobody knows is refused where it stands; an expectation is never kept without a word."""

import json
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
import yaml

from cases.files.samples import (
    ADK,
    ADK_FLAT,
    ADK_NAMED,
    AGENTFLOW,
    FLUENT,
    QUERIES,
    SCENARIOS,
    SESSIONS,
)
from greenroom.cases import Criterion, read_evalset, write_evalset
from greenroom.cases.files import problems
from greenroom.cases.names import MEANINGS, is_expectation
from greenroom.errors import BadFile

OWN = {
    "version": 1,
    "id": "refunds",
    "cases": [
        {
            "id": "a",
            "turns": [
                {"says": "Hi", "expect": {"tools": [{"tool": "look", "args": {"n": 1}}]}},
            ],
            "mocks": {"look": {"fault": {"error": "no"}}},
            "stop": {"max_turns": 3},
        }
    ],
}
EVENTS = {
    "eval_set_id": "s",
    "eval_cases": [
        {
            "eval_id": "a",
            "conversation": [
                {
                    "user_content": {"parts": [{"text": "Hi"}]},
                    "intermediate_data": {
                        "invocation_events": [
                            {
                                "author": "a",
                                "content": {
                                    "parts": [{"function_call": {"name": "look", "args": {}}}]
                                },
                            }
                        ]
                    },
                }
            ],
        }
    ],
}
SETS: dict[str, Any] = {
    "greenroom": OWN,
    "adk": ADK,
    "adk-events": EVENTS,
    "adk-flat": ADK_FLAT,
    "adk-named": ADK_NAMED,
    "agentflow": AGENTFLOW,
    "queries": QUERIES,
    "sessions": SESSIONS,
    "fluent": yaml.safe_load(FLUENT),
    "scenarios": SCENARIOS,
}
# What is the author's own: arguments, state, thresholds by name, mocks by tool, blocks of messages.
FREE = frozenset(
    [
        "args",
        "tool_input",
        "expected_tool_args",
        "state",
        "initial_state",
        "state_assertions",
        "metadata",
        "thresholds",
        "mock_tool_outputs",
        "content",
    ]
)
# Where google-adk keeps what it does not know, or ignores it.
KEPT = {
    ("adk", "eval_cases"),
    ("adk", "session_input"),
    ("adk-events", "eval_cases"),
    ("adk-events", "invocation_events"),
}


def mappings(data: Any, place: str = "", around: str = "") -> Iterator[tuple[str, str, Any]]:
    """Every mapping whose fields have names of the shape's: its place, what it is in, itself."""
    if isinstance(data, list):
        for i, item in enumerate(data):
            yield from mappings(item, f"{place}[{i}]", around)
    elif isinstance(data, dict):
        yield place, around, data
        for key, value in data.items():
            is_message = key == "content" and isinstance(value, dict)
            if key not in FREE or is_message:
                inner = "" if key == "mocks" else f"{place}.{key}"
                yield from mappings(value, inner, key) if key != "mocks" else ()


PLACES = [
    (shape, number, place, around)
    for shape, data in SETS.items()
    for number, (place, around, _) in enumerate(mappings(data))
]


def with_field(shape: str, number: int, field: str, value: Any) -> Any:
    data = deepcopy(SETS[shape])
    _, _, found = list(mappings(data))[number]
    found[field] = value
    return data


def told(folder: Path, data: Any) -> list[str]:
    (folder / "s.json").write_text(json.dumps(data, indent=1))
    return [str(problem) for problem in problems(folder / "s.json")]


@pytest.mark.parametrize("shape", SETS)
def test_the_files_are_fine_as_they_are(tmp_path: Path, shape: str) -> None:
    assert told(tmp_path, SETS[shape]) == []


@pytest.mark.parametrize("shape, number, place, around", PLACES)
def test_a_field_nobody_knows_is_refused_on_every_level_of_every_shape(
    tmp_path: Path, shape: str, number: int, place: str, around: str
) -> None:
    found = told(tmp_path, with_field(shape, number, "x_odd", 1))
    if (shape, around) in KEPT:
        assert found == []
    else:
        (one,) = found
        assert f"{place}.x_odd: the field 'x_odd' is unknown".lstrip(".") in one
        assert one.startswith("line ")


EXPECTATIONS = [name for names in MEANINGS.values() for name in names if is_expectation(name)]


@pytest.mark.parametrize("shape, number, place, around", PLACES)
def test_an_expectation_of_another_shape_is_never_kept_without_a_word(
    tmp_path: Path, shape: str, number: int, place: str, around: str
) -> None:
    if around == "invocation_events":
        pytest.skip("google-adk ignores what its editor leaves on events")
    whole = SETS[shape]
    assert len(EXPECTATIONS) > 30
    for name in [*EXPECTATIONS, "expectedTools", "expected_anything"]:
        data = with_field(shape, number, name, "x")
        if name in list(mappings(whole))[number][2]:
            continue
        (tmp_path / "s.json").write_text(json.dumps(data))
        try:
            found = read_evalset(tmp_path / "s.json")
        except BadFile:
            continue
        # What is known here means something here.
        assert said_more(whole, found, tmp_path), (name, place)


def said_more(whole: Any, found: Any, folder: Path) -> bool:
    (folder / "plain.json").write_text(json.dumps(whole))
    before = read_evalset(folder / "plain.json")
    pairs = zip(before, found, strict=True)
    return any((a.script, a.state, a.metrics) != (b.script, b.state, b.metrics) for a, b in pairs)


@pytest.mark.parametrize(
    "shape, field, meant",
    [
        ("greenroom", "expected_tools", "expect.tools"),
        ("greenroom", "reference_answer", "expect.reference"),
        ("queries", "expected_tools", "expected_tool_calls"),
        ("queries", "reference", "reference_answer"),
        ("sessions", "expected_tools", "turns[].expected_tools"),
        ("fluent", "expected_tool_calls", "expected_trajectory"),
        ("fluent", "final_response", "reference_response"),
        ("agentflow", "expected_tool_use", "conversation[].expected_tool_trajectory"),
        ("adk", "expected_tool_trajectory", "conversation[].intermediate_data.tool_uses"),
        ("adk-named", "expected_tool_calls", "data[].expected_tool_use"),
        ("scenarios", "starting_promt", "starting_prompt"),
    ],
)
def test_what_was_meant_is_named(tmp_path: Path, shape: str, field: str, meant: str) -> None:
    lists = ("cases", "eval_cases", "data", "sessions")
    data = deepcopy(SETS[shape])
    cases = data if isinstance(data, list) else next(data[name] for name in lists if name in data)
    cases[0][field] = ["look"]
    (one,) = told(tmp_path, data)
    assert f"Did you mean {meant!r}?" in one


# google-adk


def test_a_field_of_the_authors_own_survives_where_google_adk_keeps_it(tmp_path: Path) -> None:
    data: Any = deepcopy(ADK)
    data["eval_cases"][0]["owner"] = "ada"
    data["eval_cases"][0]["session_input"]["region"] = "eu"
    (tmp_path / "s.json").write_text(json.dumps(data))
    found = read_evalset(tmp_path / "s.json")
    for name, shape in (("own.yaml", None), ("again.json", "adk")):
        write_evalset(found, tmp_path / name, shape=shape)
        found = read_evalset(tmp_path / name)
    again = json.loads((tmp_path / "again.json").read_text())["eval_cases"][0]
    assert (again["owner"], again["session_input"]["region"]) == ("ada", "eu")


def test_steps_of_google_adk_may_be_in_camel_case(tmp_path: Path) -> None:
    text = json.dumps(ADK).replace("intermediate_data", "intermediateData")
    (tmp_path / "s.json").write_text(text.replace("tool_uses", "toolUses"))
    (turn,) = read_evalset(tmp_path / "s.json")["off"].turns
    assert turn.expect is not None
    assert [use.tool for use in turn.expect.tools or ()] == ["switch"]  # pyright: ignore[reportAttributeAccessIssue]


def test_the_final_session_state_of_google_adk_is_measured(tmp_path: Path) -> None:
    data: Any = deepcopy(ADK)
    data["eval_cases"][0]["final_session_state"] = {"lamp": {"$on": 1}, "user:name": "Ada"}
    (tmp_path / "s.json").write_text(json.dumps(data))
    found = read_evalset(tmp_path / "s.json")
    query = {"session": {"lamp": {"$eq": {"$on": 1}}}, "user": {"name": "Ada"}}
    assert found["off"].metrics == [Criterion("state_matches", options={"query": query})]
    write_evalset(found, tmp_path / "again.json", shape="adk")
    again = json.loads((tmp_path / "again.json").read_text())
    assert again["eval_cases"][0] == data["eval_cases"][0]


# What asks for nothing


EMPTY = [
    ("greenroom", {"turns": [{"says": "Hi", "expect": {"contains": [""]}}]}, "expect.contains"),
    ("greenroom", {"turns": [{"says": "Hi", "expect": {"response": ""}}]}, "expect.response"),
    (
        "greenroom",
        {"turns": [{"says": "Hi", "expect": {"state": {"session": {}}}}]},
        "expect.state",
    ),
    ("greenroom", {"turns": [{"says": "Hi", "expect": {"intermediate": []}}]}, "intermediate"),
    ("greenroom", {"turns": [{"says": "Hi", "expect": {}}]}, "the expectation is empty"),
    ("greenroom", {"turns": []}, "the user never speaks"),
    ("greenroom", {"turns": [], "says": "", "expect": {"tools": []}}, "the user never speaks"),
    ("greenroom", {"turns": [], "user": {"lines": []}}, "the user never speaks"),
    ("greenroom", {"turns": [], "says": "  "}, "which is blank"),
    ("adk", {"conversation": []}, "the user never speaks"),
    ("agentflow", {"conversation": []}, "the user never speaks"),
    ("adk-named", {"data": []}, "the user never speaks"),
    ("sessions", {"turns": []}, "the user never speaks"),
    ("sessions", {"turns": [{"user": "Hi", "expected_response_contains": ""}]}, "checks nothing"),
    ("queries", {"reference_answer": " "}, "reference_answer.*checks nothing"),
    ("fluent", {"input": ""}, "should be a string or a list"),
    ("fluent", {"expected_response_contains": [""]}, "contains.*checks nothing"),
    ("fluent", {"state_assertions": {}}, "state_assertions.*checks nothing"),
]


@pytest.mark.parametrize("shape, fields, words", EMPTY)
def test_what_asks_for_nothing_is_refused(
    tmp_path: Path, shape: str, fields: dict[str, Any], words: str
) -> None:
    lists = ("cases", "eval_cases", "data", "sessions")
    data = deepcopy(SETS[shape])
    cases = data if isinstance(data, list) else next(data[name] for name in lists if name in data)
    cases[0] |= fields
    (tmp_path / "s.json").write_text(json.dumps(data))
    with pytest.raises(BadFile, match=words):
        read_evalset(tmp_path / "s.json")


def test_everything_that_is_wrong_in_one_case_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("""\
version: 1
cases:
  - id: a/b
    says: 5
    expected_tools: [look]
    expect:
      contains: [""]
      response: ""
      state: {session: {}}
      tools: [{tool: ""}]
    mocks:
      look: {valu: 1}
    stop: {max_turns: soon, zone: 3}
    metrics: [5, {criterion: exact, threshold: high}]
    user: {persona: 5}
    tags: [5]
""")
    found = {problem.where: problem.line for problem in problems(tmp_path / "s.yaml")}
    assert found == {
        "cases[0].id": 3,
        "cases[0].says": 4,
        "cases[0].expected_tools": 5,
        "cases[0].expect.contains[0]": 7,
        "cases[0].expect.response": 8,
        "cases[0].expect.state.session": 9,
        "cases[0].expect.tools[0]": 10,
        "cases[0].mocks.look.valu": 12,
        "cases[0].stop.max_turns": 13,
        "cases[0].stop.zone": 13,
        "cases[0].metrics[0]": 14,
        "cases[0].metrics[1].threshold": 14,
        "cases[0].user.persona": 15,
        "cases[0].tags[0]": 16,
    }


@pytest.mark.parametrize(
    "field, meant",
    [
        ("metrics", "'greenroom.metrics'"),
        ("criteria", "'greenroom.metrics'"),
        ("thresholds", "'greenroom.metrics'"),
        ("mocks", "'greenroom.mocks'"),
        ("mockToolOutputs", "unknown"),
        ("num_runs", "unknown"),
        ("trials", "unknown"),
    ],
)
def test_how_a_case_is_run_or_judged_is_never_kept_without_a_word(
    tmp_path: Path, field: str, meant: str
) -> None:
    data = deepcopy(SETS["adk"])
    data["eval_cases"][0][field] = 1
    (found,) = told(tmp_path, data)
    assert f"the field '{field}' is unknown" in found
    assert meant in found


def test_a_scenario_next_to_a_conversation_is_one_problem(tmp_path: Path) -> None:
    data = deepcopy(SETS["adk"])
    scenario = {"starting_prompt": "Hi", "conversation_plan": "Ask."}
    data["eval_cases"][0]["conversation_scenario"] = scenario
    (found,) = told(tmp_path, data)
    assert "has both `conversation` and `conversation_scenario`" in found
