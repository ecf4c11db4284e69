"""A storm of calls against a server with a token bucket: how few are refused, and how long it takes.

python benchmarks/storm.py    one storm in a process of its own, as JSON
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


def weathered() -> Figures:
    """What a process of its own finds in a storm."""
    return json.loads(output([sys.executable, __file__]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    return [
        Goal("refused calls per success, storm", found["refusals"], 0.25, "×"),
        Goal("wall time of ideal, storm", found["of_ideal"], 2.5, "×"),
        Goal("calls during a Retry-After, storm", found["impatient"], 0, ""),
    ]


async def main() -> None:
    """Play one storm and print what came of it."""
    tried: Any = import_module("models.storm")
    found = await tried.storm()
    figures: Figures = {
        "refusals": found.refusals,
        "of_ideal": found.seconds / tried.IDEAL,
        "impatient": len(found.model.impatient()),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    asyncio.run(main())
