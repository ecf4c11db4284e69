"""`greenroom eval-set add --interactive`: a case from answers, kept only once it is confirmed."""

import os
import pty
from pathlib import Path

import pytest
from click.testing import CliRunner

from apps.terminals import WORDS, environment
from greenroom import EvalSet, Expect, call
from greenroom.apps.cli import main
from warm_python import WarmPython

ADD = ["eval-set", "add", "shop.yaml", "--interactive"]


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    EvalSet("shop").save("shop.yaml")


def answered(*answers: str):
    return CliRunner().invoke(main, ADD, input="".join(f"{answer}\n" for answer in answers))


def test_a_case_is_made_of_its_author_s_answers():
    result = answered(
        "pays-back", "Pays back", "smoke, money",
        "Money back!", "order", "none",
        "Order 7.", "on its way", "refund", '{"order": 7}', '{"ok": true}', "",
        "", "y",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    [case] = EvalSet.load("shop.yaml")
    assert (case.id, case.name, list(case.tags)) == ("pays-back", "Pays back", ["smoke", "money"])
    assert [turn.says for turn in case.turns] == ["Money back!", "Order 7."]
    assert case.turns[0].expect == Expect(contains="order", tools=[])
    assert case.turns[1].expect == Expect(contains="on its way", tools=[call("refund", order=7)])
    assert case.mocks == {"refund": {"ok": True}}


def test_defaults_make_a_case_of_one_sentence():
    result = answered("", "", "", "Hi", "", "", "", "")
    assert result.exit_code == 0, result.output
    [case] = EvalSet.load("shop.yaml")
    assert (case.id, case.script[0].says, case.script[0].expect) == ("case", "Hi", None)


def test_an_id_that_is_taken_and_arguments_that_are_none_are_asked_again():
    answered("one", "", "", "Hi", "", "", "", "")
    result = answered(
        "one", "two", "", "", "Hi", "", "refund", "seven", '{"order": 7}', "ok", "", "", ""
    )
    assert result.exit_code == 0, result.output
    assert "'one' is taken" in result.output
    assert EvalSet.load("shop.yaml")["two"].mocks == {"refund": "ok"}


@pytest.mark.parametrize(
    "answers, code",
    [
        (("", "", "", "Hi", "", "", "", "n"), 130),
        (("", "", "", "Hi"), 130),
        (("", "", "", ""), 3),
    ],
    ids=["not confirmed", "left in the middle", "nobody says anything"],
)
def test_nothing_is_kept_of_a_case_that_was_not_confirmed(answers, code):
    before = Path("shop.yaml").read_text()
    assert answered(*answers).exit_code == code
    assert Path("shop.yaml").read_text() == before


def test_on_a_terminal_the_questions_wait_for_their_answers(tmp_path):
    ours, theirs = pty.openpty()
    env = environment({"COLUMNS": "100"})
    with WarmPython(
        [*WORDS, *ADD], cwd=tmp_path, env=env, stdin=theirs, stdout=theirs, stderr=theirs
    ) as asked:
        os.close(theirs)
        heard = b""
        for question, answer in [
            ("id [case]", "typed"),
            ("name", ""),
            ("tags", ""),
            ("turn 1: the user says", "Hi"),
            ("the answer contains", "Hello"),
            ("a tool that should be called", ""),
            ("turn 2: the user says", ""),
            ("Add it?", "y"),
        ]:
            while question.encode() not in heard:
                heard += os.read(ours, 1024)
            heard = heard.partition(question.encode())[2]
            os.write(ours, f"{answer}\n".encode())
        asked.wait()
    os.close(ours)
    assert asked.returncode == 0
    assert EvalSet.load("shop.yaml")["typed"].script[0].expect == Expect(contains="Hello")
