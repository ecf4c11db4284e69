"""Every example in README.md and docs/ does what the page says.

A fenced `python` block runs as a script of its own, in an empty folder. HTML comments before a
block change that. An `await` outside of any function is run as notebooks do it.

    <!-- continues -->         go on where the page's previous python block ended
    <!-- not run: reason -->   skip the block, for that reason
    <!-- needs: package -->    skip the block where that is not installed; `test_walk.py` installs it
    <!-- output -->            the `text` block that follows is what the block above prints
    <!-- runs -->              run the `$ greenroom …` lines of this `console` block, in one folder
    <!-- runs, exits 1 -->     the same, where the last command ends with that exit code
"""

import ast
import asyncio
import contextlib
import importlib.metadata
import inspect
import io
import linecache
import os
import re
import shlex
import subprocess
import sys
import textwrap
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement

import warm_python

ROOT = Path(__file__).parent.parent
PAGES = [page for page in [ROOT / "README.md", *sorted(ROOT.glob("docs/**/*.md"))] if page.exists()]

FENCE = re.compile(r"\s*(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w-]*)")
COMMENT = re.compile(r"\s*<!--\s*(?P<text>.*?)\s*-->\s*$")
NOT_RUN = re.compile(r"not run: (?P<reason>.+)")
NEEDS = re.compile(r"needs: (?P<package>.+)")
RUNS = re.compile(r"runs(?:, exits (?P<code>\d+))?$")
PLACE = re.compile(r"example\.py:\d+")
OF_THE_MACHINE = re.compile(
    r"note: (the fence cannot see connections of |.* blocked the event loop for more than a second)"
)
TIME = re.compile(r" *\b\d+(?:\.\d+)? ?(?:ns|µs|us|ms|s)\b *")


@dataclass(frozen=True)
class Fenced:
    """A fenced block of a page: what it holds, and what the page says about it."""

    page: str
    line: int
    language: str
    text: str
    comments: tuple[str, ...]
    follows_block: bool


@dataclass(frozen=True)
class Example:
    """A block to run, with what must run before it and what it must print."""

    block: Fenced
    before: tuple[Fenced, ...] = ()
    prints: str | None = None

    @property
    def id(self) -> str:
        return f"{self.block.page}:{self.block.line}"

    @property
    def not_run(self) -> str | None:
        found = [NOT_RUN.match(comment) for comment in self.block.comments]
        return next((match["reason"] for match in found if match), None)

    @property
    def needs(self) -> list[str]:
        blocks = (*self.before, self.block)
        found = [NEEDS.match(comment) for block in blocks for comment in block.comments]
        return [match["package"] for match in found if match]


def fenced_blocks(page: str, text: str) -> Iterator[Fenced]:
    """The page's fenced blocks, in order; an unclosed one is an error."""
    lines = enumerate(text.splitlines(), start=1)
    comments: list[str] = []
    follows_block = False
    for number, line in lines:
        if fence := FENCE.match(line):
            body = "\n".join(until_closed(lines, fence["ticks"], f"{page}:{number}"))
            body = textwrap.dedent(body) + "\n"
            yield Fenced(page, number, fence["language"], body, tuple(comments), follows_block)
            comments, follows_block = [], True
        elif comment := COMMENT.match(line):
            comments.append(comment["text"])
        elif line.strip():
            comments, follows_block = [], False


