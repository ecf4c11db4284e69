"""The tutorial is a walk through one folder: its files are written and its commands run, in order.

<!-- file: NAME -->        the block is a file of the project
<!-- walk -->              the `$` lines of this `console` block are run where the walk stands
<!-- walk, exits 1 -->     the same, where the last command ends with that exit code
<!-- shows -->             the lines of this `text` block are printed, in this order
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

import warm_python
from test_documents import Fenced, fenced_blocks, plain_terminal, timeless

pytestmark = pytest.mark.e2e

PAGE = Path(__file__).parent.parent / "docs" / "tutorial.md"
FILE = re.compile(r"file: (?P<name>\S+)$")
WALK = re.compile(r"walk(?:, exits (?P<code>\d+))?$")


class Walk:
    """A reader who types what the page says, where the programs next to `python` are installed."""

    def __init__(
        self,
        folder: Path,
        python: str = sys.executable,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.folder = folder
        self.python = python
        self.environment = environment
        self.printed = ""
        self.steps = 0

    def take(self, block: Fenced) -> None:
        for comment in block.comments:
            if named := FILE.match(comment):
                (self.folder / named["name"]).write_text(block.text, encoding="utf-8")
            elif walk := WALK.match(comment):
                self.type(block, int(walk["code"] or 0))
            elif comment == "shows":
                self.look_for(block)

    def type(self, block: Fenced, code: int) -> None:
        lines = [line[2:] for line in block.text.splitlines() if line.startswith("$ ")]
        self.printed = "".join(
            self.run(shlex.split(line), code if line is lines[-1] else 0) for line in lines
        )
        self.steps += 1

    def run(self, command: list[str], code: int) -> str:
        program, *arguments = command
        if program == "cd":
            self.folder /= arguments[0]
            return ""
        # A pytest that finds its plug-ins itself wants to import them itself too.
        is_warm = program == "greenroom" and self.python == sys.executable
        run = warm_python.run if is_warm else subprocess.run
        done = run(
            [Path(self.python).with_name(program), *arguments],
            cwd=self.folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
            env=plain_terminal(self.environment),
        )
        assert done.returncode == code, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
        return done.stdout

    def look_for(self, block: Fenced) -> None:
        printed = iter(words(self.printed))
        for line in words(block.text):
            assert line in printed, f"{block.page}:{block.line}: {line!r} in\n{self.printed}"


def words(text: str) -> list[str]:
    """The text's lines without times and without the widths of columns, which follow from them."""
    return [" ".join(line.split()) for line in timeless(text)]


@pytest.mark.slow
def test_the_tutorial_can_be_walked(tmp_path: Path) -> None:
    walk = Walk(tmp_path)
    for block in fenced_blocks("docs/tutorial.md", PAGE.read_text(encoding="utf-8")):
        walk.take(block)
    assert walk.steps >= 12
    assert {path.name for path in (tmp_path / "shop" / "reports").iterdir()} == {
        "eval_report.html",
        "eval_report.json",
        "junit.xml",
    }
