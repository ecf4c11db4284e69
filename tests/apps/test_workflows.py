"""Workflows of GitHub Actions: ours, the one that `init` writes, and those that the docs show.

There is no runner here. What one would refuse is looked for in the files, and every command is run in the
order of its steps, as a runner runs it.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]

WORKFLOW = ROOT / ".github" / "workflows" / "rehearse.yml"


def steps_of(workflow: Path) -> dict[str, str]:
    """The commands of a workflow by the names of their steps, or by themselves."""
    [job] = yaml.safe_load(workflow.read_text())["jobs"].values()
    return {step.get("name", step["run"]): step["run"] for step in job["steps"] if "run" in step}


def test_what_the_author_of_a_pull_request_writes_is_never_run_as_a_command():
    assert "${{" not in "".join(steps_of(WORKFLOW).values())


def runner(folder: Path) -> dict[str, str]:
    """What a runner puts into the environment of every step."""
    files = {name: folder.with_name(f"{folder.name}-{name}") for name in ("out", "env", "summary")}
    for file in files.values():
        file.touch()
    return {
        "CI": "true",
        "GITHUB_ACTIONS": "true",
        "GITHUB_ACTOR": "ann",
        "GITHUB_REPOSITORY": "shop/agent",
        "GITHUB_REF": "refs/pull/7/merge",
        "GITHUB_SHA": "0123456789abcdef0123456789abcdef01234567",
        "GITHUB_EVENT_NAME": "pull_request",
        "GITHUB_WORKSPACE": str(folder),
        "GITHUB_OUTPUT": str(files["out"]),
        "GITHUB_ENV": str(files["env"]),
        "GITHUB_STEP_SUMMARY": str(files["summary"]),
    }


def in_shell(command: str, folder: Path, **env: str) -> subprocess.CompletedProcess[str]:
    """A step as a runner of GitHub runs it, with a `gh` and a `pip` that write down what they are asked for."""
    tools = folder / "tools"
    tools.mkdir(exist_ok=True)
    run = f'exec {sys.executable} -c "from greenroom.apps.cli import main; main()" "$@"'
    test = f'exec {sys.executable} -m pytest -p no:cacheprovider "$@"'
    asked = {name: f'printf "%s\\n" "$@" > asked-{name}' for name in ("gh", "pip")}
    for name, script in {"greenroom": run, "pytest": test, **asked}.items():
        (tools / name).write_text(f"#!/bin/sh\n{script}\n")
        (tools / name).chmod(0o755)
    path = f"{tools}{os.pathsep}{os.environ['PATH']}"
    given = {"PATH": path, "GREENROOM_STORE": str(folder / "store"), **runner(folder), **env}
    return subprocess.run(
        ["bash", "-e", "-c", command],
        cwd=folder,
        env={**os.environ, **given},
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


@pytest.mark.heavy
def test_the_steps_of_the_workflow_that_init_writes_run_in_their_order(tmp_path):
    project = tmp_path / "shop"
    project.mkdir()
    assert in_shell("greenroom init .", project).returncode == 0
    for command in steps_of(project / ".github" / "workflows" / "evals.yml").values():
        done = in_shell(command, project)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    assert (project / "asked-pip").read_text().split() == ["install", "-r", "requirements.txt"]
    assert (project / "reports" / "eval_report.html").is_file()


# What a runner would refuse

TOP = {"name", "run-name", "on", "permissions", "env", "defaults", "concurrency", "jobs"}
EVENTS = {"push", "pull_request", "workflow_call", "workflow_dispatch", "schedule"}
JOB = {
    *(
        "name",
        "needs",
        "if",
        "permissions",
        "runs-on",
        "environment",
        "concurrency",
        "outputs",
        "env",
    ),
    *(
        "defaults",
        "steps",
        "timeout-minutes",
        "strategy",
        "continue-on-error",
        "container",
        "services",
    ),
    *("uses", "with", "secrets"),
}
STEP = {
    *("id", "if", "name", "uses", "run", "working-directory", "shell", "with", "env"),
    *("continue-on-error", "timeout-minutes"),
}
ACTIONS = {
    "actions/checkout": ({"ref", "fetch-depth", "path", "repository", "token"}, {"ref", "commit"}),
    "actions/setup-python": (
        {"python-version", "cache", "python-version-file"},
        {"python-version"},
    ),
    "actions/upload-artifact": (
        {"name", "path", "if-no-files-found", "retention-days", "overwrite"},
        {"artifact-id", "artifact-url", "artifact-digest"},
    ),
    "actions/download-artifact": ({"name", "path", "pattern", "merge-multiple"}, {"download-path"}),
}
"""The inputs and the outputs of each action."""
CONTEXTS = {"github", "inputs", "secrets", "steps", "matrix", "env", "needs", "runner", "job"}
PERMISSIONS = {"contents", "pull-requests", "checks", "actions", "issues", "id-token", "statuses"}


def workflows() -> Iterator[Any]:
    for file in sorted((ROOT / ".github" / "workflows").glob("*.yml")):
        yield pytest.param(file.read_text(), id=file.name)
    for file in (ROOT / "src").rglob("workflow.yml"):
        yield pytest.param(file.read_text(), id="init")
    for page in sorted((ROOT / "docs").rglob("*.md")):
        blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
        for number, block in enumerate(block for block in blocks if "\njobs:" in block):
            yield pytest.param(block, id=f"{page.stem}-{number}")


WORKFLOWS = pytest.mark.parametrize("text", [*workflows()])


def loaded(text: str) -> dict[str, Any]:
    found = yaml.safe_load(text)
    return {"on": found.pop(True), **found}  # to YAML, `on` is a truth


def test_the_files_and_the_pages_are_looked_at() -> None:
    assert {"rehearse.yml", "test.yml", "init", "ci-0", "ci-1"} <= {one.id for one in workflows()}


@WORKFLOWS
def test_a_workflow_has_the_fields_that_workflows_have(text: str) -> None:
    found = loaded(text)
    assert TOP.issuperset(found)
    events = found["on"]
    assert EVENTS.issuperset([events] if isinstance(events, str) else events)
    assert PERMISSIONS.issuperset(found.get("permissions", {}))
    for name, job in found["jobs"].items():
        assert re.fullmatch(r"[A-Za-z_][\w-]*", name)
        assert JOB.issuperset(job)
        assert PERMISSIONS.issuperset(job.get("permissions", {}))
        assert ("uses" in job) != ("steps" in job)
        assert ("runs-on" in job) == ("steps" in job)
        assert {*job.get("needs", "").split()} <= {*found["jobs"]} - {name}


@WORKFLOWS
def test_every_step_runs_a_command_or_uses_an_action_with_inputs_that_it_has(text: str) -> None:
    for job in loaded(text)["jobs"].values():
        for step in job.get("steps", ()):
            assert STEP.issuperset(step), step
            assert ("uses" in step) != ("run" in step), step
            if "uses" in step:
                action, _, version = step["uses"].partition("@")
                assert version, step
                assert ACTIONS[action][0].issuperset(step.get("with", {})), step
            else:
                assert "with" not in step, step


def expressions_in(value: Any, *, bare: bool = False) -> Iterator[str]:
    """The names that expressions of a part refer to; an `if` is one without brackets."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from expressions_in(inner, bare=key == "if")
    elif isinstance(value, list):
        for inner in value:
            yield from expressions_in(inner)
    elif isinstance(value, str):
        for text in [value] if bare else re.findall(r"\$\{\{(.*?)\}\}", value):
            unquoted = re.sub(r"'[^']*'", "", text)
            yield from re.findall(r"[A-Za-z_][\w-]*(?:\.[\w-]+)+", unquoted)


