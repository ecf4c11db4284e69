"""A model in place of the agent's own at every door: command line, pytest, settings, workers, resume, files."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import warm_python
from nested_pytest import FEW_PLUGINS

SHOP = """
from pydantic_ai import Agent

from greenroom import Case, Expect, Scripted

agent = Agent(name="shop", instructions="You sell cups.")
model = Scripted("Hello.")
other = Scripted("Goodbye.")
nothing = 7
cases = [Case(name, says="Hi", expect=Expect(response="Hello.")) for name in ("a", "b")]
"""
CLI = ["-m", "greenroom.apps.cli"]
EVAL = [*CLI, "eval", "run", "shop.py", "shop.py:cases"]
SET = """version: 1
id: set
cases:
  - id: a
    says: Hi
    expect: {response: Hello.}
"""


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(textwrap.dedent(SHOP))
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    keyless = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return warm_python.run(
        [sys.executable, *words],
        cwd=folder,
        env={**keyless, **FEW_PLUGINS, "COLUMNS": "200", "GREENROOM_STORE": str(folder / "kept")},
        capture_output=True,
        text=True,
        modules=(*warm_python.COMMANDS, "pydantic_ai"),
    )


def test_the_command_line_takes_a_model(shop: Path) -> None:
    assert run(shop, *EVAL).returncode == 2
    done = run(shop, *EVAL, "--model", "shop.py:model")
    assert done.returncode == 0, done.stdout + done.stderr
    assert run(shop, *EVAL, "--model", "shop.py:other").returncode == 1


def test_worker_processes_get_the_model_of_the_command_line(shop: Path) -> None:
    done = run(shop, *EVAL, "--workers", "1", "--model", "shop.py:model")
    assert done.returncode == 0, done.stdout + done.stderr


def test_what_is_no_model_is_a_usage_error(shop: Path) -> None:
    for given, why in (("shop.py:nothing", "has the model 7"), ("nobody:x", "nobody")):
        done = run(shop, *EVAL, "--model", given)
        assert done.returncode == 3, done.stdout + done.stderr
        assert why in done.stdout + done.stderr


@pytest.mark.parametrize("door", ["pyproject", "pytest"])
def test_pytest_takes_a_model_as_seen_from_the_project(shop: Path, door: str) -> None:
    (shop / "evals").mkdir()
    (shop / "evals" / "set.eval.yaml").write_text(SET)
    words = ["-m", "pytest", "-p", "no:cacheprovider", "--greenroom-agent", "shop.py", "evals"]
    assert run(shop, *words).returncode == 1
    if door == "pyproject":
        (shop / "pyproject.toml").write_text('[tool.greenroom.pytest]\nmodel = "shop.py:model"\n')
    else:
        words += ["--greenroom-model", "shop.py:model"]
    done = run(shop, *words)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_case_of_a_file_names_its_model(shop: Path) -> None:
    (shop / "set.yaml").write_text(f"{SET}    model: shop.py:model\n")
    for more in ([], ["--workers", "1"], ["--model", "shop.py:other"]):
        done = run(shop, *CLI, "eval", "run", "shop.py", "set.yaml", *more)
        assert done.returncode == 0, done.stdout + done.stderr
    checked = run(shop, *CLI, "eval-set", "validate", "set.yaml")
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_a_resumed_run_notices_another_model(shop: Path) -> None:
    first = run(shop, *EVAL, "--model", "shop.py:model", "--limit", "1")
    assert first.returncode == 0, first.stdout + first.stderr
    words = [*EVAL, "--model", "shop.py:other", "--limit", "1", "--resume"]
    run_id = first.stdout.split("run ")[-1].split()[0]
    again = run(shop, *words, run_id)
    assert again.returncode == 3
    assert "agent" in again.stderr
    assert run(shop, *EVAL, "--model", "shop.py:model", "--limit", "1", "--resume", run_id)


def test_a_trial_is_replayed_and_shrunk_with_the_model_that_answered(shop: Path) -> None:
    (shop / "named.yaml").write_text(SET + "    model: shop.py:other\n")
    by_case = [*CLI, "eval", "run", "shop.py", "named.yaml"]
    by_run = [*EVAL, "--model", "shop.py:other"]
    for words, cases, end in (
        (by_run, ["--cases", "shop.py:cases"], "a.shrunk.yaml --model shop.py:other\n"),
        (by_case, [], "a.shrunk.yaml\n"),
    ):
        failed = run(shop, *words)
        found = re.search(r"^run (\S+)$", failed.stdout, re.MULTILINE)
        assert found, failed.stdout + failed.stderr
        replayed = run(shop, *CLI, "runs", "replay", found[1], "a")
        assert replayed.returncode == 0, replayed.stdout + replayed.stderr
        shrunk = run(shop, *CLI, "runs", "shrink", found[1], "a", *cases, "--force")
        assert shrunk.returncode == 0, shrunk.stderr
        assert shrunk.stderr.endswith(end)


def test_a_live_conversation_takes_a_model(shop: Path) -> None:
    words = [*CLI, "perform", "shop.py", "--message", "Hi", "--model", "shop.py:model"]
    done = run(shop, *words)
    assert "Hello." in done.stdout, done.stdout + done.stderr
