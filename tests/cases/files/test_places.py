"""Every problem of a file is told at once, with its place and its line."""

import json
from pathlib import Path
from typing import Any

import pytest

from greenroom.cases.files import problems, read_evalset
from greenroom.cases.problems import at, keys_of, put
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json

JSON = """\
{
  "version": 1,
  "cases": [
    {"id": "a", "says": "Hi"},
    {
      "id": "b",
      "expect": {
        "tools": [
          "fine",
          {"tool": 5}
        ]
      }
    },
    {"id": "c", "sayz": "Hi"},
    {"id": "a"}
  ],
  "trials": 0
}
"""
YAML = """\
version: 1
cases:
  - {id: a, says: Hi}
  - id: b
    expect:
      tools:
        - fine
        - tool: 5
  - id: c
    sayz: Hi
  - id: a
trials: 0
"""


@pytest.mark.parametrize(
    "name, text, lines",
    [("s.json", JSON, (10, 14, 5, 15, 15, 17)), ("s.yaml", YAML, (8, 10, 4, 11, 11, 12))],
)
def test_all_problems_are_found_with_their_lines(
    tmp_path: Path, name: str, text: str, lines: tuple[int, ...]
) -> None:
    (tmp_path / name).write_text(text)
    found = problems(tmp_path / name)
    assert {(p.where, p.line) for p in found} == {
        ("cases[1].expect.tools[1].tool", lines[0]),
        ("cases[2].sayz", lines[1]),
        ("cases[1]", lines[2]),
        ("cases[3]", lines[3]),
        ("cases[3].id", lines[4]),
        ("trials", lines[5]),
    }
    told = {problem.where: problem for problem in found}
    assert told["cases[1].expect.tools[1].tool"].message == "5 should be a string"
    assert told["cases[2].sayz"].fix.startswith("Did you mean 'says'?")
    assert told["cases[1]"].message == "the conversation is empty: the user never speaks"
    assert "already used by cases[0].id" in told["cases[3].id"].message


TURN = {"user_content": {"parts": [{"text": "Hi"}]}}
FLOW = {"user_content": {"role": "user", "content": "Hi"}}
CASES_WITH_TWINS = [
    ({"version": 1}, "cases", {"says": "Hi"}, "id"),
    ({}, "eval_cases", {"conversation": [TURN]}, "eval_id"),
    ({}, "eval_cases", {"conversation": [FLOW]}, "eval_id"),
    (None, "", {"data": [{"query": "Hi"}]}, "name"),
    ({}, "data", {"query": "Hi"}, "name"),
    ({}, "sessions", {"turns": [{"user": "Hi"}]}, "name"),
    (None, "", {"starting_prompt": "Hi"}, "scenario_id"),
]


@pytest.mark.parametrize("whole, listed, case, id", CASES_WITH_TWINS)
def test_a_case_that_cannot_be_read_does_not_move_the_places_of_others(
    tmp_path: Path, whole: Any, listed: str, case: Any, id: str
) -> None:
    named = [{id: name, **case} for name in ("a", "b", "a")]
    cases = [named[0], {**case, id: 5}, *named[1:]]
    data = cases if whole is None else {**whole, listed: cases}
    (tmp_path / "s.json").write_text(json.dumps(data, indent=1))
    unreadable, twin = problems(tmp_path / "s.json")
    assert unreadable.where.startswith(f"{listed}[1]")
    assert twin.where == f"{listed}[3].{id}"
    assert f"already used by {listed}[0].{id}" in twin.message
    assert twin.fix == "Rename one"


@pytest.mark.parametrize("whole, listed, case, id", CASES_WITH_TWINS)
def test_an_id_counts_though_its_case_cannot_be_read(
    tmp_path: Path, whole: Any, listed: str, case: Any, id: str
) -> None:
    cases = [{id: "a", **case}, {id: "a", **case, "sayz": "Hi"}]
    data = cases if whole is None else {**whole, listed: cases}
    (tmp_path / "s.json").write_text(json.dumps(data, indent=1))
    found = {problem.where for problem in problems(tmp_path / "s.json")}
    assert f"{listed}[1].{id}" in found
    assert len(found) > 1 or "eval_cases" in listed  # google-adk keeps unknown fields


