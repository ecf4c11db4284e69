"""One bench run: Greenroom beside a bare asyncio loop and its peers, as ratios of CPU time.

Every contestant plays the same rows in a process of its own. They take turns, so that whatever
else the machine does hits all alike, and each figure is the best of its rounds.

    python benchmarks/run.py                 all goals; exit code 1 if one is missed
    python benchmarks/run.py race storm      these parts only
    python benchmarks/run.py --quick         a look within a minute, goals not enforced
    python benchmarks/run.py --with-adk      google-adk in the races too; sets up 900 MB
    python benchmarks/run.py --with-inspect  inspect-ai in the races too; sets up 350 MB

Each part is shown and written to results.json as soon as it is measured, so a run that is
interrupted has lost no more than the part it was at.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import as_tests
import contracts
import durable
import frameworks
import large_runs
import likeness
import on_ray
import races
import server
import spans
import starting
import stored
import storm
from goals import Goal, goal_line
from peers import HEAVY, versions
from plan import FULL, QUICK, Plan
from turns import Figures

import costs

RESULTS = Path(__file__).parent / "results.json"


@dataclass(frozen=True, slots=True)
class Part:
    """Something that is measured: its table, and which of its figures have a limit."""

    measure: Callable[[Plan], Figures]
    goals: Callable[[Figures], Sequence[Goal]] = lambda _: ()
    lines: Callable[[Figures], Sequence[str]] = lambda _: ()


PARTS = {
    "race": Part(races.race, races.goals, races.lines),
    "agents": Part(races.agents, races.agent_goals),
    "latency": Part(races.latency, races.latency_goals),
    "start": Part(starting.measured, starting.goals, starting.lines),
    "tests": Part(as_tests.measured, as_tests.goals, as_tests.lines),
    "flows": Part(races.flows, lines=races.flow_lines),
    "rouge": Part(likeness.measured, likeness.goals, likeness.lines),
    "store": Part(durable.measured, durable.goals, durable.lines),
    "server": Part(lambda _: server.measured(), server.goals, server.lines),
    "storm": Part(lambda _: storm.weathered(), storm.goals),
    "reports": Part(lambda _: stored.measured(), stored.goals),
    "large runs": Part(lambda _: large_runs.measured(), large_runs.goals),
    "contracts": Part(lambda _: contracts.measured(), contracts.goals),
    "costs": Part(lambda _: costs.measured(), costs.goals),
    "spans": Part(lambda _: spans.measured(), spans.goals),
    "ray": Part(lambda _: on_ray.measured(), on_ray.goals, on_ray.lines),
    "frameworks": Part(frameworks.in_own_process, frameworks.goals, frameworks.lines),
}


def main() -> int:
    """Measure, show and keep part by part, and say whether every goal was met."""
    options = ArgumentParser(description="Measure Greenroom beside its peers.")
    options.add_argument("parts", nargs="*", metavar="part", help=", ".join(PARTS))
    options.add_argument("--quick", action="store_true", help="a short look, no goals enforced")
    options.add_argument("--with-adk", action="store_true", help="google-adk too; sets up 900 MB")
    options.add_argument(
        "--with-inspect", action="store_true", help="inspect-ai too; sets up 350 MB"
    )
    given = options.parse_args()
    if unknown := set(given.parts) - set(PARTS):
        options.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    asked_for = {"google-adk": given.with_adk, "inspect-ai": given.with_inspect}
    plan = replace(
        QUICK if given.quick else FULL, heavy=[name for name in HEAVY if asked_for[name]]
    )
    try:
        return run(given.parts or list(PARTS), plan, enforced=not given.quick)
    except KeyboardInterrupt:
        print(f"\ninterrupted; what was measured before is in {RESULTS}")
        return 130


def run(parts: Sequence[str], plan: Plan, *, enforced: bool) -> int:
    """Measure these parts and show each when it is done; 1 if a goal is missed."""
    found: dict[str, Any] = {"enforced": enforced, "versions": versions(plan.heavy), "goals": []}
    print(", ".join(found["versions"]), flush=True)
    missed: list[Goal] = []
    for name in parts:
        begun, part = perf_counter(), PARTS[name]
        found[name] = part.measure(plan)
        goals = part.goals(found[name])
        missed += [goal for goal in goals if not goal.met]
        found["goals"] += [{**asdict(goal), "met": goal.met} for goal in goals]
        RESULTS.write_text(json.dumps(found, indent=2) + "\n")
        print(f"\n{name}, measured in {perf_counter() - begun:.0f} s")
        print("\n".join([*part.lines(found[name]), *(goal_line(g, enforced) for g in goals)]))
        sys.stdout.flush()
    print(f"\n{len(found['goals'])} goals, {len(missed)} missed")
    for goal in missed:
        print(goal_line(goal, enforced))
    return 1 if missed and enforced else 0


if __name__ == "__main__":
    sys.exit(main())
