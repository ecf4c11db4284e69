"""`greenroom labels`: trials drawn from a run, graded in the terminal, and how far people agree."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from greenroom import Agent, Case, Expect, Scripted, rehearse
from greenroom.apps.cli import main
from greenroom.results import LabelSet


@pytest.fixture(autouse=True)
def drawn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    agent = Agent(
        "hidden-clerk", model=Scripted(then="Your money is on its way.", name="gpt-hidden")
    )
    cases = [
        Case(f"c{n}", says=f"Hello {n}", expect=Expect(contains="money" if n % 2 else "none"))
        for n in range(22)
    ]
    rehearse(agent, cases, store="runs")
    asked = ("--question", "Is it polite?", "--count", "22", "--store", "runs")
    result = CliRunner().invoke(main, ["labels", "draw", "2", *asked, "-o", "labels/polite"])
    assert result.exit_code == 0, result.output


def grade(*typed: str, rater: str = "ana"):
    command = ["labels", "grade", "labels/polite", "--rater", rater]
    return CliRunner().invoke(main, command, input="".join(f"{line}\n" for line in typed))


def test_conversations_are_graded_blind_and_gone_on_with_later():
    result = grade("1", "2 rude in the end", "u", "perhaps", "3", "q")
    assert result.exit_code == 0, result.output
    for hidden in ("hidden-clerk", "gpt-hidden", "passed", "failed", "expected_contains"):
        assert hidden not in result.output
    assert "agent        Your money is on its way." in result.output
    assert "20 trials left" in result.output
    grades = LabelSet("labels/polite").grades()
    assert [(one.value, one.note) for one in grades] == [("yes", ""), ("cannot tell", "")]
    assert "3 of 22" in grade("q").output


def test_agreement_is_told_in_words_and_as_json():
    grade(*["1"] * 22)
    grade(*["1", "2"] * 11, rater="ben")
    said = CliRunner().invoke(main, ["labels", "agreement", "labels/polite"])
    assert said.exit_code == 0
    assert "ana and the judge agree on 11 of 22 (50 %)" in said.output
    data = json.loads(
        CliRunner().invoke(main, ["labels", "agreement", "labels/polite", "--json"]).output
    )
    assert [pair["between"] for pair in data["pairs"]] == [
        ["ana", "ben"], ["ana", "the judge"], ["ben", "the judge"],
    ]  # fmt: skip
    assert data["pairs"][0]["kappa"] == 0.0


@pytest.mark.parametrize(
    "words, said",
    [
        (["draw", "9", "--question", "x", "-o", "new"], "no run"),
        (["draw", "2", "--question", "x", "-o", "labels/polite"], "already exists"),
        (["draw", "2", "--question", " ", "-o", "new"], "what people are asked"),
        (["draw", "2", "--question", "x", "--metric", "none", "-o", "new"], "'none' has measured"),
        (["agreement", "nowhere"], "File not found"),
        (["grade", "labels/polite", "--rater", "the judge"], "name of a person"),
    ],
)
def test_what_cannot_be_meant_is_named(words: list[str], said: str):
    store = ["--store", "runs"] if words[0] == "draw" else []
    result = CliRunner().invoke(main, ["labels", *words, *store])
    assert (result.exit_code, said in result.output) == (3, True), result.output
    assert not Path("new").exists()