def until_closed(lines: Iterator[tuple[int, str]], ticks: str, where: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip().startswith(ticks) and not line.strip().strip(ticks[0]):
            return
        yield line
    raise ValueError(f"{where}: the block is never closed. Add a line {ticks!r}.")


def examples(page: str, text: str) -> list[Example]:
    """The page's examples, in order; a comment that belongs to no example is an error."""
    found: list[Example] = []
    script: tuple[Fenced, ...] = ()
    last: Fenced | None = None
    for block in fenced_blocks(page, text):
        if "output" in block.comments:
            found[-1:] = [answered(found[-1] if found else None, last, block)]
        elif block.language == "python":
            example = Example(block, before=earlier(block, script))
            if not example.not_run:
                script = (*example.before, block)
            found.append(example)
        elif block.language == "console" and any(map(RUNS.match, block.comments)):
            found.append(Example(block))
        last = block
    return found


def earlier(block: Fenced, script: tuple[Fenced, ...]) -> tuple[Fenced, ...]:
    if "continues" not in block.comments:
        return ()
    if not script:
        raise ValueError(
            f"{block.page}:{block.line}: there is no earlier python block to continue."
        )
    return script


def answered(example: Example | None, last: Fenced | None, output: Fenced) -> Example:
    direct = example is not None and example.block is last and output.follows_block
    if example is None or not direct or output.language != "text":
        raise ValueError(
            f"{output.page}:{output.line}: an output must be a `text` block directly below "
            f"the block that prints it."
        )
    return replace(example, prints=output.text)


def printed_by(example: Example, folder: Path) -> str:
    """What the example prints when it runs in this folder."""
    with contextlib.chdir(folder):
        if example.block.language == "console":
            return printed_by_commands(example.block)
        return printed_by_script((*example.before, example.block), folder / "example.py")


def printed_by_script(blocks: tuple[Fenced, ...], path: Path) -> str:
    """What the last of these blocks prints, after the others ran in the same script."""
    with run_script(blocks, path) as (_, printed):
        return printed


@contextlib.contextmanager
def run_script(blocks: tuple[Fenced, ...], path: Path) -> Generator[tuple[ModuleType, str]]:
    """The script of these blocks, run, and what the last of them printed."""
    pieces = [at_its_line(block) for block in blocks]
    path.write_text(all_together(pieces))
    printed = io.StringIO()
    with script_module(path) as script:
        with asyncio.Runner() as runner:
            for piece in pieces:
                printed = io.StringIO()
                with contextlib.redirect_stdout(printed):
                    code = compile(piece, path, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
                    ran = eval(code, script.__dict__)  # noqa: S307 - the page is ours
                    if inspect.iscoroutine(ran):
                        runner.run(ran)
        yield script, printed.getvalue()


def at_its_line(block: Fenced) -> str:
    """The block's text, moved down so that a traceback names the page's line."""
    return "\n" * block.line + block.text


def all_together(pieces: list[str]) -> str:
    """One source file with every piece at its own line, where `inspect` looks for it."""
    lines: list[str] = []
    for piece in pieces:
        lines += piece.splitlines()[len(lines) :]
    return "\n".join(lines) + "\n"


@contextlib.contextmanager
def script_module(path: Path) -> Generator[ModuleType]:
    """A fresh `__main__`, as if Python had been started with this file."""
    script = ModuleType("__main__")
    script.__file__ = str(path)
    main, sys.modules["__main__"] = sys.modules["__main__"], script
    try:
        yield script
    finally:
        sys.modules["__main__"] = main
        linecache.cache.pop(str(path), None)


def is_installed(requirement: str) -> bool:
    """Whether a package is there, with all that the extras in brackets ask for."""
    wanted = Requirement(requirement)
    try:
        needed = importlib.metadata.requires(wanted.name) or []
    except importlib.metadata.PackageNotFoundError:
        return False
    for line in map(Requirement, needed):
        if (marker := line.marker) is None or marker.evaluate({"extra": ""}):
            continue  # installed with the package itself
        asked = any(marker.evaluate({"extra": extra}) for extra in wanted.extras)
        if asked and not is_installed(line.name):
            return False
    return True


def printed_by_commands(
    block: Fenced,
    python: str = sys.executable,
    environment: Mapping[str, str] = os.environ,
    folder: Path | None = None,
) -> str:
    """What the commands of a block print, where the programs next to `python` are installed."""
    *before, last = commands(block)
    run = partial(printed_by_command, python=python, environment=environment, folder=folder)
    printed = [run(command, expect=0) for command in before]
    return "".join([*printed, run(last, expect=exit_code(block))])


def printed_by_command(
    command: list[str],
    expect: int,
    python: str,
    environment: Mapping[str, str],
    folder: Path | None,
) -> str:
    program, *arguments = command
    run = warm_python.run if python == sys.executable else subprocess.run
    done = run(
        [Path(python).with_name(program), *arguments],
        cwd=folder,
        capture_output=True,
        encoding="utf-8",
        check=False,
        env=plain_terminal(environment),
    )
    assert done.returncode == expect, f"{shlex.join(command)}\n{done.stdout}{done.stderr}"
    return done.stdout


def commands(block: Fenced) -> list[list[str]]:
    joined = block.text.replace("\\\n", " ")
    found = [line[2:] for line in joined.splitlines() if line.startswith("$ greenroom ")]
    if not found:
        raise ValueError(f"{block.page}:{block.line}: no line begins with '$ greenroom '.")
    return [shlex.split(command, comments=True) for command in found]


def exit_code(block: Fenced) -> int:
    found = [RUNS.match(comment) for comment in block.comments]
    return next((int(match["code"]) for match in found if match and match["code"]), 0)


def plain_terminal(environment: Mapping[str, str]) -> dict[str, str]:
    return {**environment, "COLUMNS": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"}


def timeless(text: str) -> list[str]:
    """The text's lines, where every duration is the same and trailing blanks do not count.

    Nor does the line of an example in which an error arose: it is that of the page. Nor do notes
    about this process and this machine: on libraries that earlier tests loaded, and on code that was
    slow because the machine is busy.
    """
    lines = (TIME.sub(" <time> ", line).rstrip() for line in text.strip("\n").splitlines())
    return [
        PLACE.sub("example.py:<line>", line) for line in lines if not OF_THE_MACHINE.match(line)
    ]


EXAMPLES = [
    example
    for page in PAGES
    for example in examples(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))
]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_an_example_does_what_the_page_says(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if reason := example.not_run:
        pytest.skip(reason)
    if missing := [package for package in example.needs if not is_installed(package)]:
        pytest.skip(f"{', '.join(missing)} is not installed")
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "example.py")])
    for name, value in plain_terminal({}).items():
        monkeypatch.setenv(name, value)
    printed = printed_by(example, tmp_path)
    if example.prints is not None:
        assert timeless(printed) == timeless(example.prints)


