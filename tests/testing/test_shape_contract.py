"""The suite for file shapes: ours pass it, and each way of being wrong is found."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import yaml

from cases.files.samples import FILES
from greenroom.cases import EvalSet
from greenroom.cases.files.shapes import Shape, shape_named
from greenroom.errors import BadFile
from greenroom.ledger.plain import Json
from greenroom.testing import ShapeContract

TESTS = [name for name in vars(ShapeContract) if name.startswith("test_")]


def contract(shape: Shape, *samples: Json) -> ShapeContract:
    class Made(ShapeContract):
        def shape(self) -> Shape:
            return shape

        def samples(self) -> Sequence[Json]:
            return samples

    return Made()


def sample_of(name: str) -> Json:
    file, text = FILES[name]
    return json.loads(text) if file.endswith(".json") else yaml.safe_load(text)


# A table is known by the ending of its file, and read by its columns.
@pytest.mark.parametrize("name", [name for name in FILES if name != "table"])
@pytest.mark.parametrize("test", TESTS)
def test_our_own_shapes_pass(name: str, test: str) -> None:
    getattr(contract(shape_named(name), sample_of(name)), test)()


OWN = shape_named("greenroom")
SAMPLE: Any = {"dialogues": [{"id": "a", "says": "Hi"}, {"id": "b", "says": "Ho"}]}


def recognises(data: Json) -> str | None:
    is_mine = isinstance(data, dict) and isinstance(data.get("dialogues"), list)
    return "it has `dialogues`" if is_mine else None


def read(data: Any, stem: str) -> EvalSet:
    if not recognises(data):
        raise BadFile("no dialogues")
    return OWN.read({"version": 1, "id": stem, "cases": data["dialogues"]}, stem)


def write(evalset: EvalSet) -> Json:
    given: Any = OWN.write(evalset)
    return {"dialogues": given["cases"]}


DIALOGUES = Shape("dialogues", "a list of dialogues", recognises, read, write)


@pytest.mark.parametrize("test", TESTS)
def test_an_honest_shape_passes(test: str) -> None:
    getattr(contract(DIALOGUES, SAMPLE), test)()


def loses_a_case(evalset: EvalSet) -> Json:
    return write(replace(evalset, cases=list(evalset)[:1]))


def trusts(data: Any, stem: str) -> EvalSet:
    for dialogue in data["dialogues"]:
        dialogue["says"].strip()
    return read(data, stem)


def edits(data: Any, stem: str) -> EvalSet:
    found = read(data, stem)
    data["seen"] = True
    return found


class Forgetful:
    """Reads a file differently the second time."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, data: Any, stem: str) -> EvalSet:
        self.count += 1
        return replace(read(data, stem), id=f"{stem} {self.count}")


def trips(data: Any) -> str | None:
    return recognises(data) if data["dialogues"] else None


RECOGNISES, NOTHING_ELSE, SAME, WRITES, BROKEN = TESTS


@pytest.mark.parametrize(
    "wrong, test",
    [
        (replace(DIALOGUES, recognises=lambda _: None), RECOGNISES),
        (replace(DIALOGUES, recognises=lambda _: " "), RECOGNISES),
        (replace(DIALOGUES, looks_for=" "), RECOGNISES),
        (replace(DIALOGUES, recognises=lambda _: "anything"), NOTHING_ELSE),
        (replace(DIALOGUES, recognises=trips), NOTHING_ELSE),
        (replace(DIALOGUES, read=edits), SAME),
        (replace(DIALOGUES, read=Forgetful()), SAME),
        (replace(DIALOGUES, read=lambda _, stem: EvalSet(stem, [])), SAME),
        (replace(DIALOGUES, write=loses_a_case), WRITES),
        (replace(DIALOGUES, write=lambda _: {"other": []}), WRITES),
        (replace(DIALOGUES, write=lambda _: {"dialogues": (1, object())}), WRITES),
        (replace(DIALOGUES, read=trusts), BROKEN),
    ],
)
def test_a_shape_that_is_wrong_fails(wrong: Shape, test: str) -> None:
    with pytest.raises(Exception):  # noqa: B017, PT011 - each fails in its own way
        getattr(contract(wrong, SAMPLE), test)()


def test_a_file_that_two_shapes_take_for_their_own_fails() -> None:
    greedy = replace(DIALOGUES, recognises=lambda _: "it is a file")
    with pytest.raises(AssertionError, match="also recognised as greenroom"):
        contract(greedy, sample_of("greenroom")).test_it_recognises_its_own_files_and_says_why()


def test_no_sample_is_no_proof() -> None:
    with pytest.raises(AssertionError, match="at least one sample"):
        contract(DIALOGUES).test_it_recognises_its_own_files_and_says_why()
