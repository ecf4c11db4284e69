"""How Greenroom was installed is how it is installed again, and how its extras are."""

import asyncio
import importlib.metadata
import json
from collections.abc import Iterator
from pathlib import Path
from random import Random
from string import ascii_letters
from typing import Any

import pytest

from greenroom import Agent, Case, Scripted, evaluate, installation, rehearse, simulate
from greenroom.errors import BadInput
from greenroom.store import Store


class Installed:
    version = "1.2.3"

    def __init__(self, origin: object) -> None:
        self._origin = origin

    def read_text(self, _name: str) -> str | None:
        return None if self._origin is None else json.dumps(self._origin)


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    def say(origin: object) -> None:
        installation._origin.cache_clear()  # pyright: ignore[reportPrivateUsage]
        monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Installed(origin))
        monkeypatch.setattr(importlib.metadata, "version", lambda _: "1.2.3")

    yield say
    installation._origin.cache_clear()  # pyright: ignore[reportPrivateUsage]


WHEEL = "file:///shop/dist/greenroom-0.1.0-py3-none-any.whl"
GIT = {"vcs": "git", "requested_revision": "main", "commit_id": "abc123"}


@pytest.mark.parametrize(
    "origin, line, command",
    [
        (None, "greenroom==1.2.3", "pip install 'greenroom[openai]==1.2.3'"),
        (
            {"url": "file:///my%20shop", "dir_info": {"editable": True}},
            "-e '/my shop'",
            "pip install -e '/my shop[openai]'",
        ),
        (
            {"url": "file:///shop", "dir_info": {}},
            "greenroom @ file:///shop",
            "pip install 'greenroom[openai] @ file:///shop'",
        ),
        (
            {"url": WHEEL, "archive_info": {}},
            f"greenroom @ {WHEEL}",
            f"pip install 'greenroom[openai] @ {WHEEL}'",
        ),
        (
            {"url": "https://ada:secret@host/g.git", "vcs_info": GIT, "subdirectory": "py"},
            "greenroom @ git+https://host/g.git@abc123#subdirectory=py",
            "pip install 'greenroom[openai] @ git+https://host/g.git@abc123#subdirectory=py'",
        ),
        (
            {"url": "ssh://git@host/g.git", "vcs_info": GIT},
            "greenroom @ git+ssh://git@host/g.git@abc123",
            "pip install 'greenroom[openai] @ git+ssh://git@host/g.git@abc123'",
        ),
        ([], "greenroom==1.2.3", "pip install 'greenroom[openai]==1.2.3'"),
    ],
)
def test_it_is_installed_again_from_where_it_came(
    installed: Any, origin: object, line: str, command: str
) -> None:
    installed(origin)
    assert installation.requirement() == line
    assert installation.how_to_install("openai") == command


def test_only_a_place_on_this_machine_is_one(installed: Any) -> None:
    installed({"url": WHEEL, "archive_info": {}})
    assert installation.local_path() == "/shop/dist/greenroom-0.1.0-py3-none-any.whl"
    installed({"url": "https://host/g.git", "vcs_info": GIT})
    assert installation.local_path() == ""


@pytest.mark.parametrize("door", [evaluate, simulate])
def test_a_loop_that_is_not_asyncios_gets_a_named_error(door: Any) -> None:
    agent, case = Agent("a", model=Scripted("Hi")), Case("a", "Hi")
    started = door(agent, [case]) if door is evaluate else door(case, agent)
    with pytest.raises(BadInput, match="runs on asyncio"):
        started.send(None)
    assert asyncio.run(simulate(case, agent))


def test_deleted_runs_give_their_space_back(tmp_path: Path) -> None:
    agent, letters = Agent("a", model=Scripted(then="x")), Random(7)
    said = ["".join(letters.choices(ascii_letters, k=20_000)) for _ in range(60)]
    rehearse(agent, [Case(f"c{n}", text) for n, text in enumerate(said)], store=str(tmp_path))
    store = Store(tmp_path)
    size = (store.place / "runs.db").stat().st_size
    store.delete(*(run.id for run in store.runs()))
    assert (store.place / "runs.db").stat().st_size < size / 2
