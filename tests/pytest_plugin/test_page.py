"""The project that the page about pytest describes does what the page says."""

import re
from pathlib import Path

from pytest_plugin.conftest import Project, said
from test_documents import fenced_blocks

PAGE = Path(__file__).parents[2] / "docs/how-to/pytest.md"
BLOCKS = list(fenced_blocks("pytest.md", PAGE.read_text(encoding="utf-8")))
FILE = re.compile(r"file: (?P<name>\S+)")


def written(project: Project) -> None:
    for block in BLOCKS:
        for name in (match["name"] for c in block.comments if (match := FILE.match(c))):
            project.write(name, block.text)
    # What pytest-asyncio wants said stands in the same file.
    settings = (project.path / "pyproject.toml").read_text()
    project.settings(settings.removeprefix("[tool.greenroom.pytest]\n"))
    project.write("criteria.yaml", "version: 1\nmetrics: []\n")


def test_the_page_is_a_project_that_works(project: Project) -> None:
    written(project)
    result = project.run()
    result.assert_outcomes(passed=10, failed=1)
    assert "gate: passed" in said(result)
    assert result.ret == 0, said(result)


def test_the_page_shows_the_failure_as_it_is(project: Project) -> None:
    written(project)
    [shown] = [block.text for block in BLOCKS if "pytest refund.eval.yaml" in block.comments]
    assert shown in said(project.run("refund.eval.yaml"))
