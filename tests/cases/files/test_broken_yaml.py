"""A file that cannot be parsed says where, and what else is wrong in the rest of it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from greenroom.cases import read_evalset
from greenroom.cases.files.yaml_text import without_item
from greenroom.errors import BadFile

MANY = """\
version: 1
cases:
  - id: one
    sayz: hi
    expect: {contains: hi}
  - id: two
    says: hi
    expect: {contains: [hi}
  - id: three
    says: hi
   expect: x
  - id: four
    says: hi
    expect: {tool: [x]}
  - id: five
    says: "never closed
  - id: six
    says: hi
    expect: {contains: hi}
"""


def problems(path: Path, text: str) -> list[tuple[int | None, str]]:
    path.write_text(text)
    with pytest.raises(BadFile) as bad:
        read_evalset(path)
    return [(one.line, one.message) for one in bad.value.problems]


def test_every_case_that_cannot_be_parsed_is_named(tmp_path: Path) -> None:
    found = problems(tmp_path / "many.yaml", MANY)
    assert {line for line, message in found if "Invalid YAML" in message} == {8, 11, 16}


@pytest.mark.parametrize("name", ["a.yaml", "a.json"])
def test_the_rest_of_a_file_that_cannot_be_parsed_is_called_unread(
    tmp_path: Path, name: str
) -> None:
    path = tmp_path / name
    path.write_text('{"version": 1, "cases": [\n {"id": "a" "says": "hi"},\n {"sayz": 1}]}')
    with pytest.raises(BadFile) as bad:
        read_evalset(path)
    (problem,) = bad.value.problems
    assert (problem.line, problem.fix) == (2, "The rest was not read")


def test_an_example_is_written_as_a_line_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("cases:\n  - id: one\n    says: hi\n")
    with pytest.raises(BadFile, match="Write version: 1"):
        read_evalset(path)


@given(st.text("ab:- \n[]{}\"'", max_size=80), st.integers(1, 12))
def test_leaving_an_item_out_moves_no_line_and_ends(text: str, line: int) -> None:
    rest = without_item(text, line)
    if rest is not None:
        assert len(rest.splitlines()) == len(text.splitlines())
        assert rest.count("- ") < text.count("- ")
