"""Middleware by reference: the command line, pytest, a project's settings, workers and chats."""

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import warm_python
from greenroom.errors import BadInput
from greenroom.suite import evaluate
from nested_pytest import FEW_PLUGINS

SHOP = """
from greenroom import Agent, Case, Expect, Scripted
from greenroom.world import Middleware

class Loud(Middleware):
    async def after_model(self, request, reply):
        return reply.text.upper()

class Marks(Middleware):
    async def after_agent(self, agent, output):
        return f"{output}!"

loud, marks = Loud(), Marks()
both = [loud, marks]
nothing = 7
def pieces(): yield loud
async def later(): return [loud]
agent = Agent("shop", model=Scripted("Hello."))
cases = [Case(name, says="Hi", expect=Expect(response="HELLO.!")) for name in ("a", "b")]
"""
CLI = ["-m", "greenroom.apps.cli"]
EVAL = [*CLI, "eval", "run", "shop.py", "shop.py:cases", "--no-store"]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(textwrap.dedent(SHOP))
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run(
        [sys.executable, *words],
        cwd=folder,
        env={**os.environ, **FEW_PLUGINS, "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_the_command_line_takes_middleware_one_by_one_or_as_a_list(
    shop: Path, workers: list[str]
) -> None:
    assert run(shop, *EVAL, *workers).returncode == 1
    one_by_one = ["--middleware", "shop.py:loud", "--middleware", "shop.py:marks"]
    done = run(shop, *EVAL, *workers, *one_by_one)
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(shop, *EVAL, *workers, "--middleware", "shop.py:both").returncode == 0


@pytest.mark.parametrize("name", ["nothing", "pieces", "later"])
def test_what_is_no_middleware_is_a_usage_error(shop: Path, name: str) -> None:
    done = run(shop, *EVAL, "--middleware", f"shop.py:{name}")
    assert done.returncode == 3
    assert "middleware are objects with hooks" in done.stdout + done.stderr


@pytest.mark.parametrize("door", ["pyproject", "pytest"])
def test_pytest_takes_middleware_as_seen_from_the_project(shop: Path, door: str) -> None:
    (shop / "set.eval.yaml").write_text(
        "version: 1\nid: set\ncases:\n  - id: a\n    says: Hi\n    expect: {response: HELLO.!}\n"
    )
    words = ["-m", "pytest", "-p", "no:cacheprovider", "--greenroom-agent", "shop.py"]
    if door == "pyproject":
        listed = '[tool.greenroom.pytest]\nmiddleware = ["shop.py:both"]\n'
        (shop / "pyproject.toml").write_text(listed)
    else:
        words += [
            "--greenroom-middleware",
            "shop.py:loud",
            "--greenroom-middleware",
            "shop.py:marks",
        ]
    done = run(shop, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    (shop / "pyproject.toml").write_text("")
    assert run(shop, *words[:6]).returncode == 1


def test_a_live_conversation_takes_middleware(shop: Path) -> None:
    words = [*CLI, "perform", "shop.py", "--message", "Hi", "--middleware", "shop.py:both"]
    done = run(shop, *words, "--store", "kept")
    assert "HELLO.!" in done.stdout, done.stdout + done.stderr


def test_a_simulation_takes_middleware(shop: Path) -> None:
    words = [*CLI, "simulate", "--help"]
    assert (
        "--middleware"
        in run(shop, *words).stdout + run(shop, *CLI, "simulate", "run", "--help").stdout
    )


@pytest.mark.parametrize("given", ["shop.py:loud", ["loud"], [":loud"]])
async def test_a_list_of_middleware_or_references_is_wanted(given: object) -> None:
    with pytest.raises(BadInput, match="should be a list of middleware, or of references"):
        await evaluate(None, [], middleware=given)  # pyright: ignore[reportArgumentType]