def test_places_hold_where_ids_stand_deeper_or_in_rows(tmp_path: Path) -> None:
    rows = [{"input": "Hi", "metadata": {"id": "a"}}, {"input": 5}, {"input": "Ho"}]
    (tmp_path / "s.json").write_text(json.dumps({"cases": [*rows, rows[0]]}))
    assert [p.where for p in problems(tmp_path / "s.json")] == [
        "cases[1].input",
        "cases[3].metadata.id",
    ]
    (tmp_path / "s.csv").write_text("id,says\na,Hi\nb/c,Hi\nd,Hi\na,Hi\n")
    assert [(p.where, p.line) for p in problems(tmp_path / "s.csv")] == [
        ("[1].id", 3),
        ("[3].id", 5),
    ]


def test_a_file_without_problems_has_none(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"version": 1, "cases": []}')
    assert problems(tmp_path / "s.json") == []


def test_a_file_that_cannot_be_parsed_has_one_problem(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"version": 1,\n "cases": [}')
    (problem,) = problems(tmp_path / "s.json")
    assert (problem.line, problem.column) == (2, 12)
    assert "Expecting value" in problem.message


def test_ten_problems_are_shown_and_the_rest_is_counted(tmp_path: Path) -> None:
    cases = [{"id": f"c{i}", "says": i} for i in range(25)]
    (tmp_path / "s.json").write_text(json.dumps({"version": 1, "cases": cases}, indent=1))
    with pytest.raises(BadFile, match="has 25 problems") as told:
        read_evalset(tmp_path / "s.json")
    assert str(told.value).count("should be a string") == 10
    assert "and 15 more" in str(told.value)
    assert [p.line for p in told.value.problems] == [6 + 4 * i for i in range(25)]


@pytest.mark.parametrize(
    "name, text, line",
    [
        ("s.csv", 'says,id\n"two\nlines",a\nHi,b/c\n', 4),
        ("s.jsonl", '{"says": "Hi"}\n\n{"says": 5}\n', 3),
    ],
)
def test_a_bad_row_is_named_by_its_line(tmp_path: Path, name: str, text: str, line: int) -> None:
    (tmp_path / name).write_text(text)
    (problem,) = problems(tmp_path / name)
    assert (problem.line, problem.where[:3]) == (line, "[1]")


@pytest.mark.parametrize(
    "text, line",
    [
        ('{"version": 1, "cases": [\n{"id": "a",\n "id": "b"}]}', "line 3, column 2"),
        ('{"version": 1,\n "version": 1}', "line 2, column 2"),
        ('[\n[{"a": {\n"b": 1, "b": 2}}]]', "line 3, column 9"),
    ],
)
def test_a_key_given_twice_is_named_where_it_stands_again(
    tmp_path: Path, text: str, line: str
) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(BadFile, match=f"{line}, .*: the key .* is given twice"):
        read_evalset(tmp_path / "s.json")


@pytest.mark.parametrize(
    "keys",
    [
        [],
        ["a"],
        [0],
        ["a", 0, "b"],
        ["with.dot", "with[0]", 'quo"te', "", "é", "back\\slash"],
        [1, 2],
    ],
)
def test_a_place_leads_back_to_its_steps(keys: list[str | int]) -> None:
    assert keys_of(at("", *keys)) == keys


def test_a_value_is_put_where_a_place_leads_unless_something_is_there() -> None:
    data: Json = {"a": [{"b": 1}], "t": "text"}
    assert put(data, "a[0].c", 2)
    assert put(data, "x.y", 3)
    assert data == {"a": [{"b": 1, "c": 2}], "t": "text", "x": {"y": 3}}
    for taken in ("a[0].b", "a[5].c", "t.inside", "a[0]", "a.b", ""):
        assert not put(data, taken, 9)


def test_a_place_in_an_error_cannot_carry_control_characters(tmp_path: Path) -> None:
    data = {"version": 1, "cases": [{"id": "a", "says": "Hi", "mocks": {"\x1b[31m\n": 5}}]}
    (tmp_path / "s.json").write_text(json.dumps(data))
    with pytest.raises(BadFile) as told:
        read_evalset(tmp_path / "s.json")
    assert str(told.value).isprintable()
