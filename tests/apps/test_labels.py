"""`greenroom labels`: trials drawn from a run, graded in the terminal, and how far people agree."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from greenroom import Agent, Case, Expect, Scripted, rehearse
from greenroom.apps.cli import main
from greenroom.cases import Criterion
from greenroom.cases.parts import MetricLike
from greenroom.metrics import contains, metric
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
        (["agreement", "nowhere"], "there is no file"),
        (["grade", "labels/polite", "--rater", "the judge"], "name of a person"),
    ],
)
def test_what_cannot_be_meant_is_named(words: list[str], said: str):
    store = ["--store", "runs"] if words[0] == "draw" else []
    result = CliRunner().invoke(main, ["labels", *words, *store])
    assert (result.exit_code, said in result.output) == (3, True), result.output
    assert not Path("new").exists()


def labelled(folder: str, wrong: int = 0) -> None:
    """A person says what the judge said, but for some of what it passed."""
    labels = LabelSet(folder)
    for number, (name, item) in enumerate(labels.items.items()):
        lenient = item.passed and number < wrong
        labels.grade(name, "ana", "yes" if item.passed and not lenient else "no")


def calibrated(*words: str):
    return CliRunner().invoke(main, ["labels", "calibrate", *words, "--store", "runs"])


def test_what_the_verdicts_on_a_run_are_worth_is_told_in_words_and_as_json():
    labelled("labels/polite", wrong=6)
    said = calibrated("labels/polite", "2")
    assert said.exit_code == 0, said.output
    assert "pass by the judge" in said.output
    assert "that they fail" in said.output
    assert "it is unknown whether" in said.stderr  # whole trials have no judge with a digest
    [data] = json.loads(calibrated("labels/polite", "2", "--json").stdout)
    assert data["by_judge"]["share"] == 0.5
    assert data["by_people"]["share"] < 0.5
    right, all_of_them = data["judge_right_of_passed"]
    assert right == all_of_them
    assert data["left_out"] == 0


def test_trials_without_a_verdict_are_counted_where_they_are_left_out():
    labelled("labels/polite", wrong=6)

    @metric
    def some(response: str, case: Case) -> bool:
        if case.id == "c0":
            raise RuntimeError("no idea")
        return case.id == "c1"

    agent = Agent("clerk", model=Scripted(then="Your money."))
    cases = [Case(f"c{n}", says="Hello") for n in range(3)]
    run = rehearse(agent, cases, metrics=[some], store="runs")
    assert "1 trial without a verdict left out" in calibrated("labels/polite", run.id).stdout


def test_grades_of_a_judge_that_has_changed_are_refused():
    agent = Agent("clerk", model=Scripted(then="Your money."))
    cases = [Case(f"c{n}", says=f"Hello {n}") for n in range(22)]
    first = rehearse(agent, cases, metrics=[contains("money", name="judge")], store="runs")
    then = rehearse(agent, cases, metrics=[contains("Your", name="judge")], store="runs")
    asked = ("--question", "Is it?", "--metric", "judge", "--store", "runs", "-o", "labels/judge")
    assert CliRunner().invoke(main, ["labels", "draw", first.id, *asked]).exit_code == 0
    labelled("labels/judge", wrong=5)
    assert calibrated("labels/judge", first.id).exit_code == 3  # it fails nothing: says nothing
    refused = calibrated("labels/judge", then.id)
    assert refused.exit_code == 3
    assert "the judge 'judge' has changed since these trials were drawn" in refused.stderr


def judged(case: Callable[[int], Case]) -> str:
    agent = Agent("clerk", model=Scripted(then=lambda request: f"Echo {request.last}"))
    return rehearse(agent, [case(n) for n in range(24)], store="runs").id


ODD = Criterion("contains", options={"texts": ["odd"], "name": "judge"})


@pytest.mark.parametrize("own", [contains("odd", name="judge"), ODD])
def test_a_judge_of_the_cases_is_known_as_one_of_the_run_is(own: MetricLike):
    says = ("even", "odd")
    run = judged(lambda n: Case(f"c{n}", says=says[n % 2], metrics=[own]))
    asked = ("--question", "Is it?", "--metric", "judge", "--store", "runs", "-o", "labels/judge")
    assert CliRunner().invoke(main, ["labels", "draw", run, *asked]).exit_code == 0
    labelled("labels/judge")
    assert "the judge passes 12 of 12" in calibrated("labels/judge", run).stdout
    agent = Agent("clerk", model=Scripted(then=lambda request: f"Echo {request.last}"))
    cases = [Case(f"d{n}", says=says[n % 2]) for n in range(24)]
    same = rehearse(agent, cases, metrics=[own], store="runs").id
    assert "the judge passes 12 of 12" in calibrated("labels/judge", same).stdout
    other = judged(lambda n: Case(f"c{n}", says="odd", metrics=[contains("Echo", name="judge")]))
    refused = calibrated("labels/judge", other)
    assert "the judge 'judge' has changed since these trials were drawn" in refused.stderr
    without = judged(lambda n: Case(f"c{n}", says="odd", metrics=[contains("Echo", name="else")]))
    assert "this run has no metric 'judge'" in calibrated("labels/judge", without).stderr


def test_an_expectation_can_be_calibrated_like_a_judge():
    asked = ("--metric", "expected_contains", "--question", "Is it?", "--store", "runs")
    words = ["labels", "draw", "2", *asked, "-o", "labels/expected"]
    assert CliRunner().invoke(main, words).exit_code == 0
    labelled("labels/expected")
    assert "the judge passes 11 of 11" in calibrated("labels/expected", "2").stdout
