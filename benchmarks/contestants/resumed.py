"""A run that goes on: so many trials are finished, and some new cases wait.

    python -m contestants.resumed <store> <finished>              play them, print the run's id
    python -m contestants.resumed <store> <finished> <run> <new>  go on, print the figures

Each is a process of its own, as after a crash.
"""

import asyncio
import json
import sys
from pathlib import Path
from time import perf_counter

from contestants.greenroom import agent, case
from scenario import CONCURRENCY, rows
from stopwatch import cpu_seconds

from greenroom import Report, evaluate


async def finish(place: Path, count: int) -> str:
    """Play so many cases; the id of their run."""
    table = rows(count)
    cases = [case(row) for row in table]
    report = await evaluate(agent(table, 0.0), cases, concurrency=CONCURRENCY, store=place)
    return report.id


async def go_on(place: Path, count: int, run: str, new: int) -> dict[str, float]:
    """Seconds, and those of CPU, from the call until the first new case starts."""
    table = rows(count + new)
    cases = [case(row) for row in table]
    started: list[tuple[str, float, float]] = []
    begun, cpu = perf_counter(), cpu_seconds()
    report: Report = await evaluate(
        agent(table, 0.0),
        cases,
        concurrency=CONCURRENCY,
        store=place,
        resume=run,
        on_case_start=lambda it: started.append((it.id, perf_counter(), cpu_seconds())),
    )
    if len(started) != new or len(report) != count + new:
        sys.exit(f"{len(started)} cases were played, expected the {new} new ones")
    first = started[0]
    return {"seconds": first[1] - begun, "cpu": first[2] - cpu, "whole": perf_counter() - begun}


if __name__ == "__main__":
    where, finished = Path(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) == 3:
        print(asyncio.run(finish(where, finished)))
    else:
        told = asyncio.run(go_on(where, finished, sys.argv[3], int(sys.argv[4])))
        print(json.dumps(told))
