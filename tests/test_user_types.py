"""The examples of README and docs pass a user's strict type checker, mypy's and pyright's."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .test_documents import PAGES, ROOT, all_together, at_its_line, examples

pytestmark = pytest.mark.heavy

NOT_YET = {
    f"docs/how-to/{page}.md"
    for page in (
        "agents",
        "approvals",
        "backends",
        "contracts",
        "costs",
        "coverage",
        "drawing",
        "eval-sets",
        "flow",
        "frameworks",
        "google-adk",
        "judges",
        "langgraph",
        "middleware",
        "model-choice",
        "openai-agents",
        "plugins",
        "pytest",
        "replay",
        "resources",
        "support-desk",
        "typed-state",
    )
}
"""Pages with functions that have no annotations yet."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project that holds every example of the pages."""
    folder = tmp_path_factory.mktemp("project")
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
        if name in NOT_YET:
            continue
        found = [
            example
            for example in examples(name, page.read_text(encoding="utf-8"))
            if example.block.language == "python" and not example.not_run
        ]
        continued = {block.line for example in found for block in example.before}
        for example in found:
            if example.block.line not in continued:
                pieces = [at_its_line(block) for block in (*example.before, example.block)]
                stem = name.removesuffix(".md").replace("/", "_").replace("-", "_")
                file = folder / f"{stem}_{example.block.line}.py"
                file.write_text(all_together(pieces), encoding="utf-8")
    assert len([*folder.glob("*.py")]) > 40
    return folder


def test_pyright_accepts_every_example(project: Path) -> None:
    paths = [str(ROOT / "src"), *(path for path in sys.path if path.endswith("site-packages"))]
    config = {"typeCheckingMode": "strict", "pythonVersion": "3.11", "extraPaths": paths}
    (project / "pyrightconfig.json").write_text(json.dumps(config))
    checked = check("basedpyright", "-p", ".", folder=project)
    assert checked.returncode == 0, checked.stdout


def test_mypy_accepts_every_example(project: Path) -> None:
    pytest.importorskip("mypy")
    files = [path.name for path in sorted(project.glob("*.py"))]
    checked = check("mypy", "--strict", *files, folder=project)
    assert checked.returncode == 0, checked.stdout


def test_a_wrong_example_is_refused(project: Path) -> None:
    wrong = project / "wrong.txt"
    wrong.write_text("from greenroom import Case\n\nCase(7, says=[])\n")
    assert check("mypy", "--strict", wrong.name, folder=project).returncode == 1


def check(tool: str, *words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", tool, *words]
    return subprocess.run(
        command, cwd=folder, capture_output=True, encoding="utf-8", check=False, timeout=600
    )
