"""Reports of runs in a store: CPU for each case, and how that grows with the number of cases.

python benchmarks/stored.py [CASES]    all of it in a process of its own, as JSON
"""

import asyncio
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from goals import Goal
from turns import Figures, output

from greenroom import Agent, Case, EvalSet, Expect, Scripted, evaluate
from greenroom.ledger.ledger import Ledger
from greenroom.reports.console import ConsoleReport
from greenroom.reports.terminal import Terminal
from greenroom.results.comparisons.comparison import compare
from greenroom.results.report import Report
from greenroom.results.reporters import render_report
from greenroom.results.result import CaseResult, LedgerSource
from greenroom.store import Store

FEW, MANY = 1_000, 4_000
FORMATS = ("json", "junit", "html", "markdown", "adk")


@dataclass(frozen=True, slots=True)
class Counted:
    """A shelf that counts how often a ledger is taken from it."""

    shelf: LedgerSource
    opened: list[int]

    @property
    def size(self) -> int:
        return self.shelf.size

    def load(self) -> Ledger:
        self.opened[0] += 1
        return self.shelf.load()


def measured(cases: int = MANY) -> Figures:
    """What a process of its own finds."""
    return json.loads(output([sys.executable, __file__, str(cases)]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    return [
        goal
        for name, one in found.items()
        for goal in (
            Goal(f"ledgers opened for each case, {name}", one["opened"], 1.0, "×"),
            Goal(f"CPU per case, 4 × the cases, {name}", one["growth"], 1.25, "×"),
        )
    ]


def stored(place: Path, cases: int) -> tuple[Store, list[str]]:
    """A store with two runs of so many cases, of which every tenth fails."""
    agent = Agent("clerk", model=Scripted("Your money is on its way."))
    asked = [
        Case(f"c{n}", "Hi", expect=Expect(contains="money" if n % 10 else "never"))
        for n in range(cases)
    ]
    store = Store(place)
    for _ in range(2):
        asyncio.run(evaluate(agent, EvalSet("refunds", asked), store=store))
    return store, [run.id for run in store.runs()]


def read(store: Store, run: str, opened: list[int]) -> Report:
    """A run's report, whose ledgers are counted as they are opened."""
    report = store.report(run)
    return replace(report, results=[_counted(result, opened) for result in report.results])


def _counted(result: CaseResult, opened: list[int]) -> CaseResult:
    kept = result.kept
    if kept is None or isinstance(kept, Ledger):
        return result
    return replace(result, kept=Counted(kept, opened))


def taken(cases: int) -> dict[str, tuple[float, float]]:
    """For each report of so many cases: CPU seconds and ledgers opened, both for each case."""
    with TemporaryDirectory() as folder:
        store, runs = stored(Path(folder) / "runs", cases)

        def shown(name: str) -> Callable[[list[int]], object]:
            return lambda opened: render_report(name, read(store, runs[0], opened))

        def printed(opened: list[int]) -> None:
            ConsoleReport(Terminal(StringIO(), width=120)).show(read(store, runs[0], opened))

        def compared(opened: list[int]) -> str:
            then, now = (read(store, run, opened) for run in reversed(runs))
            return str(compare(then, now))

        errands = {name: shown(name) for name in FORMATS}
        errands |= {"terminal": printed, "comparison": compared}
        found: dict[str, tuple[float, float]] = {}
        for name, errand in errands.items():
            opened, begun = [0], process_time()
            errand(opened)
            found[name] = (process_time() - begun) / cases, opened[0] / cases
        return found


def main(cases: int) -> None:
    """Print what each report takes, and how that grows."""
    taken(10)  # whatever is loaded on the way
    few, many = taken(cases * FEW // MANY), taken(cases)
    print(
        json.dumps(
            {
                name: {
                    "milliseconds": cpu * 1000,
                    "growth": cpu / few[name][0],
                    "opened": opened,
                }
                for name, (cpu, opened) in many.items()
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else MANY)
