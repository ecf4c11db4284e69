"""`greenroom runs shrink`: a failed trial of a run as the shortest case that fails the same way."""

import asyncio
import json

import pytest

from greenroom.cases.files import read_evalset
from greenroom.store import Store
from greenroom.suite import load_agent, shrink_trial

SHOP = """
from greenroom.models import ModelReply

@tool
def look() -> str:
    '''Look it up.'''
    raise RuntimeError("never reached in a rehearsal")

ASKED = []

class Forgetful:
    name = "forgetful"
    async def respond(self, request, on_delta=None):
        ASKED.append(request.last)
        said = [m.text for m in request.messages if m.role == "user"]
        if request.last == "Look it up":
            return ModelReply(calls=(call("look"),), cost=0.01)
        looked = any(m.role == "tool" for m in request.messages)
        if said[-1] == "Who am I?":
            return ModelReply("Nobody" if looked else "Ada", cost=0.01)
        return ModelReply("Fine", cost=0.01)

agent = Agent("clerk", model=Forgetful(), tools=[look, refund])
"""
CASES = {
    "version": 1,
    "id": "who",
    "cases": [
        {
            "id": "forgets",
            "turns": [
                {"says": "Hello", "expect": {"contains": "Fine"}},
                {"says": "I am Ada"},
                {"says": "Look it up"},
                {"says": "Thanks"},
                {"says": "Who am I?", "expect": {"contains": "Ada"}},
                {"says": "Bye"},
            ],
            "mocks": {"look": {"value": "found"}, "refund": {"value": "ok"}},
        },
        {"id": "fine", "says": "Hello", "expect": {"contains": "Fine"}},
    ],
}


@pytest.fixture
def run(author, greenroom, monkeypatch, tmp_path):
    """The id of a run in which one case failed and one passed."""
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    author(SHOP)
    (tmp_path / "cases.json").write_text(json.dumps(CASES))
    result = greenroom("eval", "run", "shop.py", "cases.json")
    assert result.exit_code == 1, result.output
    return Store(tmp_path / "runs").runs()[0].id


def test_the_shrunk_case_is_written_and_still_fails(greenroom, run, tmp_path):
    file = "small case.yaml"
    result = greenroom("runs", "shrink", run, "forgets", "--agent", "shop.py", "-o", file)
    assert result.exit_code == 0, result.output
    assert "still fails with 2 messages and 1 mock" in result.stderr
    assert "greenroom eval run shop.py 'small case.yaml'" in result.stderr
    (case,) = read_evalset(tmp_path / file)
    assert [turn.says for turn in case.turns] == ["Look it up", "Who am I?"]
    assert dict(case.mocks) == {"look": "found"}
    assert case.metadata["shrunk_from"] == f"{run} forgets#1"
    assert greenroom("eval", "run", "shop.py", file).exit_code == 1


def test_the_shrunk_case_replaces_a_file_only_by_force_and_is_not_found_beside_its_agent(
    greenroom, run, tmp_path
):
    words = ["runs", "shrink", run, "forgets", "--agent", "shop.py"]
    assert greenroom(*words).exit_code == 0
    refused = greenroom(*words, "-o", "cases.json")
    assert refused.exit_code == 3
    assert "cases.json already exists; give another --output, or --force." in refused.stderr
    assert refused.stdout == ""
    assert greenroom(*words, "--force").exit_code == 0
    beside = greenroom("eval", "run", "shop.py")
    assert "no cases found in shop.py" in beside.stderr
    assert greenroom("eval", "run", "shop.py", "forgets.shrunk.yaml").exit_code == 1


@pytest.mark.parametrize("cases", [[], ["--cases", "cases.json"]], ids=["recorded", "given"])
def test_a_trial_that_lost_a_secret_is_not_shrunk(author, greenroom, monkeypatch, tmp_path, cases):
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    author(SHOP)
    secret = [{"says": "My key is sk-ant-0123456789abcdefghij", "expect": {"contains": "No"}}]
    data = {"version": 1, "cases": [{"id": "key", "turns": secret}]}
    (tmp_path / "cases.json").write_text(json.dumps(data))
    greenroom("eval", "run", "shop.py", "cases.json")
    run = Store(tmp_path / "runs").runs()[0].id
    words = ["runs", "shrink", run, "key", "--agent", "shop.py", "-o", "small.yaml", *cases]
    result = greenroom(*words)
    assert result.exit_code == 3
    assert "case 'key' cannot be made from this record: secrets were removed" in result.stderr
    assert not (tmp_path / "small.yaml").exists()


