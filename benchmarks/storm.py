"""A storm of calls against a server with a token bucket: how few are refused, and how long it takes.

python benchmarks/storm.py    a storm for each size of burst in a process of its own, as JSON
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from goals import Goal
from turns import Figures, output

# The server is the one that the tests use.
sys.path.append(str(Path(__file__).parents[1] / "tests"))

BURSTS = (20, 5, 1)
"""How many calls the server lets through at once before it keeps to its 20 each second."""


def weathered() -> Figures:
    """What a process of its own finds in a storm."""
    return json.loads(output([sys.executable, __file__]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    return [
        goal
        for burst in BURSTS
        for goal in (
            Goal(
                f"refused calls per success, storm, burst {burst}",
                found[f"refusals_{burst}"],
                0.25,
                "×",
            ),
            Goal(f"wall time of ideal, storm, burst {burst}", found[f"of_ideal_{burst}"], 2.0, "×"),
            Goal(
                f"calls during a Retry-After, storm, burst {burst}",
                found[f"impatient_{burst}"],
                0,
                "",
            ),
        )
    ]


async def main() -> None:
    """Play a storm for each burst and print what came of it."""
    tried: Any = import_module("models.storm")
    paces: Any = import_module("greenroom.world.pacer").paces
    figures: Figures = {}
    for burst in BURSTS:
        paces.clear()  # what one storm has taught must not help in the next
        found = await tried.storm(burst=burst)
        figures[f"refusals_{burst}"] = found.refusals
        figures[f"of_ideal_{burst}"] = found.of_ideal
        figures[f"impatient_{burst}"] = len(found.model.impatient())
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main())
