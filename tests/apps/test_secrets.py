"""No command tells a secret: not on the terminal, not as JSON, not in a file or in its name."""

import json
from pathlib import Path

import pytest
from click.testing import Result

# It never opened anything.
KEY = "sk-ant-api03-0Canary1" + "aB3" * 8
PASSWORD = "c4nary-of-the-environment"

TALKS = f"""
KEY, PASSWORD = "{KEY}", "{PASSWORD}"

def answer(request):
    last = request.messages[-1]
    return f"{{KEY}} is set" if last.role == "tool" else call("refund", order=PASSWORD)

agent = Agent("clerk", model=Scripted(then=answer), tools=[refund])
other = Agent("other", model=Scripted(then=answer), tools=[refund])
broken = Agent("broken", model=Scripted(RuntimeError(f"refused {{KEY}} and {{PASSWORD}}")), tools=[refund])
customer = Scripted(f"I am {{PASSWORD}}", f"<done 1>{{KEY}} is set</done>")
mocks = {{"refund": [KEY, PASSWORD]}}
cases = [
    Case(f"case {{KEY}}", f"Hi, {{PASSWORD}}", name=KEY, tags=[PASSWORD], mocks=mocks,
         metrics=[contains(f"never {{KEY}}")]),
    Case(PASSWORD, f"Hi, {{KEY}}", mocks=mocks, metrics=[contains(KEY)]),
]
"""


@pytest.fixture(autouse=True)
def shop(author, monkeypatch):
    monkeypatch.setenv("CRM_PASSWORD", PASSWORD)
    author(TALKS)


def assert_clean(result: Result, *more: str) -> None:
    for text in (result.stdout, result.stderr, *more):
        assert KEY not in text
        assert PASSWORD not in text
    assert "[redacted:" in "".join((result.stdout, *more))


TALK = ["--prompt", f"I am {KEY}", "--goals", f"{KEY} of {PASSWORD}", "--persona", PASSWORD]
RUN = ["simulate", "run", *TALK, "--mocks", "shop.py:mocks", "--model", "shop.py:customer"]


@pytest.mark.parametrize("agent", ["shop.py", "shop.py:broken"])
@pytest.mark.parametrize("how", [[], ["-v"], ["--json"]])
def test_a_simulation_is_shown_and_kept_without_secrets(greenroom, agent, how):
    result = greenroom(*RUN, agent, *how, "-o", "talk.json")
    kept = Path("talk.json").read_text()
    assert_clean(result, kept)
    assert json.loads(kept)["goals"] == ["[redacted:api_key] of [redacted:CRM_PASSWORD]"]
    assert (agent == "shop.py") == (json.loads(kept)["error"] == "")


@pytest.mark.parametrize("agent", ["shop.py", "shop.py:broken"])
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_a_batch_is_shown_and_kept_without_secrets_even_in_names_of_files(greenroom, agent, how):
    words = ["simulate", "batch", agent, "shop.py", "--model", "shop.py:customer", *how]
    result = greenroom(*words, "-o", "talks")
    files = sorted(Path("talks").iterdir())
    assert [file.name for file in files] == [
        "_redacted_CRM_PASSWORD_.json",
        "case__redacted_api_key_.json",
    ]
    assert_clean(result, *(file.read_text() for file in files))


@pytest.mark.parametrize("how", [[], ["-v"], ["-q"], ["--json"]])
@pytest.mark.parametrize("agents", [["shop.py"], ["shop.py", "--agent", "shop.py:other"]])
def test_a_run_of_one_agent_or_several_is_shown_and_kept_without_secrets(greenroom, agents, how):
    result = greenroom("eval", "run", *agents, "-f", "json", *how)
    assert result.exit_code == 1, result.output
    assert_clean(result, *(file.read_text() for file in Path().glob("eval_report*.json")))


def test_the_json_of_several_agents_holds_the_reports_of_all(greenroom):
    found = greenroom("eval", "run", "shop.py", "--agent", "shop.py:other", "--json").stdout
    cases = [
        [r["case_id"].partition(" #")[0] for r in report["results"]]
        for report in json.loads(found).values()
    ]
    assert cases == 2 * [["case [redacted:api_key]", "[redacted:CRM_PASSWORD]"]]


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_verdicts_that_flip_are_told_without_secrets(greenroom, author, how):
    greenroom("eval", "run", "shop.py", "--store", "runs")
    run = json.loads(greenroom("runs", "list", "--store", "runs", "--json").stdout)[0]["id"]
    author(TALKS.replace("never ", "").replace("contains(KEY)", "contains(KEY * 2)"), "anew.py")
    result = greenroom("eval", "rescore", run, "anew.py", "--store", "runs", *how)
    assert result.exit_code == 2, result.output
    assert result.stdout.count("flipped: ") == (0 if how else 2)
    assert "secrets were removed from its ledger" in result.stdout
    assert_clean(result)


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_mutants_are_shown_without_secrets(greenroom, how):
    result = greenroom("eval", "mutants", "shop.py", "--rules", *how)
    assert "mute" in result.stdout
    assert_clean(result)


SET = {"version": 1, "cases": [{"id": f"c-{KEY}", "says": "x", "tags": [PASSWORD], KEY: 1}]}
DESK = f"""
agent = Agent("desk-{KEY}", model=Scripted("Hi"), instructions="{PASSWORD}")
"""


@pytest.mark.parametrize("how", [[], ["--json"]], ids=["text", "json"])
@pytest.mark.parametrize(
    "words",
    [
        ["eval-set", "list", "fine.json"],
        ["eval-set", "validate", "set.json"],
        ["agent", "cost", "desk.py"],
    ],
    ids=["list", "validate", "cost"],
)
def test_what_files_and_agents_are_called_is_shown_without_secrets(greenroom, author, words, how):
    author(DESK, "desk.py")
    Path("set.json").write_text(json.dumps(SET))
    Path("fine.json").write_text(json.dumps(SET).replace(f', "{KEY}": 1', ""))
    result = greenroom(*words, *how)
    assert_clean(result)
    if how:
        assert json.loads(result.stdout)


def test_a_bad_option_is_repeated_without_its_secrets(greenroom):
    result = greenroom("eval", "run", "shop.py", f"--min-pass-rate={KEY}")
    assert result.exit_code == 3
    assert_clean(result, result.stderr)
    assert "Usage: " in result.stderr