def test_python_and_the_command_line_find_the_same(greenroom, run, tmp_path):
    result = greenroom("runs", "shrink", run[:-1], "forgets#1", "--agent", "shop.py", "--json")
    data = json.loads(result.stdout)
    assert data["file"] == "forgets.shrunk.yaml"
    (written,) = read_evalset(tmp_path / data["file"])

    async def shrunk():
        agent = await load_agent("shop.py")
        return await shrink_trial(run, "forgets", agent, store=tmp_path / "runs")

    found = asyncio.run(shrunk())
    assert found.case == written
    assert (data["trials"], data["model_calls"]) == (found.trials, found.model_calls)
    assert (data["is_minimal"], found.is_minimal) == (True, True)


def test_what_the_run_was_answered_is_not_asked_again_and_the_rest_is_bounded(greenroom, run):
    words = ["runs", "shrink", run, "forgets", "--agent", "shop.py", "--json", "--force"]
    none = greenroom(*words, "--max-model-calls", 0)
    assert none.exit_code == 1, none.output
    data = json.loads(none.stdout)
    assert (data["model_calls"], data["is_minimal"]) == (0, False)
    assert data["stopped"] == "models were asked 0 times, and may be asked 0 times"
    some = json.loads(greenroom(*words, "--budget", 0.025).stdout)
    assert (some["model_calls"], some["stopped"]) == (3, "$0.03 of $0.025 is spent")


def test_a_failure_that_depends_on_chance_is_tried_several_times(greenroom, run):
    words = ["runs", "shrink", run, "forgets", "--agent", "shop.py", "--json", "--force"]
    data = json.loads(greenroom(*words, "--fails-in", 2, "--trials", 3).stdout)
    assert [turn["says"] for turn in data["case"]["turns"]] == ["Look it up", "Who am I?"]
    wrong = greenroom(*words, "--fails-in", 4, "--trials", 3)
    assert wrong.exit_code == 3


@pytest.mark.parametrize(
    "case, words",
    [
        ("fine", "fine passed, so there is no failure to shrink"),
        ("other", "has no trial 'other' with a ledger"),
    ],
)
def test_what_has_not_failed_is_bad_input(greenroom, run, case, words):
    result = greenroom("runs", "shrink", run, case, "--agent", "shop.py")
    assert result.exit_code == 3
    assert words in " ".join(result.stderr.split())


def test_a_metric_that_is_code_is_found_in_the_cases(author, greenroom, monkeypatch, tmp_path):
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    author(
        SHOP
        + """
@metric
def knows(ledger):
    from greenroom.ledger import response
    return response(ledger) != "Nobody"

cases = [
    Case("forgets", says="Hi", user=Lines("Look it up", "Who am I?"), mocks={"look": "x"}, metrics=[knows])
]
"""
    )
    assert greenroom("eval", "run", "shop.py").exit_code == 1
    run = Store(tmp_path / "runs").runs()[0].id
    words = ["runs", "shrink", run, "forgets", "--agent", "shop.py"]
    without = greenroom(*words)
    assert without.exit_code == 3
    assert "--cases" in without.stderr
    found = greenroom(*words, "--cases", "shop.py")
    assert found.exit_code == 0, found.output
    assert "left out of the file, because it is code: forgets-shrunk.metrics.knows" in " ".join(
        found.stderr.split()
    )


def test_what_a_broken_metric_cannot_measure_is_not_taken_for_passed(
    author, greenroom, monkeypatch, tmp_path
):
    monkeypatch.setenv("GREENROOM_STORE", str(tmp_path / "runs"))
    author(
        SHOP
        + """
import os
from greenroom import Turn

@metric
def judged(ledger):
    if os.environ.get("JUDGE") == "down":
        raise ConnectionError("the judge is down")
    return False

cases = [Case("forgets", turns=[Turn("Hi"), Turn("Who am I?")], metrics=[judged])]
"""
    )
    assert greenroom("eval", "run", "shop.py").exit_code == 1
    run = Store(tmp_path / "runs").runs()[0].id
    monkeypatch.setenv("JUDGE", "down")
    result = greenroom("runs", "shrink", run, "forgets", "--agent", "shop.py", "--cases", "shop.py")
    assert result.exit_code == 3
    assert "could not be shown to fail: it could not be measured" in " ".join(result.stderr.split())
