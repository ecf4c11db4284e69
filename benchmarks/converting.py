"""What it costs to turn a fluent suite in YAML into google-adk's eval cases: 1,000 cases.

    python benchmarks/converting.py             exit code 1 if the goal is missed
    python benchmarks/converting.py 5000        as many as you like

The figures are CPU microseconds for one case, the best of three rounds. google-adk is not imported:
what comes out is the data of its `EvalCase`, ready to be written as a file.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import TypeVar

from goals import Goal, goal_line

from greenroom import Case, EvalSet, Expect, Turn
from greenroom.cases import read_evalset, write_evalset
from greenroom.cases.files.shapes import shape_named
from greenroom.ledger.plain import Json, is_object

T = TypeVar("T")

_ROUNDS = 3
_LIMIT = 1000


def main() -> int:
    """Write the suite, read it, convert it, and hold the figures against the goal."""
    options = ArgumentParser(description="Measure a fluent suite converted to google-adk's cases.")
    options.add_argument("cases", nargs="?", type=int, default=1000)
    count: int = options.parse_args().cases
    with TemporaryDirectory() as folder:
        path = Path(folder) / "suite.yaml"
        write_evalset(suite(count), path, shape="fluent")
        reading, evalset = timed(lambda: read_evalset(path))
    converting, data = timed(lambda: shape_named("adk").write(evalset))
    check(evalset, data, count)
    goals = [
        Goal(f"reading {count:,} cases", reading / count * 1e6, _LIMIT, "µs"),
        Goal(f"converting {count:,} cases", converting / count * 1e6, _LIMIT, "µs"),
    ]
    print(goal_line(goals[0], enforced=False))
    print(goal_line(goals[1], enforced=True))
    return 0 if goals[1].met else 1


def suite(count: int) -> EvalSet:
    """Cases of two turns with a state, a mock and an expectation of every kind."""
    return EvalSet("suite", [_case(n) for n in range(count)])


def _case(n: int) -> Case:
    return Case(
        f"case-{n}",
        turns=[
            Turn("I ordered this a week ago, and it came broken."),
            Turn(
                f"The order was number {n}.",
                Expect(
                    tools=["find_order", "refund"],
                    contains="on its way",
                    reference="The money is on its way, and will be with you in three days.",
                    state={"session": {"refunded": n}},
                ),
            ),
        ],
        mocks={"find_order": {"order": n, "paid": True}, "refund": {"ok": True}},
        state={"session": {"order": n, "since": "March"}},
        tags=["refund", "broken"],
    )


def timed(work: Callable[[], T]) -> tuple[float, T]:
    """CPU seconds of the best round, and what came of the last."""
    rounds = [_round(work) for _ in range(_ROUNDS)]
    return min(seconds for seconds, _ in rounds), rounds[-1][1]


def _round(work: Callable[[], T]) -> tuple[float, T]:
    begun = process_time()
    found = work()
    return process_time() - begun, found


def check(evalset: EvalSet, data: Json, count: int) -> None:
    """A figure counts only if all cases were read, as fluent ones, and came out."""
    if not is_object(data) or (evalset.shape, len(evalset)) != ("fluent", count):
        sys.exit(f"{len(evalset)} of {count} cases were read, as {evalset.shape!r}")
    if len(data["eval_cases"]) != count:
        sys.exit(f"{len(data['eval_cases'])} of {count} cases came out")


if __name__ == "__main__":
    sys.exit(main())
