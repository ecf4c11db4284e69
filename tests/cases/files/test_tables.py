"""A case in each row: columns are known by their usual names, or by what the reader says."""

from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, EvalSet, Expect, call
from greenroom.cases import read_evalset
from greenroom.errors import BadFile


def reading(folder: Path, text: str, name: str = "set.csv", **how: Any) -> EvalSet:
    (folder / name).write_text(text, encoding="utf-8")
    return read_evalset(folder / name, **how)


def test_columns_are_known_by_their_usual_names(tmp_path: Path) -> None:
    text = 'id,question,answer,expected_tools,tags\na,"Oslo, now?",It is dry.,"look, tell",smoke\n'
    (case,) = reading(tmp_path, text)
    assert case == Case(
        "a",
        "Oslo, now?",
        expect=Expect(tools=["look", "tell"], reference="It is dry."),
        tags=["smoke"],
    )


def test_columns_may_be_named_by_the_reader(tmp_path: Path) -> None:
    text = "frage,antwort,stadt\nRegnet es?,Nein.,Oslo\n"
    columns = {"says": "frage", "expect.reference": "antwort", "state.user.city": "stadt"}
    (case,) = reading(tmp_path, text, columns=columns)
    assert (case.id, case.says) == ("case_1", "Regnet es?")
    assert case.expect == Expect(reference="Nein.")
    assert case.state == {"user": {"city": "Oslo"}}


@pytest.mark.parametrize(
    "column, fix",
    [
        ("team", "Name your own column 'metadata.team'"),
        ("expected_tool", "Did you mean 'expected_tools'?"),
        ("expected_tool_calls", "'tools' fills `expect.tools` already"),
        ("expect.tool", "Did you mean 'expect.tools'?"),
    ],
)
def test_a_column_nobody_knows_is_refused_once_with_the_line_of_the_header(
    tmp_path: Path, column: str, fix: str
) -> None:
    text = f"\nquestion,tools,{column}\nHi,look,x\nHo,,\nHu,,x\n"
    with pytest.raises(BadFile) as told:
        reading(tmp_path, text)
    (problem,) = told.value.problems
    assert (problem.message, problem.line) == (f"the column {column!r} is unknown", 2)
    assert fix in problem.fix


def test_a_column_nobody_knows_is_refused_even_if_it_is_empty(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match=r"line 1, .*the column 'expectd' is unknown"):
        reading(tmp_path, "question,answer,expectd\nHi,Ho,\n")


def test_a_field_of_a_line_of_json_is_refused_with_that_line(tmp_path: Path) -> None:
    rows = '{"question": "Hi"}\n{"question": "Hi", "expected_tool": "x"}\n{"question": ""}\n'
    with pytest.raises(BadFile) as told:
        reading(tmp_path, rows, "set.jsonl")
    assert [(p.where, p.line) for p in told.value.problems] == [
        ("[1].expected_tool", 2),
        ("[2]", 3),
    ]


def test_a_column_of_your_own_is_metadata(tmp_path: Path) -> None:
    (case,) = reading(tmp_path, "question,metadata.team\nHi,desk\n")
    assert case.metadata == {"team": "desk"}


def test_an_empty_cell_says_nothing(tmp_path: Path) -> None:
    first, second = reading(tmp_path, "question,answer,tools\nHi,,\nHo,x,[]\n")
    assert first.expect is None
    assert second.expect == Expect(reference="x", tools=[])


def test_calls_with_arguments_are_written_as_json(tmp_path: Path) -> None:
    text = 'question\ttools\nHi\t[{"tool": "look", "args": {"n": 1}}]\n'.replace('"', '""')
    text = text.replace("[{", '"[{').replace("}}]", '}}]"')
    (case,) = reading(tmp_path, text, "set.tsv")
    assert case.expect == Expect(tools=[call("look", n=1)])


def test_a_table_of_a_spreadsheet_may_begin_with_a_byte_order_mark(tmp_path: Path) -> None:
    (case,) = reading(tmp_path, "\ufeffquestion,answer\r\nHi,Ho\r\n")
    assert (case.says, case.extra) == ("Hi", None)


def test_lines_of_json_may_be_rows_or_whole_cases(tmp_path: Path) -> None:
    text = '{"question": "Hi", "answer": "Ho"}\n{"id": "b", "turns": [{"says": "Hi"}]}\n'
    first, second = reading(tmp_path, text, "set.jsonl")
    assert first.expect == Expect(reference="Ho")
    assert second.id == "b"


@pytest.mark.parametrize(
    "text, told",
    [
        ("", "is empty"),
        (
            "a,b\n1,2\n",
            r"none of the columns \['a', 'b'\] is what the user says. Call it `says`",
        ),
        ("question,question\nHi,Ho\n", "two columns are called 'question'"),
        ("question,\nHi,Ho\n", "column 2 has no name"),
        ("question,answer\nHi\n", "line 2, column 1: the row has 1 cells, but the header names 2"),
        ('question\n"Hi\n', "Invalid CSV"),
        ("question,tools\nHi,[oops\n", "'.oops' is not a list in JSON"),
        ("question,id\nHi,../b\n", "reads like a path"),
    ],
)
def test_a_table_that_cannot_be_cases_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(BadFile, match=told):
        reading(tmp_path, text)


def test_a_column_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadFile, match="no column 'frage' for `says`"):
        reading(tmp_path, "question\nHi\n", columns={"says": "frage"})
    with pytest.raises(BadFile, match="'sayz' is not a place in a case"):
        reading(tmp_path, "question\nHi\n", columns={"sayz": "question"})
