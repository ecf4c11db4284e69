"""Recorded and replayed from every door: the command line, pytest, a project's settings, and workers."""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import warm_python
from greenroom import Report
from nested_pytest import FEW_PLUGINS

SHOP = """
import os
from greenroom import Agent, Case, Expect
from greenroom.models.model import ModelReply

class Costly:
    name = "costly"
    async def respond(self, request, on_delta=None):
        with open("asked", "a") as asked:
            asked.write("x")
        return ModelReply(os.environ.get("SAYS", "Hello."))

agent = Agent("shop", model=Costly(), instructions=os.environ.get("INSTRUCTIONS", "Be kind."))
cases = [Case(name, says="Hi", expect=Expect(response="Hello.")) for name in ("a", "b")]
"""
CLI = ["-m", "greenroom.apps.cli"]
EVAL = [*CLI, "eval", "run", "shop.py", "shop.py:cases"]
PYTEST = ["-m", "pytest", "-p", "no:cacheprovider", "--greenroom-agent", "shop.py"]


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    (tmp_path / "shop.py").write_text(textwrap.dedent(SHOP))
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "set.eval.yaml").write_text(
        "version: 1\nid: set\ncases:\n  - id: a\n    says: Hi\n    expect: {response: Hello.}\n"
    )
    return tmp_path


def run(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return warm_python.run(
        [sys.executable, *words],
        cwd=folder,
        env={
            **os.environ,
            **FEW_PLUGINS,
            "COLUMNS": "200",
            "GREENROOM_STORE": "runs",
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


def asked(folder: Path) -> int:
    place = folder / "asked"
    return len(place.read_text()) if place.exists() else 0


@pytest.mark.parametrize("workers", [[], ["--workers", "2"]], ids=["here", "workers"])
def test_the_command_line_records_and_replays(shop: Path, workers: list[str]) -> None:
    done = run(shop, *EVAL, *workers, "--record", "rec")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "recorded in rec" in done.stdout
    assert sorted(path.name for path in (shop / "rec").iterdir()) == ["a.1.jsonl", "b.1.jsonl"]
    again = run(
        shop, *EVAL, *workers, "--replay", "rec", "-f", "json", "-o", "report.json", SAYS="Bye."
    )
    assert again.returncode == 0, again.stdout + again.stderr
    assert asked(shop) == 2
    assert "replayed from rec" in again.stdout
    assert all(result.recorded_at for result in Report.load(shop / "report.json"))
    changed = run(shop, *EVAL, *workers, "--replay", "rec", INSTRUCTIONS="Be brief.")
    assert changed.returncode == 2
    assert "'Be kind.' when recorded, 'Be brief.' now" in " ".join(changed.stdout.split())
    live = ["--replay", "rec", "--on-drift", "live"]
    assert run(shop, *EVAL, *workers, *live, INSTRUCTIONS="Be brief.").returncode == 0
    assert asked(shop) == 4


def test_a_run_is_replayed_by_its_id_and_printed_commands_repeat_that(shop: Path) -> None:
    done = run(shop, *EVAL, SAYS="Bye.")
    assert done.returncode == 1
    found = re.search(r"run (\d{8}-\d{6}-\w{4})", done.stdout)
    assert found is not None, done.stdout
    again = run(shop, *EVAL, "--replay", found[1], "--fail-fast", "--sequential")
    assert (again.returncode, asked(shop)) == (1, 2)
    assert f"--filter id:a --replay {found[1]}" in " ".join(again.stdout.split())
    assert re.search(f"to resume: .*--replay {found[1]} .*--resume", again.stderr)
    shown = run(shop, *CLI, "runs", "list", "--json")
    assert "replayed" in shown.stdout


@pytest.mark.parametrize("door", ["pyproject", "pytest"])
def test_pytest_records_and_replays_as_seen_from_the_project(shop: Path, door: str) -> None:
    def words(name: str) -> list[str]:
        if door == "pytest":
            return [*PYTEST, f"--greenroom-{name}", "rec"]
        (shop / "pyproject.toml").write_text(f'[tool.greenroom.pytest]\n{name} = "rec"\n')
        return PYTEST

    done = run(shop, *words("record"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert [path.name for path in (shop / "rec").iterdir()] == ["a.1.jsonl"]
    assert run(shop, *words("replay"), SAYS="Bye.").returncode == 0
    changed = run(shop, *words("replay"), INSTRUCTIONS="Be brief.")
    assert (changed.returncode, asked(shop)) == (1, 1)
    assert "'Be kind.' when recorded, 'Be brief.' now" in changed.stdout


@pytest.mark.parametrize(
    "words, said",
    [
        (["--on-drift", "live"], "--on-drift is for --replay"),
        (["--replay", "rec", "--on-drift", "skip"], "should be one of 'error', 'live'"),
        (["--replay", "nowhere"], "is not a folder, and there is no run"),
        (["--record", "a", "--replay", "b"], "contradict each other"),
        (["--record", "shop.py"], "'shop.py' is a file"),
    ],
)
def test_what_cannot_be_meant_is_bad_usage(shop: Path, words: list[str], said: str) -> None:
    (shop / "b").mkdir()
    done = run(shop, *EVAL, *words)
    assert done.returncode == 3, done.stdout + done.stderr
    assert said in " ".join((done.stdout + done.stderr).split())
