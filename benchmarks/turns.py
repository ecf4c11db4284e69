"""Measuring in turns: whatever else the machine does hits all alike, and the best round counts."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).parent

# Compiled code is what users run; without it imports cost three times as much.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

LONGEST = 600
"""Seconds that one command may take, on a machine that is busy with other things too."""

K = TypeVar("K")
Figures = dict[str, Any]


def played(name: str, python: str, *arguments: object) -> Callable[[], Figures]:
    """A contestant ready to play."""
    module = f"contestants.{name.replace('-', '_')}"
    command = [python, "-m", module, *map(str, arguments)]
    # A framework may print something of its own before.
    return lambda: json.loads(output(command).splitlines()[-1])


def in_turns(
    what: str, entries: Mapping[K, Callable[[], Figures]], rounds: int
) -> dict[K, Figures]:
    """Each entry's best figures after so many rounds in which all have their turn."""
    found: dict[K, list[Figures]] = {key: [] for key in entries}
    for _ in turns(what, rounds):
        for key, play in entries.items():
            found[key].append(play())
    return {key: best(figures) for key, figures in found.items()}


def best(rounds: Sequence[Figures]) -> Figures:
    """The least of each figure: noise only ever adds."""
    return {key: min(figures[key] for figures in rounds) for key in rounds[0]}


def turns(what: str, rounds: int) -> Iterator[int]:
    """Count the rounds, and tell a waiting reader."""
    for number in range(1, rounds + 1):
        progress(f"{what}: round {number} of {rounds}")
        yield number
    progress("")


def cpu_of(command: Sequence[object]) -> float:
    """What a command uses up, from its start to its end."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output(command)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def output(command: Sequence[object], folder: str | Path = HERE) -> str:
    """What a command prints; one that fails or hangs ends the run with its own words."""
    line = [str(part) for part in command]
    try:
        done = subprocess.run(
            line,
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=LONGEST,
        )
    except subprocess.TimeoutExpired:
        sys.exit(f"{' '.join(line)} was not done within {LONGEST} s")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{' '.join(line)} failed:\n{error.stdout}{error.stderr}")
    return done.stdout


def progress(text: str) -> None:
    """Say what goes on, where somebody is watching."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)
