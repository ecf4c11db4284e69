"""Shapes of other people's files come in by the same door as ours."""

from pathlib import Path
from typing import Any

import pytest

from greenroom import Case, EvalSet
from greenroom.cases import read_evalset, register_shape, write_evalset
from greenroom.cases.files import Shape, shape_names, shapes
from greenroom.errors import BadFile


def recognises(data: Any) -> str | None:
    return "it has `dialogues`" if isinstance(data, dict) and "dialogues" in data else None


def read(data: Any, stem: str) -> EvalSet:
    return EvalSet(stem, [Case(name, says) for name, says in data["dialogues"].items()])


def write(evalset: EvalSet) -> Any:
    return {"dialogues": {case.id: case.says for case in evalset.cases}}


@pytest.fixture
def dialogues(monkeypatch: pytest.MonkeyPatch) -> Shape:
    monkeypatch.setattr(shapes, "_REGISTERED", {})
    shape = Shape("dialogues", "a mapping with `dialogues`", recognises, read, write)
    register_shape(shape)
    return shape


@pytest.mark.usefixtures("dialogues")
def test_a_registered_shape_is_recognised_read_and_written(tmp_path: Path) -> None:
    evalset = EvalSet("talks", [Case("a", "Hi")])
    write_evalset(evalset, tmp_path / "talks.json", shape="dialogues")
    found = read_evalset(tmp_path / "talks.json")
    assert (found, found.shape) == (evalset, "dialogues")
    assert "dialogues" in shape_names()


@pytest.mark.usefixtures("dialogues")
def test_a_registered_shape_loses_nothing_without_a_word(tmp_path: Path) -> None:
    evalset = EvalSet("talks", [Case("a", "Hi", tags=["smoke"])])
    with pytest.raises(BadFile, match=r"no place in the shape dialogues: a\.tags"):
        write_evalset(evalset, tmp_path / "talks.json", shape="dialogues")


@pytest.mark.usefixtures("dialogues")
def test_a_registered_shape_has_the_rank_of_ours(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text('{"version": 1, "cases": [], "dialogues": {}}')
    with pytest.raises(BadFile, match=r"several kinds .*greenroom: .*dialogues: .*Give shape="):
        read_evalset(tmp_path / "s.json")


def test_a_name_that_is_taken_is_refused(dialogues: Shape) -> None:
    register_shape(dialogues)
    for name in ("dialogues", "adk"):
        with pytest.raises(BadFile, match=f"already a shape called '{name}'"):
            register_shape(Shape(name, "", recognises, read, write))
