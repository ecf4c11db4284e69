"""A stranger follows every page: the wheel and what the page says to install, in a folder of its own.

`test_documents.py` runs the same examples next to Greenroom's sources and with everything installed.
Here each page gets an environment with what it names and nothing else, and each example is a file
that Python runs.
"""

import os
import re
import shlex
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from test_documents import (
    PAGES,
    ROOT,
    Example,
    Fenced,
    all_together,
    at_its_line,
    examples,
    fenced_blocks,
    plain_terminal,
    printed_by_commands,
    timeless,
)
from test_tutorial import Walk

pytestmark = pytest.mark.heavy

INSTALL = re.compile(r"pip install (?P<words>[^`\n]+)")
OURS = re.compile(
    r"(?:\.|/path/to/greenroom|dist/greenroom\S*\.whl|greenroom)(?:\[(?P<extras>[^]]+)])?$"
)
NEXT = "--- the next block ---"
NOTEBOOK = """
import ast, asyncio, inspect
code = compile(open("example.py", encoding="utf-8").read(), "example.py", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
if inspect.iscoroutine(ran := eval(code, globals())):
    asyncio.run(ran)
"""

Install = Callable[[frozenset[str]], str]


def named_by(text: str) -> frozenset[str]:
    """What a page says to install: extras of Greenroom as `[openai]`, packages by their names."""
    found: set[str] = set()
    for line in INSTALL.finditer(text):
        for word in shlex.split(line["words"].split("#")[0]):
            if ours := OURS.match(word.split(" @ ")[0]):
                found |= {f"[{extra}]" for extra in (ours["extras"] or "").split(",") if extra}
            elif re.match(r"[a-z][\w-]+(\[[\w,-]+])?$", word):
                found.add(word)
    return frozenset(found)


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "-w", str(folder), str(ROOT))
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="session")
def install(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Install:
    """Makes an environment with the wheel and what a page names; once for pages that name the same."""
    made: dict[frozenset[str], str] = {}

    def python_with(named: frozenset[str]) -> str:
        if named not in made:
            folder = tmp_path_factory.mktemp("venv")
            venv.create(folder, with_pip=True)
            extras = ",".join(sorted(name.strip("[]") for name in named if name[0] == "["))
            packages = sorted(name for name in named if name[0] != "[")
            # Other packages' extras are none of ours, and do not fit into what we pin.
            alone = any("[" in package for package in packages)
            constraints = () if alone else ("-c", str(ROOT / "constraints.txt"))
            python = str(folder / "bin" / "python")
            pip(
                python,
                "install",
                *constraints,
                f"{wheel}[{extras}]" if extras else str(wheel),
                *packages,
            )
            made[named] = python
        return made[named]

    return python_with


def pip(python: str, *words: str) -> None:
    command = [python, "-m", "pip", words[0], "-qq", "--disable-pip-version-check", *words[1:]]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False, timeout=1800)
    if "No matching distribution" in done.stderr or "Connection" in done.stderr:
        pytest.skip(f"cannot be installed here: {done.stderr}")
    assert done.returncode == 0, done.stderr


def bare(python: str, home: Path) -> dict[str, str]:
    """A stranger's environment: no keys, no settings, no sources."""
    kept = {name: os.environ[name] for name in ("LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(Path(python).parent), "/usr/bin", "/bin"])
    return plain_terminal({**kept, "PATH": path, "HOME": str(home)})


def scripts(found: list[Example]) -> Iterator[tuple[Example, ...]]:
    """The examples that are one file: the first and all that continue it."""
    script: list[Example] = []
    for example in found:
        if example.block.language != "python" or example.not_run:
            continue
        if script and not example.before:
            yield tuple(script)
            script = []
        script.append(example)
    if script:
        yield tuple(script)


def run_script(script: tuple[Example, ...], python: str, folder: Path) -> None:
    """Run one file, and compare what each of its blocks prints with the page."""
    pieces = [marked(example.block) for example in script]
    source = all_together(pieces)
    (folder / "example.py").write_text(source, encoding="utf-8")
    done = subprocess.run(
        [python, "example.py"] if is_a_file(source) else [python, "-c", NOTEBOOK],
        cwd=folder,
        env=bare(python, folder),
        capture_output=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, f"{script[0].id}\n{done.stdout}{done.stderr}"
    printed = done.stdout.split(f"{NEXT}\n")[1:]
    for example, lines in zip(script, printed, strict=True):
        if example.prints is not None:
            assert timeless(lines) == timeless(example.prints), example.id


def marked(block: Fenced) -> str:
    """The block at its line of the page, with a mark on the line above."""
    return at_its_line(block).replace(
        "\n" * block.line, "\n" * (block.line - 1) + f"print({NEXT!r})\n", 1
    )


def is_a_file(source: str) -> bool:
    try:
        compile(source, "example.py", "exec")
    except SyntaxError:
        return False
    return True


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_a_stranger_can_follow_the_page(page: Path, install: Install, tmp_path: Path) -> None:
    name, text = page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8")
    found = examples(name, text)
    if not any(not example.not_run for example in found):
        pytest.skip("nothing is run on this page")
    python = install(named_by(text) | {package for one in found for package in one.needs})
    if name == "docs/tutorial.md":
        walk = Walk(tmp_path, python, bare(python, tmp_path))
        for block in fenced_blocks(name, text):
            walk.take(block)
    for number, script in enumerate(scripts(found)):
        folder = tmp_path / f"script{number}"
        folder.mkdir()
        run_script(script, python, folder)
    for number, example in enumerate(found):
        if example.block.language == "console":
            folder = tmp_path / f"console{number}"
            folder.mkdir()
            printed = printed_by_commands(example.block, python, bare(python, folder), folder)
            if example.prints is not None:
                assert timeless(printed) == timeless(example.prints), example.id


def test_what_a_page_names_is_read_from_its_commands() -> None:
    page = """
    $ pip install '/path/to/greenroom[adk,openai]' 'google-adk[mcp]'   # and more
    `pip install '.[langgraph]'` or `pip install . pytest`
    $ pip install 'greenroom[otel] @ git+https://HOST/PATH/greenroom.git'
    $ pip install pytest-xdist -r requirements.txt
    """
    named = {
        "[adk]",
        "[openai]",
        "google-adk[mcp]",
        "[langgraph]",
        "pytest",
        "[otel]",
        "pytest-xdist",
    }
    assert named_by(page) == named


def test_an_example_that_prints_something_else_is_found(tmp_path: Path) -> None:
    page = "```python\nprint(1)\n```\n\n<!-- output -->\n```text\n2\n```\n"
    [script] = scripts(examples("page.md", page))
    with pytest.raises(AssertionError, match=r"page\.md:1"):
        run_script(script, sys.executable, tmp_path)
