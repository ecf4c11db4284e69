"""What the command line itself costs, in CPU time of a process: the best of several starts.

python benchmarks/doors.py
"""

import json
import resource
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from goals import Goal, goal_line

CASES = 10_000
ROUNDS = 5
COMMAND = (sys.executable, "-m", "greenroom.apps.cli")


def main() -> int:
    """Measure, show, and say whether every goal was met."""
    with TemporaryDirectory() as folder:
        small, large = (_evalset(Path(folder), ending) for ending in (".json", ".yaml"))
        goals = [
            Goal("greenroom --help", _seconds("--help"), 0.3, "s"),
            Goal("greenroom eval run --help", _seconds("eval", "run", "--help"), 0.3, "s"),
            Goal(f"list {CASES} cases, JSON", _seconds("eval-set", "list", str(small)), 2.0, "s"),
        ]
        yaml = _seconds("eval-set", "list", str(large), rounds=1)
    for goal in goals:
        print(goal_line(goal, enforced=True))
    print(f"  list {CASES} cases, YAML: {yaml:.2f} s, no goal")
    return 0 if all(goal.met for goal in goals) else 1


def _evalset(folder: Path, ending: str) -> Path:
    """Ten thousand cases of the usual kind. JSON is YAML too, and read as such if it is called so."""
    cases = [
        {
            "id": f"refund-{number}",
            "name": f"Refund number {number}",
            "tags": ["smoke", f"batch-{number % 10}"],
            "says": f"Money back for order {number}!",
            "mocks": {"refund": {"value": {"ok": True}}},
            "expect": {"tools": [{"tool": "refund", "args": {"order": number}}], "contains": "ok"},
        }
        for number in range(CASES)
    ]
    path = folder / f"large{ending}"
    path.write_text(json.dumps({"version": 1, "cases": cases}, indent=1), encoding="utf-8")
    return path


def _seconds(*words: str, rounds: int = ROUNDS) -> float:
    return min(_once(words) for _ in range(rounds))


def _once(words: tuple[str, ...]) -> float:
    before = _children()
    subprocess.run([*COMMAND, *words], stdout=subprocess.DEVNULL, check=True)
    return _children() - before


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


if __name__ == "__main__":
    sys.exit(main())
