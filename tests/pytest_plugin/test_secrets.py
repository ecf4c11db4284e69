"""No secret of a case is told by pytest: in a failure, a name, a property, a file or on the wire."""

from pathlib import Path

import pytest

from greenroom.results import Report
from pytest_plugin.conftest import Project, said

# It never opened anything.
KEY = "sk-ant-api03-0Canary1" + "aB3" * 8
PASSWORD = "c4nary-of-the-environment"

AGENT = f"""
from greenroom import Agent, Scripted, call, tool

@tool
def login(password: str) -> str:
    '''Log in.'''
    raise RuntimeError("never reached in a rehearsal")

root_agent = Agent(
    "clerk",
    model=Scripted(call("login", password="{PASSWORD}"), "Here is {KEY}."),
    tools=[login],
)
"""
CASES = f"""
- id: case {KEY}
  name: name {PASSWORD}
  says: I am {PASSWORD}
  tags: ["{KEY}", "{PASSWORD}"]
  mocks: {{login: {{value: {{token: "{KEY}"}}}}}}
  expect: {{tools: [{{tool: login, args: {{password: "not {PASSWORD}"}}}}], contains: "other {KEY}"}}
- id: unmocked
  says: I am {KEY}
  expect: {{contains: "{PASSWORD}"}}
- id: fine {PASSWORD}
  says: Hi
  mocks: {{login: {{value: "{KEY}"}}}}
  expect: {{contains: "{KEY}"}}
"""
# Whatever anybody keeps of a report, by whatever plug-in, as xdist sends it.
CONFTEST = """
import json

def pytest_report_to_serializable(report):
    with open("wire.txt", "a") as wire:
        print(json.dumps(vars(report), default=str), file=wire)

def pytest_runtest_logreport(report):
    with open("wire.txt", "a") as wire:
        print(report.nodeid, vars(report), report.longreprtext, file=wire)
"""
TEST = """
import pytest
from greenroom.apps.pytest_plugin import EvalRunner

def test_rehearsed(rehearse):
    assert rehearse("agent.py", "secret.eval.yaml").passed

@pytest.mark.greenroom(agent="agent.py", cases="secret.eval.yaml", min_pass_rate=1)
def test_marked(rehearse):
    rehearse()

def test_runner():
    results = EvalRunner("agent.py").run("secret.eval.yaml")
    assert [repr(result) for result in results] == [str(result) for result in results]

def test_score():
    assert EvalRunner("agent.py").run("secret.eval.yaml")[1].trajectory_score == 1.0
"""


@pytest.fixture
def secret(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.setenv("CRM_PASSWORD", PASSWORD)
    project.write("agent.py", AGENT)
    project.write("conftest.py", CONFTEST)
    project.cases(CASES, name="secret.eval.yaml")
    return project


def assert_clean(result: pytest.RunResult, *files: Path) -> None:
    for text in (said(result), *(file.read_text() for file in files)):
        assert KEY not in text
        assert PASSWORD not in text
        assert "[redacted:" in text


KEPT = ["--junitxml=j.xml", "--greenroom-report=r.json"]


@pytest.mark.parametrize("words", [[], ["-v"], ["-vv", "-rA"], ["--collect-only", "-q"]])
def test_cases_of_files_are_told_without_them(secret: Project, words: list[str]) -> None:
    result = secret.run(*words, *KEPT)
    played = "--collect-only" not in words
    files = ["j.xml", "r.json", "wire.txt"] if played else []
    assert_clean(result, *(secret.path / name for name in files))
    if played:
        result.assert_outcomes(passed=1, failed=2)
        assert 'password="[redacted:password]"' in said(result)
        assert "- other [redacted:api_key]" in said(result)


def test_the_command_to_play_a_case_again_finds_it_by_its_name_without_them(
    secret: Project,
) -> None:
    name = "secret.eval.yaml::case [redacted:api_key]"
    assert f"again: pytest '{name}'" in said(secret.run())
    secret.run(name).assert_outcomes(failed=1)


@pytest.mark.parametrize("words", [[], ["-vv"]])
def test_tests_that_rehearse_tell_none(secret: Project, words: list[str]) -> None:
    secret.write("test_it.py", TEST)
    result = secret.run("test_it.py", *words, "--junitxml=j.xml")
    result.assert_outcomes(failed=4)
    assert_clean(result, secret.path / "j.xml", secret.path / "wire.txt")


def test_no_worker_sends_one_home(secret: Project) -> None:
    secret.write("test_it.py", TEST)
    result = secret.run_apart("-n", "1", *KEPT)
    result.assert_outcomes(passed=1, failed=6)
    assert_clean(result, *(secret.path / name for name in ("j.xml", "r.json", "wire.txt")))
    kept = Report.load(secret.path / "r.json")
    assert next(result.case_id for result in kept) == "secret.eval.yaml::case [redacted:api_key]"


@pytest.mark.parametrize(
    "agent",
    [
        f"raise RuntimeError('refused {KEY}')\nroot_agent = 1",
        f"def create_agent(): raise ValueError('refused {KEY}')",
        f"root_agent = 'no agent {KEY}'",
    ],
)
def test_an_agent_that_cannot_be_loaded_tells_none(secret: Project, agent: str) -> None:
    secret.write("agent.py", agent)
    result = secret.run("--junitxml=j.xml")
    result.assert_outcomes(failed=3)
    assert_clean(result, secret.path / "j.xml", secret.path / "wire.txt")


def test_a_file_that_cannot_be_read_tells_none(secret: Project) -> None:
    secret.cases(f"- {{id: a, says: Hi, stop: {{max_turns: {KEY}}}}}\n", name="secret.eval.yaml")
    result = secret.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert_clean(result)