PAGE = """
```python
import inspect
def greet(name):
    return f"Hello, {name}"
print(greet("Ada"), "after 0.25 s")
```

<!-- output -->
```text
Hello, Ada after 0.01 s
```

Prose between.

<!-- continues -->
```python
class Guest:
    name = "Bo"
print(greet(Guest.name), "from", __name__)
print(inspect.getsource(greet) + inspect.getsource(Guest), end="")
```
<!-- output -->
```text
Hello, Bo from __main__
def greet(name):
    return f"Hello, {name}"
class Guest:
    name = "Bo"
```

<!-- not run: it needs a key -->
```python
raise SystemExit("never")
```

<!-- continues -->
```python
print(greet("Cy"))
```
"""


def test_a_page_is_read_as_one_example_per_block():
    assert [example.id for example in examples("page.md", PAGE)] == [
        "page.md:2",
        "page.md:17",
        "page.md:33",
        "page.md:38",
    ]


def test_an_example_prints_what_its_page_says(tmp_path):
    first, second, *_ = examples("page.md", PAGE)
    assert timeless(printed_by(first, tmp_path)) == timeless(first.prints or "")
    assert timeless(printed_by(second, tmp_path)) == timeless(second.prints or "")


def test_a_block_that_is_not_run_is_left_out_of_what_continues(tmp_path):
    *_, skipped, last = examples("page.md", PAGE)
    assert skipped.not_run == "it needs a key"
    assert printed_by(last, tmp_path) == "Hello, Cy\n"


def test_an_error_in_an_example_names_the_line_of_the_page(tmp_path):
    [example] = examples("page.md", "\n\n```python\n\n1 / 0\n```\n")
    with pytest.raises(ZeroDivisionError) as broken:
        printed_by(example, tmp_path)
    assert broken.traceback[-1].lineno + 1 == 5


def test_await_outside_of_a_function_is_run(tmp_path):
    page = """
```python
import asyncio
async def ask():
    await asyncio.sleep(0)
    return "Ada"
name = await ask()
```

<!-- continues -->
```python
print(name, await ask())
```
"""
    *_, last = examples("page.md", page)
    assert printed_by(last, tmp_path) == "Ada Ada\n"


def test_what_a_block_needs_holds_for_what_continues_it():
    page = "<!-- needs: no-such-thing -->\n```python\n\n```\n<!-- continues -->\n```python\n\n```\n"
    assert [example.needs for example in examples("page.md", page)] == [["no-such-thing"]] * 2
    assert not is_installed("no-such-thing")
    assert is_installed("greenroom[adk]")


@pytest.mark.parametrize(
    "page",
    [
        "```python\nprint()\n",
        "<!-- continues -->\n```python\nprint()\n```\n",
        "<!-- output -->\n```text\n\n```\n",
        "```python\nprint()\n```\nProse.\n\n<!-- output -->\n```text\n\n```\n",
    ],
    ids=["never closed", "nothing to continue", "output of nothing", "output far from its block"],
)
def test_a_page_that_says_something_impossible_is_refused(page):
    with pytest.raises(ValueError, match=r"page\.md:\d"):
        examples("page.md", page)


def test_a_console_block_runs_only_when_the_page_says_so():
    block = "```console\n$ greenroom demo  # the tour\nHello\n$ ls\n```\n"
    assert examples("page.md", block) == []
    [example] = examples("page.md", f"<!-- runs, exits 1 -->\n{block}")
    assert commands(example.block) == [["greenroom", "demo"]]
    assert exit_code(example.block) == 1
