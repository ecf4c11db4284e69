"""Slips in files that are told where they stand, once each, with what to write."""

from pathlib import Path

import pytest

from greenroom import Expect
from greenroom.cases import read_evalset
from greenroom.errors import BadFile
from greenroom.suite.checks.validation import problems_in
from greenroom.suite.inputs.criteria import check_config

YAML = """\
version: 1
cases:
  - id: one
    says: Hi
    tags: smoke
    allow_tools: find
    metrics: exact
  - id: two
    says: Hi
    state: {count: 1, session: 3}
    mocks:
      find: {in_turn: 3}
      look: {fault: broken}
  - id: three
    says: Hi
    metrics:
      - criterion: turns_within
        at_mst: 3
"""


def told(tmp_path: Path, name: str, text: str) -> dict[int, list[str]]:
    """What is said of each line of a file; hints are left out."""
    (tmp_path / name).write_text(text, encoding="utf-8")
    found: dict[int, list[str]] = {}
    for problem in problems_in(str(tmp_path / name)):
        if not problem.hint:
            assert problem.line is not None, problem
            fix = f". {problem.fix}" if problem.fix else ""
            found.setdefault(problem.line, []).append(f"{problem.message}{fix}")
    return found


def test_each_slip_in_yaml_has_its_line_and_what_to_write(tmp_path: Path) -> None:
    found = told(tmp_path, "set.yaml", YAML)
    assert found[5] == ["'smoke' should be a list. Write [smoke]"]
    assert found[6] == ["'find' should be a list. Write [find]"]
    assert found[7] == ["'exact' should be a list. Write [exact]"]
    assert found[10] == [
        "'count' is 1 and has no keys; group by scope. Write state: {session: {count: 1}}",
        "'session' is 3 and has no keys; group by scope. Write state: {session: {key: 3}}",
    ]
    assert found[12] == ["3 should be a list"]
    assert [line.partition(" with ")[0] for line in found[13]] == ["'broken' should be a mapping"]
    assert "has no option 'at_mst'" in found[18][0]
    assert sorted(found) == [5, 6, 7, 10, 12, 13, 18]


BLANKS = """\
version: 1
cases:
  - id: one
    says: Hi
    expect:
    metrics: [exact]
  - id: two
    turns:
      - says: Hi
        expect:
          contains:
          response: Hello
"""


def test_an_expectation_left_blank_is_not_taken_for_none(tmp_path: Path) -> None:
    fix = "null expects nothing. Write what is expected, or leave the field out"
    assert told(tmp_path, "set.yaml", BLANKS) == {5: [fix], 11: [fix]}


def test_a_blank_cell_of_a_table_expects_nothing(tmp_path: Path) -> None:
    (tmp_path / "faq.jsonl").write_text('{"question": "Hi", "answer": null, "contains": "Yes"}\n')
    [case] = read_evalset(tmp_path / "faq.jsonl")
    assert case.expect == Expect(contains="Yes")


def test_a_misspelt_column_of_one_line_leaves_its_user_a_voice(tmp_path: Path) -> None:
    lines = [
        '{"id": "a", "says": "Hi", "contains": "x"}',
        '{"id": "b", "say": "Hi"}',
        '{"id": "c" 1}',
    ]
    found = told(tmp_path, "set.jsonl", "\n".join(lines))
    assert [line.partition(".")[0] for line in found[2]] == ["the column 'say' is unknown"]
    assert found[3] == ["Invalid JSON: Expecting ',' delimiter"]
    assert sorted(found) == [2, 3]


def test_a_cell_that_begins_as_json_has_to_be_json(tmp_path: Path) -> None:
    rows = 'id,says,mocks,metadata.note\na,Hi,"{""find"": ",[draft\n'
    found = told(tmp_path, "set.csv", rows)
    assert found == {2: ["""'{"find": ' is not valid JSON: Expecting value"""]}


def test_a_table_none_of_whose_rows_can_be_read_is_not_called_empty(tmp_path: Path) -> None:
    found = told(tmp_path, "set.csv", "id,sayz,metrics\na,Hi,exact\n")
    assert sorted(found) == [1, 2]
    assert "the column 'sayz' is unknown" in found[1][0]


def test_a_misspelt_option_in_a_config_is_named_where_it_stands(tmp_path: Path) -> None:
    config = tmp_path / "criteria.yaml"
    config.write_text("version: 1\nmetrics:\n  - criterion: turns_within\n    at_mst: 2\n")
    with pytest.raises(BadFile, match=r"line 4, column 5, metrics\[0\]\.at_mst: metric"):
        check_config(config)


def test_ids_that_look_the_same_are_the_same(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    ids = ("caf\u00e9", "cafe\u0301")
    lines = [f"  - {{id: {name}, says: Hi, metrics: [exact]}}\n" for name in ids]
    file.write_text(f"version: 1\ncases:\n{''.join(lines)}", encoding="utf-8")
    (found,) = problems_in(str(file))
    assert "is already used by cases[0].id" in found.message
