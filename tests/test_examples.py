"""Every program in examples/ runs as it stands and prints what the gallery says."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import warm_python
from test_documents import fenced_blocks, plain_terminal, timeless

pytestmark = pytest.mark.e2e

EXAMPLES = Path(__file__).parent.parent / "examples"
PAGE = (EXAMPLES / "README.md").read_text(encoding="utf-8")
PRINTS = {
    comment.removeprefix("prints: "): block.text
    for block in fenced_blocks("examples/README.md", PAGE)
    for comment in block.comments
}


def run(program: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return warm_python.run(
        [Path(sys.executable).with_name(program), *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=plain_terminal(os.environ),
    )


def test_every_example_is_in_the_gallery() -> None:
    assert sorted(PRINTS) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", PRINTS)
def test_an_example_prints_what_the_gallery_says(name: str, tmp_path: Path) -> None:
    done = run("python", EXAMPLES / name, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert timeless(done.stdout) == timeless(PRINTS[name])


def test_an_example_runs_from_the_command_line_too(tmp_path: Path) -> None:
    done = run("greenroom", "eval", "run", "-q", EXAMPLES / "weather.py", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("3 cases: 3 passed")


def test_the_gate_closes_when_a_case_got_worse(tmp_path: Path) -> None:
    source = (EXAMPLES / "ci_gate.py").read_text(encoding="utf-8")
    (tmp_path / "gate.py").write_text(source, encoding="utf-8")
    assert run("python", "gate.py", folder=tmp_path).returncode == 0
    (tmp_path / "gate.py").write_text(source.replace("and welcome!", "."), encoding="utf-8")
    assert run("python", "gate.py", folder=tmp_path).returncode == 1
