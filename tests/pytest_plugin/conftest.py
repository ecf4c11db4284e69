"""A small project with an agent and its cases, in which pytest is run."""

import sys
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from greenroom import rehearse
from greenroom.apps.pytest_plugin import collection, fixtures, runner
from greenroom.reports.console import totals
from greenroom.reports.failure import failure_text
from greenroom.results import Report
from nested_pytest import ASYNCIO, few_plugins

AGENT = """
from greenroom import Agent, Scripted, call, tool

@tool
def refund(order: int) -> str:
    '''Pay an order back.'''
    raise RuntimeError("never reached in a rehearsal")

root_agent = Agent(
    "clerk",
    model=Scripted(call("refund", order=7), "Your money is on its way."),
    tools=[refund],
)
"""

GOOD = """
- id: good
  says: Refund order 7
  tags: [smoke]
  mocks: {refund: {value: done}}
  expect: {tools: [{tool: refund, args: {order: 7}}], contains: money}
"""
BAD = """
- id: bad
  says: Refund order 8
  mocks: {refund: {value: done}}
  expect: {tools: [{tool: refund, args: {order: 8}}]}
"""
BROKEN = """
- id: broken
  says: Refund order 7
  expect: {tools: [refund]}
"""


@dataclass(frozen=True)
class Project:
    """The folder of somebody who uses the plug-in."""

    pytester: pytest.Pytester

    @property
    def path(self) -> Path:
        return self.pytester.path

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
        return path

    def cases(self, *cases: str, name: str = "refund.eval.yaml", head: str = "") -> Path:
        return self.write(name, f"version: 1\n{head}cases:\n{''.join(cases)}")

    def settings(self, text: str = "", pytest_options: str = "") -> None:
        self.write(
            "pyproject.toml",
            "[tool.pytest.ini_options]\n"
            'asyncio_default_fixture_loop_scope = "function"\n'
            f"{pytest_options}\n[tool.greenroom.pytest]\n{textwrap.dedent(text)}",
        )

    def run(self, *words: str, beside: Sequence[str] = (ASYNCIO,)) -> pytest.RunResult:
        """pytest in this process with these other plug-ins, where every warning is an error."""
        with few_plugins():
            return self.pytester.runpytest_inprocess(
                "-W", "error", "--strict-markers", *(f"-p{name}" for name in beside), *words
            )

    def run_apart(self, *words: str) -> pytest.RunResult:
        """pytest in a process of its own."""
        with few_plugins():
            return self.pytester.runpytest_subprocess(*words)


@pytest.fixture(scope="session")
def everything_loaded(tmp_path_factory: pytest.TempPathFactory) -> None:
    """A nested pytest forgets what it imports, so all that it needs is loaded before."""
    folder = tmp_path_factory.mktemp("loaded")
    (folder / "warm_up.py").write_text(AGENT)
    (folder / "cases.yaml").write_text(f"version: 1\ncases:\n{GOOD}{BAD}{BROKEN}")
    report = rehearse(str(folder / "warm_up.py"), folder / "cases.yaml", metrics=["exact"])
    report.save(folder / "report.json")
    Report.load(folder / "report.json")
    assert "again" in failure_text(report["bad"], again="again")
    assert totals(report)
    assert {collection, fixtures, runner}


@pytest.fixture
def project(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, everything_loaded: None
) -> Project:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    # Another test's module of the same name would be imported in place of this one.
    for name in ("agent", "shop"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    project = Project(pytester)
    project.settings()
    project.write("agent.py", AGENT)
    return project


def said(result: pytest.RunResult) -> str:
    """All that pytest printed."""
    return result.stdout.str() + result.stderr.str()
