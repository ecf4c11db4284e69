"""`greenroom runs replay` and `greenroom runs diff` on recorded trials."""

import json

import pytest

from greenroom import Agent, Case, Expect, Scripted, rehearse
from greenroom.store import Store

SHOP = """
@tool
def note(text: str) -> str:
    '''Note it.'''
    raise RuntimeError

class Once:
    name = "once"
    async def respond(self, request, on_delta=None):
        if not ANSWERS:
            raise SystemError("a model was asked")
        return ANSWERS.pop(0)

from greenroom.models import ModelReply
ANSWERS = [ModelReply("No one."), ModelReply("Two.")] * LIVE
agent = Agent("clerk", model=Once(), instructions="Be kind.")
"""


@pytest.fixture
def run(author, greenroom, monkeypatch, tmp_path):
    """The id of a run with two trials that answered differently; later the model cannot be asked."""
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    author(SHOP.replace("LIVE", "1"))
    (tmp_path / "cases.json").write_text(
        '{"version": 1, "cases": [{"id": "a", "says": "Hi", "expect": {"contains": "o"}}]}'
    )
    result = greenroom(
        "eval", "run", "shop.py", "cases.json", "--trials", 2, "--max-concurrency", 1
    )
    assert result.exit_code == 0, result.output
    return Store(tmp_path / "runs").runs()[0].id


def test_a_trial_is_replayed_without_asking_and_nothing_differs(author, greenroom, run):
    author(SHOP.replace("LIVE", "0"), "later.py")
    for case in ("a", "a#2"):
        result = greenroom("runs", "replay", run, case, "--agent", "later.py")
        assert (result.exit_code, "no difference" in result.stderr) == (0, True), result.output


def test_a_secret_in_the_instructions_is_no_difference(author, greenroom, monkeypatch, tmp_path):
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    shop = SHOP.replace("Be kind.", "The key is sk-ant-0123456789abcdefghij.")
    author(shop.replace("LIVE", "1"))
    (tmp_path / "cases.json").write_text('{"version": 1, "cases": [{"id": "a", "says": "Hi"}]}')
    greenroom("eval", "run", "shop.py", "cases.json")
    author(shop.replace("LIVE", "0"), "later.py")
    run = Store(tmp_path / "runs").runs()[0].id
    result = greenroom("runs", "replay", run, "a", "--agent", "later.py")
    assert (result.exit_code, "no difference" in result.stderr) == (0, True), result.output


def test_an_agent_that_changed_is_told_by_its_first_difference(author, greenroom, run):
    author(SHOP.replace("LIVE", "0").replace("Be kind.", "Be brief."), "later.py")
    result = greenroom("runs", "replay", run, "a", "--agent", "later.py")
    assert result.exit_code == 1
    assert "instructions: 'Be kind.' when recorded, 'Be brief.' now" in " ".join(
        result.stdout.split()
    )
    result = greenroom("runs", "replay", run, "a", "--agent", "later.py", "--json")
    assert "Be brief." in json.loads(result.stdout)["drift"]


def test_two_trials_are_compared(greenroom, run):
    for words in ([], ["--with", "#2"], ["--with", f"{run}#2"]):
        result = greenroom("runs", "diff", run, "a", *words)
        assert result.exit_code == 1
        assert "model_replied.text is 'No one.' in the first, 'Two.' in the second" in " ".join(
            result.stdout.split()
        )
    assert greenroom("runs", "diff", run, "a", "--with", run).exit_code == 0
    found = json.loads(greenroom("runs", "diff", run, "a", "--json").stdout)["differences"]
    assert {"agent"} == {one["voice"] for one in found}


def test_a_trial_that_is_not_there_is_bad_input(greenroom, run):
    result = greenroom("runs", "diff", run, "b")
    assert result.exit_code == 3
    assert "a#1, a#2" in " ".join(result.stderr.split())


def test_a_run_remembers_where_its_agent_was_found(author, greenroom, run):
    author(SHOP.replace("LIVE", "0"))
    result = greenroom("runs", "replay", run, "a")
    assert (result.exit_code, "no difference" in result.stderr) == (0, True), result.output


def test_a_run_of_an_agent_given_as_an_object_asks_for_its_name(greenroom, run, tmp_path):
    given = Agent("clerk", model=Scripted(then="No."))
    case = Case("a", says="Hi", expect=Expect(contains="Yes"))
    rehearse(given, case, store=tmp_path / "runs")
    latest = Store(tmp_path / "runs").runs()[0].id
    for command in ("replay", "shrink"):
        result = greenroom("runs", command, latest, "a")
        assert result.exit_code == 3
        assert "--agent desk.py" in result.stderr
