"""Reports of large runs in a store: CPU for each row, and how memory grows with the number of rows.

    python benchmarks/large_runs.py [CASES]    all of it in a process of its own, as JSON
    python benchmarks/large_runs.py 100000     a run of a hundred thousand

The rows are copies of a few that were really run: running them all would take most of the time.
"""

import asyncio
import json
import sys
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time

from goals import Goal
from turns import Figures, output

from greenroom import Agent, Case, EvalSet, Expect, Scripted, evaluate
from greenroom.apps.web.run_index import RunIndex
from greenroom.results import Gate, compare
from greenroom.store import Store

CASES = 20_000
_FEWER = 4
"""How many times fewer rows the smaller run has."""
_ROWS = 10
"""How many trials are really run."""

_COPIES = """
with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < {copies})
insert into trials (position, run_id, case_id, trial, place, digest, covers_code, status, error_type, cost,
    ledger_size, verdict, ledger, judging)
select 100 + n * {rows} + place + {cases} * (select count(*) from runs where runs.position < trials.position),
    run_id, case_id || '-' || n, trial, place + n * {rows}, digest, covers_code,
    status, error_type, cost, ledger_size,
    replace(verdict, '"case_id":"' || case_id || '"', '"case_id":"' || case_id || '-' || n || '"'),
    ledger, judging
from trials, numbers
"""


def measured(cases: int = CASES) -> Figures:
    """What a process of its own finds."""
    return json.loads(output([sys.executable, __file__, str(cases)]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit, on a machine that does other things as well."""
    cpu = {"figures": 40.0, "index": 40.0, "comparison": 75.0}
    memory = {"figures": 0.1, "index": 2.0, "comparison": 4.0}
    return [
        goal
        for name, one in found.items()
        for goal in (
            Goal(f"CPU per row, {name} of a large run", one["microseconds"], cpu[name], "µs"),
            Goal(f"memory, 1,000 rows more, {name}", one["megabytes"], memory[name], "MB"),
        )
    ]


def stored(place: Path, cases: int) -> Store:
    """A store with two runs of so many cases, of which every tenth fails."""
    agent = Agent("clerk", model=Scripted("Your money is on its way."))
    asked = [
        Case(f"c{n}", "Hi", tags=["refund"], expect=Expect(contains="money" if n else "never"))
        for n in range(_ROWS)
    ]
    store = Store(place)
    for _ in range(2):
        asyncio.run(evaluate(agent, EvalSet("refunds", asked), store=store))
    with store.database.connected(to_write=True) as connection:
        connection.execute(_COPIES.format(copies=cases // _ROWS - 1, rows=_ROWS, cases=cases))
    return store


def figures(store: Store) -> object:
    """What the gate says of a run, with every figure of its report."""
    return Gate(min_pass_rate=0.5).decide(store.report(store.runs()[0].id))


def index(store: Store) -> object:
    """The list of cases of the web page."""
    found = RunIndex(store, store.runs()[0].id)
    found.update()
    return found


def comparison(store: Store) -> object:
    """Two runs side by side, as text."""
    now, then = (store.report(run.id) for run in store.runs())
    return str(compare(then, now))


REPORTS: Sequence[Callable[[Store], object]] = (figures, index, comparison)


def taken(cases: int) -> dict[str, tuple[float, float]]:
    """CPU seconds and the peak of memory in bytes, for each report of a run of so many cases."""
    found: dict[str, tuple[float, float]] = {}
    with TemporaryDirectory() as folder:
        store = stored(Path(folder) / "runs", cases)
        for report in REPORTS:
            begun = process_time()
            report(store)
            seconds = process_time() - begun
            tracemalloc.start()
            report(store)
            found[report.__name__] = seconds, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
    return found


def main(cases: int) -> None:
    """Print what each report takes, and how that grows."""
    taken(20)  # whatever is loaded on the way
    few = {name: peak for name, (_, peak) in taken(cases // _FEWER).items()}
    print(
        json.dumps(
            {
                name: {
                    "microseconds": seconds / cases * 1e6,
                    "megabytes": (peak - few[name]) / (cases - cases // _FEWER) / 1e3,
                }
                for name, (seconds, peak) in taken(cases).items()
            }
        )
    )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else CASES)
