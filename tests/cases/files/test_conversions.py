"""Every shape converts to every other, or says what would be lost and does it all the same if asked."""

import json
from pathlib import Path
from typing import Any

import pytest

from cases.files.samples import FILES
from greenroom import Case, EvalSet, Expect, Turn
from greenroom.cases import Criterion
from greenroom.cases.files import read_evalset, shape_names, write_evalset
from greenroom.cases.parts import metric_name
from greenroom.errors import BadFile


def sample(folder: Path, shape: str) -> EvalSet:
    name, text = FILES[shape]
    (folder / name).write_text(text)
    return read_evalset(folder / name)


def losses(found: EvalSet, out: Path, shape: str) -> str | None:
    try:
        write_evalset(found, out, shape=shape)
    except BadFile as error:
        return str(error)
    return None


@pytest.mark.parametrize("target", shape_names())
@pytest.mark.parametrize("source", FILES)
def test_every_shape_converts_to_every_other(tmp_path: Path, source: str, target: str) -> None:
    found = sample(tmp_path, source)
    out = tmp_path / ("out.csv" if target == "table" else "out.json")
    if (lost := losses(found, out, target)) is not None:
        assert "would lose" in lost
        assert not out.exists()
        write_evalset(found, out, shape=target, lossy=True)
    again = read_evalset(out, shape=target)
    assert [turn.says for turn in again.cases[0].script][:1] == [found.cases[0].script[0].says]
    assert again.ids == found.ids or target == "adk-flat"


@pytest.mark.parametrize("shape", ["greenroom", "adk", "table"])
@pytest.mark.parametrize("source", [name for name in FILES if name != "table"])
def test_nothing_is_lost_where_everything_has_a_place(
    tmp_path: Path, source: str, shape: str
) -> None:
    if shape == "table" and source in ("greenroom", "agentflow", "adk", "queries", "fluent"):
        pytest.skip("a table has no place for what such a set says of all its cases")
    found = sample(tmp_path, source)
    out = tmp_path / ("elsewhere.csv" if shape == "table" else "elsewhere.json")
    write_evalset(found, out, shape=shape)
    for case, again in zip(found, read_evalset(out), strict=True):
        assert [turn.says for turn in again.script] == [turn.says for turn in case.script]
        assert [turn.expect for turn in again.script] == [turn.expect for turn in case.script]
        assert again.user == case.user


def test_a_scenarios_file_can_be_written_under_another_name(tmp_path: Path) -> None:
    write_evalset(sample(tmp_path, "scenarios"), tmp_path / "other.json", shape="scenarios")
    assert read_evalset(tmp_path / "other.json").id == "other"


def test_what_google_adk_has_no_field_for_is_expected_when_it_is_read_again(tmp_path: Path) -> None:
    expect = Expect(contains="done", state={"user": {"name": "Ada"}})
    found = EvalSet("s", [Case("a", turns=[Turn("Hi"), Turn("Pay", expect)]), Case("b", "Hi")])
    write_evalset(found, tmp_path / "s.evalset.json", shape="adk")
    data: Any = json.loads((tmp_path / "s.evalset.json").read_text())
    assert data["eval_cases"][0]["greenroom"]["expect"][0] is None
    again = read_evalset(tmp_path / "s.evalset.json")
    assert again["a"].script[1].expect == expect
    assert (again["a"].implied, again["b"].implied) == (True, False)
    data["eval_cases"][0]["greenroom"]["expect"][1]["contans"] = "x"
    (tmp_path / "s.evalset.json").write_text(json.dumps(data, indent=1))
    with pytest.raises(BadFile, match=r"greenroom.expect\[1\].contans.*Did you mean 'contains'"):
        read_evalset(tmp_path / "s.evalset.json")


def test_one_made_from_fluent_comes_back_as_fluent(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "name: a\ncases:\n"
        "- {input: Hi, expected_trajectory: [look], expected_response_contains: x}\n"
        "- {input: [Hi, Bye], expected_trajectory: [], reference_response: Bye.}\n"
    )
    found = read_evalset(tmp_path / "a.yaml")
    write_evalset(found, tmp_path / "b.evalset.json", shape="adk")
    adk = read_evalset(tmp_path / "b.evalset.json")
    write_evalset(adk, tmp_path / "c.yaml", shape="fluent")
    again = read_evalset(tmp_path / "c.yaml")
    assert [case.script for case in again] == [case.script for case in found]
    assert [case.implied for case in again] == [True, True]
    assert [metric_name(metric) for metric in again.metrics] == [
        "tool_trajectory_avg_score",
        "response_match_score",
    ]


def test_criteria_of_google_adk_that_would_decide_otherwise_are_a_loss(tmp_path: Path) -> None:
    counted = Criterion("tool_trajectory_avg_score", threshold=0.5, options={"match_type": "ADK"})
    said = Case("a", "Hi", expect=Expect(intermediate=["One moment."]), implied=False)
    lost = losses(EvalSet("s", [said], metrics=[counted]), tmp_path / "a.yaml", "fluent")
    assert lost is not None
    assert "metrics[0]" in lost
    assert "a.implied" in lost
