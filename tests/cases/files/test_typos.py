"""Ten typos in a file of any shape, in any language, are ten problems at the right lines and columns."""

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from cases.files import samples
from greenroom.cases.problems import Problem, at
from greenroom.suite.checks.validation import problems_in

OWN = {
    "version": 1,
    "id": "refunds",
    "description": "Money back",
    "metrics": ["exact", {"criterion": "response_match_score", "threshold": 0.7}],
    "trials": 2,
    "cases": [
        {
            "id": "asks-first",
            "name": "Asks first",
            "says": "Money back!",
            "expect": {"tools": [{"tool": "find", "args": {"order": 7}}], "contains": "order"},
            "mocks": {"find": {"value": 7}, "refund": {"in_turn": [{"value": 1}]}},
            "tags": ["smoke"],
            "stop": {"max_turns": 3, "max_seconds": 9},
        },
        {
            "id": "goes-on",
            "turns": [
                {"says": "Hi", "expect": {"response": "Hello"}},
                {"says": "Bye", "expect": {"reference": "Goodbye", "state": {"user": {"a": 1}}}},
            ],
            "state": {"session": {"order": 7}},
            "user": {"persona": "curt", "goals": ["a refund"], "max_turns": 4},
            "metrics": [{"criterion": "contains", "texts": ["bye"]}],
        },
    ],
}
SHAPES: dict[str, Any] = {
    "greenroom": OWN,
    "agentflow": samples.AGENTFLOW,
    "adk": samples.ADK,
    "adk-flat": samples.ADK_FLAT,
    "adk-named": samples.ADK_NAMED,
    "queries": samples.QUERIES,
    "sessions": samples.SESSIONS,
    "fluent": yaml.safe_load(samples.FLUENT),
    "scenarios": samples.SCENARIOS,
}
# What stands in these is the author's own, and spelt as they like; a metric's options are its own.
FREE = ("args", "mocks", "state", "metadata", "tool_input", "expected_tool_args", "thresholds")
FREE_TOO = ("mock_tool_outputs", "initial_state", "state_assertions", "criterion")
Way = tuple[str | int, ...]


