"""The JSON schema is made from the types, and every file we write fits it."""

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from cases.files.sets import FULL_SETS, said
from greenroom import Case, EvalSet, Expect, Stop, Turn
from greenroom.cases import evalset_schema, read_evalset

jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")


def errors(data: Any) -> list[str]:
    found = jsonschema.Draft202012Validator(evalset_schema()).iter_errors(data)
    return [error.json_path for error in found]


def test_the_schema_is_a_schema() -> None:
    schema = evalset_schema()
    assert str(schema["$schema"]).endswith("2020-12/schema")
    jsonschema.Draft202012Validator.check_schema(schema)


@given(FULL_SETS)
def test_every_set_that_is_data_fits_the_schema(evalset: EvalSet) -> None:
    assert errors(said(evalset)) == []


@pytest.mark.parametrize(
    "name, record, besides",
    [
        ("case", Case, {"bridge", "agent", "origin"}),
        ("turn", Turn, set()),
        ("expect", Expect, set()),
        ("stop", Stop, set()),
    ],
)
def test_the_schema_knows_every_field(name: str, record: Any, besides: set[str]) -> None:
    schema: Any = evalset_schema()
    known = set(schema["$defs"][name]["properties"])
    assert known == {part.name for part in fields(record) if part.init} - besides


@pytest.mark.parametrize(
    "case",
    [
        {},
        {"id": 5},
        {"id": "a", "turns": "Hi"},
        {"id": "a", "expect": {"tools": [5]}},
        {"id": "a", "mocks": {"t": {"ok": True}}},
        {"id": "a", "stop": {"max_turns": "3"}},
        {"id": "a", "state": {"session": 5}},
        {"id": "a", "metrics": [{"threshold": 1}]},
        {"id": "a", "says": "Hi", "expected_tools": []},
        {"id": "a", "says": "Hi", "expect": {"tool": []}},
        {"id": "a", "says": "Hi", "expect": None},
        {"id": "a", "says": "Hi", "expect": {"contains": None, "response": "Yes"}},
    ],
)
def test_a_case_that_is_refused_does_not_fit_either(case: Any) -> None:
    assert errors({"version": 1, "cases": [case]}) != []


def test_a_file_may_name_the_schema_for_editors(tmp_path: Path) -> None:
    data = {"$schema": "greenroom.json", "version": 1, "cases": [{"id": "a", "says": "Hi"}]}
    assert errors(data) == []
    (tmp_path / "s.json").write_text(json.dumps(data))
    assert read_evalset(tmp_path / "s.json").ids == ["a"]
