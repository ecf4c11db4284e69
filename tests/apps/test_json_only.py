"""With --json, standard output holds one JSON document, whatever the author's code prints."""

import json
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

import warm_python
from greenroom.apps.cli import main

TALKATIVE = """
import os

from greenroom import Agent, Case, Expect, Scripted, call, tool

print("printed on import")

@tool
def refund(order: int) -> dict:
    '''Pay an order back.'''
    print("printed by a tool")
    return {"paid": order}

def paid(order):
    print("printed by a mock")
    os.write(1, b"written past Python\\n")
    return {"paid": order}

agent = Agent("clerk", model=Scripted(call("refund", order=7), "Paid."), tools=[refund])
cases = [Case("one", says="Hi", mocks={"refund": paid}, expect=Expect(contains="Paid"))]
"""
COMMANDS = {
    "eval run": "eval run shop.py --no-store",
    "several agents": "eval run shop.py --agent shop.py:agent --no-store",
    "dry run": "eval run shop.py --dry-run",
    "suggested mocks": "eval run shop.py --suggest-mocks",
    "mutants": "eval mutants shop.py --no-store",
    "validate": "eval-set validate set.yaml --agent shop.py",
    "check": "agent check shop.py",
    "cost": "agent cost shop.py",
    "perform": "perform shop.py --message Hi --store off",
    "simulate": "simulate run shop.py --prompt Hi --mocks mocks.yaml",
}


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    (tmp_path / "shop.py").write_text(textwrap.dedent(TALKATIVE))
    (tmp_path / "set.yaml").write_text("version: 1\ncases:\n- {id: a, says: Hi}\n")
    (tmp_path / "mocks.yaml").write_text("mocks:\n  refund: {value: {paid: 7}}\n")
    return tmp_path


@pytest.mark.usefixtures("shop")
@pytest.mark.parametrize("command", COMMANDS.values(), ids=COMMANDS)
def test_what_authors_code_prints_goes_to_standard_error(command: str, greenroom) -> None:
    done = greenroom(*command.split(), "--json")
    json.loads(done.stdout)
    assert "printed on import" in done.stderr


@pytest.mark.usefixtures("shop")
def test_suggested_mocks_are_json_too(greenroom) -> None:
    (Path("bare.yaml")).write_text("version: 1\ncases:\n- {id: a, says: Hi}\n")
    words = ["eval", "run", "shop.py", "bare.yaml", "--suggest-mocks"]
    assert json.loads(greenroom(*words, "--json").stdout) == {"mocks": {"refund": {"value": {}}}}
    assert "mocks:\n  # refund(order: integer)" in greenroom(*words).stdout


@pytest.mark.parametrize("workers", [[], ["--workers", "1"]])
def test_not_even_what_is_written_past_python_reaches_standard_output(
    shop: Path, workers: list[str]
) -> None:
    words = ["eval", "run", "shop.py", "--no-store", "--json", *workers]
    done = _run(shop, *words)
    assert json.loads(done.stdout)["summary"]["passed"] == 1, done.stderr
    assert "printed by a mock" in done.stderr
    assert "written past Python" in done.stderr


def test_without_json_author_code_prints_where_it_always_did(shop: Path) -> None:
    done = _run(shop, "eval", "run", "shop.py", "--no-store")
    assert "printed by a mock" in done.stdout


def test_json_that_cannot_be_written_ends_with_code_3(shop: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = _run(shop, "eval", "run", "shop.py", "--no-store", "--json", stdout=full.fileno())
    assert done.returncode == 3
    assert "not everything could be printed" in done.stderr


def test_every_command_with_json_keeps_standard_output_for_it() -> None:
    found = {id(one.callback) for one in _options(main) if "--json" in one.opts}
    assert len(found) == 1


def _options(command: click.Command) -> Iterator[click.Option]:
    yield from (one for one in command.params if isinstance(one, click.Option))
    if isinstance(command, click.Group):
        for one in command.commands.values():
            yield from _options(one)


def _run(
    folder: Path, *words: str, stdout: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return warm_python.run(
        [sys.executable, "-m", "greenroom.apps.cli", *words],
        cwd=folder,
        env={**os.environ, "COLUMNS": "200"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
