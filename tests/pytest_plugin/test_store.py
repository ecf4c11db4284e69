"""Tests leave no runs behind, unless the project names a place for them."""

from greenroom.store import Store
from pytest_plugin.conftest import GOOD, Project

TESTS = """
from greenroom.apps.pytest_plugin.runner import EvalRunner

def test_fixture(rehearse):
    assert rehearse("agent.py", "refund.yaml").passed

def test_runner():
    from agent import root_agent
    assert all(result.passed for result in EvalRunner(root_agent).run("refund.yaml"))
"""


def written(project: Project) -> None:
    project.cases(GOOD, name="refund.yaml")
    project.cases(GOOD, name="refund.eval.yaml")
    project.write("test_it.py", TESTS)


def test_nothing_is_written_down_unasked(project: Project, monkeypatch) -> None:
    monkeypatch.delenv("GREENROOM_STORE")
    written(project)
    project.run("--greenroom-agent=agent.py").assert_outcomes(passed=3)
    assert not (project.path / ".greenroom").exists()


def test_a_named_folder_gets_the_runs_of_fixtures_and_files(project: Project, monkeypatch) -> None:
    monkeypatch.delenv("GREENROOM_STORE")
    written(project)
    words = ["--greenroom-agent=agent.py", "--greenroom-store=kept"]
    project.run(*words).assert_outcomes(passed=3)
    runs = Store(project.path / "kept").runs()
    assert [(run.status, run.done) for run in runs] == [("finished", 1)] * 2
    assert not (project.path / ".greenroom").exists()
