"""Eval files that Google published: they load with the counts ADK finds in them, and come back."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from greenroom import EvalSet, SimulatedUser
from greenroom.cases import read_evalset, write_evalset
from greenroom.errors import BadFile

DATA = Path(os.environ.get("GREENROOM_DATA", "")) / "adk"

pytestmark = pytest.mark.skipif(
    "GREENROOM_DATA" not in os.environ, reason="GREENROOM_DATA names no folder with adk/INDEX.json"
)


def published(verdict: str) -> list[Any]:
    if not (DATA / "INDEX.json").is_file():
        return []
    entries = json.loads((DATA / "INDEX.json").read_text())
    return [entry for entry in entries if entry["adk_2_13"] == verdict]


def name_of(entry: Any) -> str:
    return entry["file"].removesuffix(".json")


def counts(evalset: EvalSet) -> dict[str, int]:
    turns = [turn for case in evalset for turn in case.turns]
    return {
        "cases": len(evalset),
        "invocations": len(turns),
        "tool_calls": sum(len(turn.expect.tools or ()) for turn in turns if turn.expect),
        "scenarios": sum(isinstance(case.user, SimulatedUser) for case in evalset),
    }


def test_all_published_files_are_looked_at() -> None:
    assert (len(published("loads")), len(published("REJECT"))) == (48, 1)


@pytest.mark.parametrize("entry", published("loads"), ids=name_of)
def test_a_published_file_has_the_counts_that_adk_finds(entry: Any) -> None:
    found = read_evalset(DATA / entry["file"])
    assert found.shape.startswith("adk")
    assert counts(found) == {name: entry[name] for name in counts(found)}


@pytest.mark.parametrize("entry", published("loads"), ids=name_of)
def test_a_published_file_comes_back_as_it_was(entry: Any, tmp_path: Path) -> None:
    found = read_evalset(DATA / entry["file"])
    path = tmp_path / entry["file"]
    write_evalset(found, path, shape=found.shape)
    assert read_evalset(path) == found
    original = json.loads((DATA / entry["file"]).read_text(encoding="utf-8"))
    assert lean(json.loads(path.read_text(encoding="utf-8"))) == lean(original)


def lean(data: Any) -> Any:
    """The data without what says nothing: null, an empty list or mapping, and the usual role."""
    if isinstance(data, list):
        return [lean(item) for item in data]
    if not isinstance(data, dict):
        return data
    kept = {key: lean(value) for key, value in data.items()}
    if "parts" in kept and kept.get("role") in ("user", "model"):
        del kept["role"]
    return {key: value for key, value in kept.items() if value not in (None, [], {})}


@pytest.mark.parametrize("entry", published("loads"), ids=name_of)
def test_a_published_file_can_be_kept_as_our_own(entry: Any, tmp_path: Path) -> None:
    found = read_evalset(DATA / entry["file"])
    write_evalset(found, tmp_path / "own.yaml")
    again = read_evalset(tmp_path / "own.yaml")
    assert [case.script for case in again] == [case.script for case in found]


@pytest.mark.parametrize("entry", published("REJECT"), ids=name_of)
def test_the_file_that_adk_dies_on_is_refused_with_a_reason(entry: Any) -> None:
    with pytest.raises(
        BadFile,
        match=r"line 6, column 7, \[0\].expected_tool_use\[0\]: the call has no `tool_input`",
    ):
        read_evalset(DATA / entry["file"])
