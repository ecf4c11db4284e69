"""A store on a Postgres server beside one in a folder: CPU for each trial, and how soon many runs are listed.

python benchmarks/server.py [CASES]    all of it in a process of its own, as JSON
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

from goals import Goal
from turns import Figures, output

from greenroom import Agent, Case, EvalSet, Expect, Scripted, call, evaluate, tool
from greenroom.store import Store

sys.path.append(str(Path(__file__).parents[1] / "tests"))

CASES, ROUNDS, RUNS, TRIALS = 2_000, 4, 10_000, 100
SHOWN = 50


def measured(cases: int = CASES) -> Figures:
    """What a process of its own finds; nothing where there is no Postgres."""
    return json.loads(output([sys.executable, __file__, str(cases)]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    if not found:
        return []
    more = 1e3 * (found["server"]["cpu"] - found["folder"]["cpu"])
    listing = [
        Goal(f"CPU of listing {RUNS:,} runs, {where}", found[where]["list"], 0.2, "s")
        for where in ("folder", "server")
    ]
    return [Goal("CPU per trial of Postgres over SQLite", more, 0.5, "ms"), *listing]


def lines(found: Figures) -> list[str]:
    """What has no goal."""
    if not found:
        return ["A store on a server: left out, PostgreSQL is not installed"]
    return [
        f"A store, {RUNS:,} runs of {TRIALS} trials",
        *(
            f"  {where}: {1e3 * one['cpu']:.2f} ms CPU a trial, {1e3 * one['list']:.0f} ms of CPU to list all, "
            f"{1e3 * one['latest']:.0f} ms for the latest {SHOWN}"
            for where, one in found.items()
        ),
    ]


@tool
def look() -> str:
    """Look."""
    return "never"


def played(store: Store, count: int) -> float:
    """Seconds of CPU for each trial."""
    model = Scripted(call("look"), "Your money is on its way.")
    agent = Agent("clerk", model=model, tools=[look])
    cases = [
        Case(f"c{n}", "Hi", mocks={"look": "ok"}, expect=Expect(contains="money"))
        for n in range(count)
    ]
    begun = process_time()
    asyncio.run(evaluate(agent, EvalSet("refunds", cases), store=store, concurrency=64))
    return (process_time() - begun) / count


def filled(store: Store) -> None:
    """A store with many runs of many trials."""
    with store.database.connected(to_write=True) as connection:
        connection.execute("delete from runs")
        connection.execute("delete from trials")
        numbers = "with recursive numbers (n) as (select 1 union all select n + 1 from numbers where n < ?)"
        plan = json.dumps({"name": "refunds", "evalset_id": "refunds", "cases": TRIALS})
        connection.execute(
            f"insert into runs (id, position, name, evalset_id, agent, agent_digest, set_digest, status, "
            f"begun, passed, plan) {numbers} select 'run-' || n, n, 'refunds', 'refunds', 'clerk', '', "
            f"'', 'finished', n, 100, '{plan}' from numbers",
            (RUNS,),
        )
        connection.execute(
            f"insert into trials (position, run_id, case_id, trial, place, digest, covers_code, status, "
            f"cost, ledger_size, verdict, ledger, judging) {numbers} select {RUNS} + n, "
            f"'run-' || (1 + n / {TRIALS}), 'c' || n, 1, 0, '', 1, 'passed', 0, 0, '{{}}', ?, ? from numbers",
            (RUNS * TRIALS, b"", b""),
        )


def listed(store: Store, limit: int | None) -> float:
    """Seconds of this process's CPU to list runs, the best of some; what a server does is not in it."""
    found: list[float] = []
    for _ in range(5):
        begun = process_time()
        count = len(store.runs(limit=limit))
        found.append(process_time() - begun)
        assert count == (limit or RUNS)
    return min(found)


def main(cases: int) -> None:
    """Print the figures."""
    found: dict[str, Any] = {}
    server: Any = import_module("store.servers").server  # as the tests have it
    with server() as running, TemporaryDirectory() as folder:
        if running is not None:
            stores: dict[str, Store] = {
                "folder": Store(Path(folder) / "store"),
                "server": running.store(),
            }
            spent: dict[str, list[float]] = {name: [] for name in stores}
            for _ in range(ROUNDS):
                for name, store in stores.items():
                    spent[name].append(played(store, cases))
            for name, store in stores.items():
                filled(store)
                found[name] = {
                    "cpu": min(spent[name]),
                    "list": listed(store, None),
                    "latest": listed(store, SHOWN),
                }
    print(json.dumps(found))


if __name__ == "__main__":
    main(int(sys.argv[1]))
