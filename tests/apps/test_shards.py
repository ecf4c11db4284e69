"""A set run in parts: each case in one of them, and their reports put together by one command."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

from greenroom.results import Report

AGENT = """\
from greenroom import Agent, Scripted

agent = Agent("clerk", model=Scripted(then="Hello: 5 %, yes"))
"""
SETS = {
    "evals/one.evalset.yaml": "version: 1\nid: first\ncases:\n"
    "- {id: a, says: Hi, expect: {contains: Hello}}\n"
    "- id: b\n  says: Hi\n  expect: {contains: 'Bye\n    now'}\n",
    "evals/two.evalset.yaml": "version: 1\nid: second\ncases:\n"
    "- {id: c, says: Hi, expect: {contains: Hello}}\n",
}


@pytest.fixture
def shop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("agent.py").write_text(AGENT)
    Path("evals").mkdir()
    for name, text in SETS.items():
        Path(name).write_text(text)
    return tmp_path


def test_each_case_is_in_one_shard_and_merging_them_gives_the_whole(shop, greenroom):
    words = ["eval", "run", "agent.py", "evals", "-q", "--no-store", "-f", "json"]
    for n in (1, 2):
        greenroom(*words, "--shard", f"{n}/2", "-o", f"shard-{n}.json")
    merged = greenroom("eval", "merge", "shard-1.json", "shard-2.json", "-o", "all.json")
    assert merged.exit_code == 1
    assert "pass rate" in merged.stderr
    whole = Report.load("all.json")
    assert sorted(result.case_id for result in whole) == ["a", "b", "c"]
    assert whole.summary.passed == 2
    places = {
        case: (place.evalset, place.file, place.line) for case, place in whole.sources.items()
    }
    assert places["b"] == ("first", "evals/one.evalset.yaml", 5)
    loose = greenroom("eval", "merge", "shard-1.json", "shard-2.json", "--min-pass-rate", "0.5")
    assert loose.exit_code == 0


def test_a_set_of_which_a_part_is_missing_is_not_judged(shop, greenroom):
    words = ["eval", "run", "agent.py", "evals", "-q", "--no-store", "-f", "json"]
    for n in (1, 3):
        done = greenroom(*words, "--shard", f"{n}/3", "-o", f"shard-{n}.json")
        assert done.exit_code == 0, done.output
    merged = greenroom("eval", "merge", "shard-1.json", "shard-3.json")
    assert merged.exit_code == 3
    assert "the report of part 2 is missing" in merged.stderr
    greenroom(*words, "--shard", "2/3", "-o", "shard-2.json")
    merged = greenroom("eval", "merge", *(f"shard-{n}.json" for n in (1, 2, 3)), "-o", "all.json")
    assert merged.exit_code == 1
    assert Report.load("all.json").notes == Report.load("shard-1.json").notes[:-1]


def test_a_trial_that_is_in_two_reports_is_refused(shop, greenroom):
    greenroom("eval", "run", "agent.py", "evals", "-q", "--no-store", "-o", "one.json")
    twice = greenroom("eval", "merge", "one.json", "one.json")
    assert twice.exit_code == 3
    assert "case 'a', trial 1, is in" in twice.stderr


@pytest.mark.parametrize("shard", ["3/2", "0/2", "x", "1/0", "1"])
def test_a_shard_that_is_none_is_refused(shop, greenroom, shard):
    assert greenroom("eval", "run", "agent.py", "evals", "--shard", shard).exit_code == 3


def test_a_shard_without_a_case_is_refused(shop, greenroom):
    result = greenroom("eval", "run", "agent.py", "evals", "--shard", "4/4")
    assert result.exit_code == 3
    assert "has no case: there are 3" in result.stderr


def test_junit_names_each_case_by_its_eval_set(shop, greenroom):
    greenroom("eval", "run", "agent.py", "evals", "-q", "--no-store", "-o", "junit.xml")
    found = ElementTree.parse("junit.xml").iter("testcase")
    assert {case.get("name"): case.get("classname") for case in found} == {
        "a": "first",
        "b": "first",
        "c": "second",
    }


def test_annotations_point_at_the_file_and_line_of_the_case_and_stay_on_their_line(shop, greenroom):
    words = ["-f", "annotations=notes.txt", "--no-store", "-q"]
    greenroom("eval", "run", "agent.py", "evals", *words)
    first, gate = Path("notes.txt").read_text().splitlines()
    assert first.startswith("::error file=evals/one.evalset.yaml,line=5,title=b%3A failed::")
    assert "missing" in first
    assert gate.startswith("::error title=gate::")


def test_a_report_without_known_places_says_nothing_of_them(shop):
    from greenroom import Agent, Case, Scripted, rehearse

    report = rehearse(Agent("a", model=Scripted("Hi")), [Case("a", "Hi")], store=False)
    report.save("plain.json")
    assert "sources" not in json.loads(Path("plain.json").read_text())


WORKFLOW = Path(__file__).parents[2] / ".github" / "workflows" / "rehearse.yml"


def steps_of(workflow: Path) -> dict[str, str]:
    """The commands of a workflow by the names of their steps."""
    [job] = yaml.safe_load(workflow.read_text())["jobs"].values()
    return {step["name"]: step["run"] for step in job["steps"] if "run" in step and "name" in step}


def test_what_the_author_of_a_pull_request_writes_is_never_run_as_a_command():
    assert "${{" not in "".join(steps_of(WORKFLOW).values())


def in_shell(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A step as a runner of GitHub runs it, with a `gh` that writes down what it is asked for."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    run = f'exec {sys.executable} -c "from greenroom.apps.cli import main; main()" "$@"'
    for name, script in {"greenroom": run, "gh": 'printf "%s\\n" "$@" > asked-gh'}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env={**os.environ, "PATH": path, "GREENROOM_STORE": str(folder / "store"), **env},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.heavy
def test_the_steps_of_the_reusable_workflow_run_in_a_new_project(tmp_path):
    steps, words = steps_of(WORKFLOW), {"CASES": "", "OPTIONS": "", "BASELINE": ""}
    assert in_shell("greenroom init .", tmp_path).returncode == 0
    agent = {"AGENT": "agent.py"}
    made = in_shell(steps["Rehearse"], tmp_path, **agent, **words)
    assert made.returncode == 0, made.stdout + made.stderr
    names = ["eval_report.json", "eval_report.md", "junit.xml"]
    assert all((tmp_path / "reports" / name).stat().st_size for name in names)
    shutil.copy(tmp_path / "reports" / "eval_report.json", tmp_path / "main.json")
    words = {"CASES": "evals", "OPTIONS": "--trials 2 -q", "BASELINE": "main.json"}
    again = in_shell(steps["Rehearse"], tmp_path, **agent, **words)
    assert again.returncode == 0, again.stdout + again.stderr
    assert in_shell(steps["Annotate the cases that did not pass"], tmp_path).returncode == 0
    where = {"PULL_REQUEST": "7", "REPORTS": "https://example.org/reports"}
    done = in_shell(steps["Comment on the pull request"], tmp_path, **where)
    assert done.returncode == 0, done.stderr
    asked = (tmp_path / "asked-gh").read_text().split()
    assert asked[:3] == ["pr", "comment", "7"]
    comment = (tmp_path / asked[-1]).read_text()
    assert comment.startswith("### ✅ Not significantly worse than <code>main</code>")
    assert comment.endswith("[All reports of this run](https://example.org/reports)\n")


def test_steps_after_a_run_that_wrote_nothing_change_nothing(tmp_path):
    steps = steps_of(WORKFLOW)
    words = {"AGENT": "$(touch harmed)", "CASES": "", "OPTIONS": "", "BASELINE": ""}
    assert in_shell(steps["Rehearse"], tmp_path, **words).returncode == 3
    assert in_shell(steps["Annotate the cases that did not pass"], tmp_path).returncode == 0
    assert in_shell(steps["Comment on the pull request"], tmp_path, REPORTS="").returncode == 0
    assert not (tmp_path / "asked-gh").exists()
    assert not (tmp_path / "harmed").exists()
