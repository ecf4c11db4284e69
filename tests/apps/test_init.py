"""`greenroom init` writes a project in which everything passes, and never over anything."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import warm_python
from apps.terminals import WORDS, environment
from greenroom.cases import check
from greenroom.installation import local_path, requirement

FILES = [
    "agent.py",
    "evals/desk.evalset.yaml",
    "tests/test_agent.py",
    ".github/workflows/evals.yml",
    "requirements.txt",
]


@pytest.fixture
def project(tmp_path, monkeypatch, greenroom) -> Path:
    monkeypatch.chdir(tmp_path)
    result = greenroom("init", "shop")
    assert result.exit_code == 0, result.output
    return tmp_path / "shop"


def run(*command: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return warm_python.run(
        command, cwd=cwd, capture_output=True, text=True, check=False, env=environment({})
    )


def test_it_writes_an_agent_cases_a_test_and_a_workflow(project):
    assert [file for file in FILES if not (project / file).is_file()] == []


def test_the_cases_pass_from_the_first_minute(project):
    done = run(
        *WORDS, "eval", "run", "agent.py", "-f", "json", "-f", "junit", "-o", "out/", cwd=project
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 cases: 2 passed" in done.stdout
    assert (project / "out" / "eval_report.json").is_file()


@pytest.mark.slow
def test_the_tests_pass_from_the_first_minute(project):
    quiet = ["-q", "-p", "no:cacheprovider", "-W", "ignore"]
    done = run(sys.executable, "-m", "pytest", "tests/", *quiet, cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


def test_there_is_nothing_to_object_to_in_the_cases(project, greenroom):
    from greenroom import EvalSet

    assert check(EvalSet.load(project / FILES[1])) == []
    assert greenroom("eval-set", "validate", project / FILES[1]).exit_code == 0


def test_the_workflow_is_one_and_runs_the_commands_that_exist(project):
    workflow = yaml.safe_load((project / FILES[3]).read_text())
    runs = [step["run"] for step in workflow["jobs"]["evals"]["steps"] if "run" in step]
    assert any(line.startswith("greenroom eval run agent.py ") for line in runs)
    assert any(line.startswith("pytest tests/") for line in runs)


def test_what_is_already_there_is_left_alone(project, greenroom):
    (project / "agent.py").write_text("# mine")
    (project / FILES[1]).unlink()
    result = greenroom("init", "shop")
    assert result.exit_code == 0
    assert "kept   shop/agent.py" in result.stdout
    assert (project / "agent.py").read_text() == "# mine"
    assert (project / FILES[1]).is_file()


def test_a_place_that_cannot_be_written_to_is_named(tmp_path, greenroom):
    (tmp_path / "file").write_text("")
    result = greenroom("init", tmp_path / "file" / "shop")
    assert result.exit_code == 3
    assert "cannot write" in result.stderr


def test_the_requirements_install_greenroom_as_it_is_installed_here_and_what_the_tests_need(
    project,
):
    lines = (project / "requirements.txt").read_text().splitlines()
    assert requirement() in lines
    assert any(line.startswith("pytest") for line in lines)
    workflow = yaml.safe_load((project / FILES[3]).read_text())
    runs = [step.get("run", "") for step in workflow["jobs"]["evals"]["steps"]]
    assert "pip install -r requirements.txt" in runs


def test_what_to_change_for_ci_is_said_where_greenroom_came_from_this_machine(
    tmp_path, monkeypatch, greenroom
):
    monkeypatch.chdir(tmp_path)
    result = greenroom("init", "shop")
    assert "pytest" in result.stdout
    assert ("which CI does not have" in result.stdout) == bool(local_path())


def test_the_package_is_a_command_too(tmp_path):
    done = run(sys.executable, "-m", "greenroom", "--version", cwd=tmp_path)
    assert done.stdout.startswith("greenroom, version ")
