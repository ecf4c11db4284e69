"""The examples of README and docs pass a user's strict type checker, mypy's and pyright's."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from .test_documents import PAGES, ROOT, all_together, at_its_line, examples

pytestmark = pytest.mark.heavy

UNTYPED = ("from langchain", "from langgraph")
"""Packages whose own annotations are partly unknown to pyright, whoever uses them."""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's project that holds every example of the pages."""
    folder = tmp_path_factory.mktemp("project")
    for page in PAGES:
        name = page.relative_to(ROOT).as_posix()
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
                file.write_text(as_a_file(all_together(pieces)), encoding="utf-8")
    assert len([*folder.glob("*.py")]) > 40
    return folder


def as_a_file(script: str) -> str:
    """The script with what notebooks allow, an `await` outside of any function, as files have it."""
    tree = compile(script, "", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    lines = script.splitlines()
    for waited in reversed([*outer_awaits(tree)]):
        last, end = (waited.end_lineno or 0) - 1, waited.end_col_offset or 0
        lines[last] = lines[last][:end] + ")" + lines[last][end:]
        first, start = waited.lineno - 1, waited.col_offset
        lines[first] = lines[first][:start] + "asyncio.run(" + lines[first][start + len("await ") :]
        lines[1] = "import asyncio"
    if any(line.startswith(UNTYPED) for line in lines):
        lines[0] = "# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false"
    return "\n".join(lines) + "\n"


def outer_awaits(node: ast.AST) -> Iterator[ast.Await]:
    if isinstance(node, ast.Await):
        yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from outer_awaits(child)


def test_await_outside_of_functions_is_written_as_in_a_file() -> None:
    script = "\n\nasync def f() -> int:\n    return await g()\n\nx = [await f(\n    ), 2]\n"
    assert as_a_file(script).splitlines()[5:] == ["x = [asyncio.run(f(", "    )), 2]"]


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
    return subprocess.run(command, cwd=folder, capture_output=True, encoding="utf-8", check=False)
