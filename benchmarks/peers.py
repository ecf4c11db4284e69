"""The peers' environments: one per line of peers.txt, named after the line's first package."""

import platform
import venv
from collections.abc import Container, Sequence
from pathlib import Path

from turns import output, progress

HERE = Path(__file__).parent
ENVIRONMENTS = HERE / ".envs"

PEER = "pydantic-evals"
HEAVY = {"google-adk": "--with-adk", "inspect-ai": "--with-inspect"}
"""Peers whose environments are large, and the option that asks for each."""


def requirements(name: str) -> list[str]:
    """The pinned packages of the peer's line in peers.txt."""
    for line in (HERE / "peers.txt").read_text().splitlines():
        pinned = line.partition("#")[0].split()
        if pinned and _package(pinned[0]) == name:
            return pinned
    raise LookupError(f"peers.txt has no line for {name!r}")


def _package(requirement: str) -> str:
    return requirement.partition("==")[0].partition("[")[0]


def versions(heavy: Sequence[str]) -> list[str]:
    """Python's and those of the peers that take part."""
    return [f"Python {platform.python_version()}", *(requirements(n)[0] for n in (PEER, *heavy))]


def is_set_up(name: str) -> bool:
    """Whether the peer's environment was made from the pins of today."""
    stamp = ENVIRONMENTS / name / "made-from"
    return stamp.exists() and stamp.read_text() == _made_from(name)


def environment(name: str) -> str:
    """The interpreter of a peer's own environment, made or made anew when a pin has changed."""
    home = ENVIRONMENTS / name
    python = home / "bin" / "python"
    if not is_set_up(name):
        progress(f"setting up {_made_from(name)}")
        venv.create(home, clear=True, with_pip=True)
        pip = [python, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        output([*pip, *requirements(name)])
        (home / "made-from").write_text(_made_from(name))
    return str(python)


def left_out(names: Container[str]) -> list[str]:
    """A line for each heavy peer that is not among these."""
    return [
        f"  {name}: left out, its environment is large; {option} sets it up"
        for name, option in HEAVY.items()
        if name not in names
    ]


def _made_from(name: str) -> str:
    return f"{' '.join(requirements(name))} on {platform.python_version()}"