@WORKFLOWS
def test_expressions_refer_to_what_is_defined(text: str) -> None:
    found = loaded(text)
    called = found["on"].get("workflow_call", {}) if isinstance(found["on"], dict) else {}
    inputs, secrets = called.get("inputs", {}), called.get("secrets", {})
    used: set[str] = set()
    for job in found["jobs"].values():
        known: dict[str, set[str]] = {}
        for part in ({k: v for k, v in job.items() if k != "steps"}, *job.get("steps", ())):
            for name in expressions_in(part):
                context, *rest = name.split(".")
                assert context in CONTEXTS, name
                if context == "inputs":
                    assert rest[0] in inputs, name
                    used.add(rest[0])
                elif context == "secrets" and called:
                    assert rest[0] in secrets, name
                elif context == "matrix":
                    assert rest[0] in job["strategy"]["matrix"], name
                elif context == "steps":  # those before this one
                    assert rest[1] == "outcome" or rest[2] in known[rest[0]], name
            if "id" in part:
                known[part["id"]] = ACTIONS.get(
                    part.get("uses", "").partition("@")[0], ((), set())
                )[1]
    assert used == {*inputs}


@WORKFLOWS
def test_a_caller_of_the_reusable_workflow_gives_what_it_takes(text: str) -> None:
    called = loaded(WORKFLOW.read_text())["on"]["workflow_call"]
    needed = {name for name, one in called["inputs"].items() if one.get("required")}
    for job in loaded(text)["jobs"].values():
        if "uses" in job:
            assert job["uses"].endswith("/.github/workflows/rehearse.yml@main")
            assert needed <= {*job["with"]} <= {*called["inputs"]}
            assert {*job.get("secrets", ())} <= {*called["secrets"]}
            assert job["permissions"] == {"contents": "read", "pull-requests": "write"}