def fields_in(data: Any, way: Way = ()) -> Iterator[Way]:
    """The way to each field whose name a file of its shape lays down."""
    if isinstance(data, dict) and "criterion" not in data:
        for key, value in data.items():
            yield (*way, key)
            if key not in (*FREE, *FREE_TOO):
                yield from fields_in(value, (*way, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from fields_in(value, (*way, i))


def misspelt(name: str, random: Random) -> str:
    """A name with two letters in the wrong order, one missing, or one too many."""
    i = random.randrange(1, len(name))
    kinds = [name[:i] + name[i - 1] + name[i:]]
    if len(name) > 5:
        kinds += [name[:i] + name[i + 1 :], name[: i - 1] + name[i] + name[i - 1] + name[i + 1 :]]
    found = random.choice(kinds)
    return found if found != name else f"{name}{name[-1]}"


def renamed(data: Any, new: dict[Way, str], way: Way = ()) -> Any:
    """The data with other names for the fields at these places."""
    if isinstance(data, dict):
        return {
            new.get((*way, key), key): renamed(value, new, (*way, key))
            for key, value in data.items()
        }
    if isinstance(data, list):
        return [renamed(value, new, (*way, i)) for i, value in enumerate(data)]
    return data


def written(data: Any, suffix: str) -> str:
    if suffix == ".json":
        return json.dumps(data, indent=2)
    if suffix == ".jsonl":
        return "\n".join(json.dumps(row) for row in data)
    return yaml.safe_dump(data, sort_keys=False, allow_unicode=True)


def with_typos(data: Any, suffix: str, chosen: list[Way], random: Random) -> tuple[str, set[Any]]:
    """A file's text in which these fields are misspelt, and where each of them stands in it."""
    marks = {way: f"QQ{n:02}" for n, way in enumerate(chosen)}
    text = written(renamed(data, marks), suffix)
    lines = text.split("\n")
    where: set[tuple[int, Way]] = set()
    for mark, way in sorted((mark, way) for way, mark in marks.items()):
        typo = misspelt(str(way[-1]), random)
        number = next(n for n, line in enumerate(lines) if mark in line)
        lines[number] = lines[number].replace(mark, typo)
        marks[way] = typo
        where.add((number, way))
    wanted = json.dumps if suffix != ".yaml" else str
    found: set[tuple[int, int]] = set()
    for number, way in where:
        found.add((number + 1, lines[number].index(wanted(marks[way])) + 1))
    return "\n".join(lines), found


def positions(problems: list[Problem]) -> set[Any]:
    return {(problem.line, problem.column) for problem in problems}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize("shape", SHAPES)
def test_ten_misspelt_fields_are_found_where_they_stand(
    tmp_path: Path, shape: str, suffix: str, seed: int
) -> None:
    random = Random(f"{shape}{suffix}{seed}")
    data = SHAPES[shape]
    ways = [way for way in fields_in(data) if len(str(way[-1])) > 3]
    chosen = random.sample(ways, min(10, len(ways) // 2))
    text, wanted = with_typos(data, suffix, chosen, random)
    file = tmp_path / f"s{suffix}"
    file.write_text(text)
    found = problems_in(str(file))
    assert wanted <= positions(found), (text, [str(problem) for problem in found])
    told = [problem for problem in found if (problem.line, problem.column) in wanted]
    assert all("Did you mean" in problem.fix or "Use one of" in problem.fix for problem in told)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("suffix", [".json", ".yaml"])
def test_a_file_without_a_typo_has_no_problem(tmp_path: Path, shape: str, suffix: str) -> None:
    file = tmp_path / f"s{suffix}"
    file.write_text(written(SHAPES[shape], suffix))
    assert [str(problem) for problem in problems_in(str(file)) if not problem.hint] == []


# What is kept as it is, whatever it is, or said in several forms.
KEPT = ("criterion", "text", "invocation_id", "app_name", "user_id", "role", "type")


def wrong_values(data: Any, way: Way = ()) -> Iterator[tuple[Way, Any]]:
    """Each text of the file that a number cannot stand for, with the way to it."""
    if isinstance(data, dict):
        for key, value in data.items():
            if isinstance(value, str) and key not in KEPT:
                yield (*way, key), 4711
            elif key not in (*FREE, *FREE_TOO):
                yield from wrong_values(value, (*way, key))
    elif isinstance(data, list):
        for i, value in enumerate(data):
            yield from wrong_values(value, (*way, i))


def put(data: Any, way: Way, value: Any) -> Any:
    made = json.loads(json.dumps(data))
    holder = made
    for key in way[:-1]:
        holder = holder[key]
    holder[way[-1]] = value
    return made


@pytest.mark.parametrize("suffix", [".json", ".yaml"])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_number_where_a_text_should_be_is_found_where_it_stands(
    tmp_path: Path, shape: str, suffix: str
) -> None:
    for way, value in wrong_values(SHAPES[shape]):
        text = written(put(SHAPES[shape], way, value), suffix)
        file = tmp_path / f"s{suffix}"
        file.write_text(text)
        line = next(n for n, one in enumerate(text.split("\n"), 1) if str(value) in one)
        found = [problem for problem in problems_in(str(file)) if not problem.hint]
        assert line in {problem.line for problem in found}, (way, [str(p) for p in found])
        assert all("Expect(" not in str(p) and "Stop(" not in str(p) for p in found)


ROWS = [
    {
        "id": f"case-{n}",
        "says": "Hi, you",
        "expect.reference": 'He said "yes"\nand left',
        "expect.tools": '["find"]',
        "mocks": '{"find": {"value": 7}}',
        "tags": "smoke",
        "stop": '{"max_turns": 3}',
        "metadata.owner": "ada",
    }
    for n in range(10)
]
BREAKS = {
    "id": "a/b",
    "expect.tools": '["find',
    "mocks": '{"find": 7}',
    "stop": '{"max_tuns": 3}',
    "tags": '["smoke", 5]',
}


def cell_positions(text: str, marks: list[str]) -> set[Any]:
    found: set[tuple[int, int]] = set()
    for mark in marks:
        before = text[: text.index(mark)]
        found.add((before.count("\n") + 1, len(before) - (before.rfind("\n") + 1) + 1))
    return found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("suffix, delimiter", [(".csv", ","), (".tsv", "\t")])
def test_ten_broken_cells_are_found_where_they_stand(
    tmp_path: Path, suffix: str, delimiter: str, seed: int
) -> None:
    random = Random(seed)
    names = list(ROWS[0])
    rows = [dict(row) for row in ROWS]
    broken = {n: random.choice(list(BREAKS)) for n in range(10)}
    for n, name in broken.items():
        rows[n][name] = f"QQ{n:02}"
    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([row[name] for name in names] for row in rows)
    text = out.getvalue()
    for n, name in broken.items():
        cell = BREAKS[name].replace('"', '""')
        text = text.replace(f"QQ{n:02}", f'"QQ{n:02}{cell}"')
    wanted = {
        (line, column - 1) for line, column in cell_positions(text, [f"QQ{n:02}" for n in broken])
    }
    for n in broken:
        text = text.replace(f"QQ{n:02}", "")
    file = tmp_path / f"s{suffix}"
    file.write_text(text)
    found = problems_in(str(file))
    assert wanted <= positions(found), [str(problem) for problem in found]


@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_bad_criterion_of_the_set_hides_no_problem_of_its_cases(
    tmp_path: Path, count: int
) -> None:
    cases = "".join(f"- {{id: c{n}, says: Hi, tags: ['t ']}}\n" for n in range(count))
    file = tmp_path / "s.yaml"
    file.write_text(f"version: 1\nmetrics: [{{criterion: exact, critical: 'no'}}]\ncases:\n{cases}")
    found = [problem.where for problem in problems_in(str(file))]
    assert found == ["metrics[0]", *(f"cases[{n}].tags[0]" for n in range(count))]


def test_misspelt_columns_are_found_in_the_header_with_what_is_wrong_below(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    file.write_text("id,syas,expect.tols,owner\na/b,Hi,find,ada\n")
    found = {(p.line, p.column): str(p) for p in problems_in(str(file))}
    assert "Did you mean 'says'?" in found[1, 4]
    assert "Did you mean 'expect.tools'?" in found[1, 9]
    assert "'metadata.owner'" in found[1, 21]
    assert "reads like a path" in found[2, 1]


@pytest.mark.parametrize("seed", range(6))
def test_ten_misspelt_fields_of_rows_are_found_where_they_stand(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    rows = [{"id": f"c{n}", "says": "Hi", "expect": {"reference": "Hello"}} for n in range(10)]
    ways = [
        (n, *random.choice([("says",), ("expect",), ("expect", "reference")])) for n in range(10)
    ]
    text, wanted = with_typos(rows, ".jsonl", ways, random)
    file = tmp_path / "s.jsonl"
    file.write_text(text)
    assert wanted <= positions(problems_in(str(file))), text


def test_lines_that_are_no_json_and_rows_of_another_length_are_each_told(tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_text('{"says": "Hi"}\n{"says": \n{"says": 5}\n{"says" "x"}\n')
    found = [p for p in problems_in(str(tmp_path / "s.jsonl")) if not p.hint]
    assert [(p.line, p.column) for p in found] == [(2, 10), (3, 2), (4, 9)]
    (tmp_path / "s.csv").write_text("id,says\na,Hi\nb\nc,Hi,5\nd/e,Hi\n")
    assert [p.line for p in problems_in(str(tmp_path / "s.csv")) if not p.hint] == [3, 4, 5]


def test_what_readers_of_yaml_disagree_about_is_told_at_once_with_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(
        "version: 1\n"
        "cases:\n"
        "  - id: a\n"
        "    says: yes\n"
        "    says: Hi\n"
        "    tags: [*x, 0x10]\n"
        "    name: !t Hi\n"
        "    trget: b\n"
    )
    found = {(p.line, p.column): p.message for p in problems_in(str(file))}
    assert "true or false" in found[4, 11]
    assert "given twice" in found[5, 5]
    assert "aliases" in found[6, 12]
    assert "a number to others" in found[6, 16]
    assert "tags are refused" in found[7, 11]
    assert "unknown" in found[8, 5]


def test_keys_given_twice_and_numbers_that_are_none_are_told_with_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text(
        '{"version": 1,\n "cases": [\n  {"id": "a", "id": "b",\n   "says": 5,\n   "now": NaN}]}'
    )
    assert [(p.line, p.column) for p in problems_in(str(file))] == [(3, 15), (4, 4), (5, 4)]


@pytest.mark.parametrize(
    "name, written",
    [
        ("s.yaml", " mocks: {refund: {value: ...}}"),
        ("s.json", '{"mocks": {"refund": {"value": ...}}}'),
    ],
)
def test_hints_are_written_in_the_language_of_the_file(
    tmp_path: Path, name: str, written: str
) -> None:
    data = {"version": 1, "cases": [{"id": "a", "says": "Hi", "expect": {"tools": ["refund"]}}]}
    file = tmp_path / name
    file.write_text(json.dumps(data) if name == "s.json" else yaml.safe_dump(data))
    (problem,) = problems_in(str(file))
    assert problem.hint
    assert written in problem.fix


def test_a_set_without_cases_is_not_fine_and_neither_is_an_empty_conversation(
    tmp_path: Path,
) -> None:
    file = tmp_path / "s.json"
    for data in ({"version": 1, "cases": []}, {"eval_cases": []}, {"eval_set_id": "a", "data": []}):
        file.write_text(json.dumps(data))
        assert any("no cases" in str(problem) for problem in problems_in(str(file))), data
    empty = {
        "eval_set_id": "s",
        "eval_cases": [{"eval_id": "a", "conversation": []}, {"eval_id": 5}],
    }
    file.write_text(json.dumps(empty))
    found = [str(problem) for problem in problems_in(str(file))]
    assert any("the user never speaks" in problem for problem in found)
    assert any("5 should be a string" in problem for problem in found)


def test_a_misspelt_field_names_what_it_means(tmp_path: Path) -> None:
    file = tmp_path / "s.json"
    file.write_text('{"version": 1, "cases": [{"id": "a", "sayz": "Hi"}]}')
    (problem,) = (p for p in problems_in(str(file)) if not p.hint)
    assert (problem.meant, problem.where) == ("says", at("", "cases", 0, "sayz"))
