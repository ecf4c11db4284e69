"""One bench run: Greenroom beside a bare asyncio loop and its peers, as ratios of CPU time.

Every contestant plays the same rows in a process of its own. They take turns, so that whatever
else the machine does hits all alike, and each figure is the best of its rounds.

    python benchmarks/run.py                 all goals; exit code 1 if one is missed
    python benchmarks/run.py --quick         a look within a minute, goals not enforced
    python benchmarks/run.py --with-adk      google-adk in the races too; sets up 900 MB
    python benchmarks/run.py --with-inspect  inspect-ai in the races too; sets up 350 MB
"""

import json
import platform
import sys
from argparse import ArgumentParser
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from operator import sub
from pathlib import Path

import contracts
import durable
import frameworks
import likeness
import stored
import storm
from goals import Goal, goal_line, row
from peers import HEAVY, environment, requirements
from scenario import CONCURRENCY
from turns import Figures, best, cpu_of, in_turns, output, played, turns

import costs

RESULTS = Path(__file__).parent / "results.json"
PEER = "pydantic-evals"

LATENCY = 0.05
MODEL_CALLS = 2
ALL_NAMES = "import greenroom\nfor name in greenroom.__all__: getattr(greenroom, name)"
PACKAGES = (
    f"import sys, json\nbefore = set(sys.modules)\n{ALL_NAMES}\n"
    "found = {name.partition('.')[0] for name in set(sys.modules) - before}\n"
    # msgspec looks for typing_extensions; records are made of msgspec.
    "ours = {'greenroom', 'msgspec', 'typing_extensions'}\n"
    "print(json.dumps(sorted(found - sys.stdlib_module_names - ours)))"
)


@dataclass(frozen=True, slots=True)
class Plan:
    """How much is measured, and how often."""

    sizes: Sequence[int]
    rounds: int
    latency_cases: int
    flow_cases: int
    starts: int
    pairs: int
    gated: int
    remembered: durable.Plan

    @property
    def usual(self) -> int:
        """The number of cases that the goals speak of."""
        return 1000 if 1000 in self.sizes else self.sizes[-1]


FULL = Plan(
    sizes=(100, 1000, 5000),
    rounds=5,
    latency_cases=1000,
    flow_cases=300,
    starts=7,
    pairs=200,
    gated=frameworks.ROUNDS,
    remembered=durable.Plan(cases=1000, slow_cases=1000, finished=10_000, large=1000),
)
QUICK = Plan(
    sizes=(100,),
    rounds=1,
    latency_cases=128,
    flow_cases=50,
    starts=2,
    pairs=50,
    gated=5,
    remembered=durable.Plan(cases=100, slow_cases=128, finished=500, large=50),
)


def main() -> int:
    """Measure, show, keep, and say whether every goal was met."""
    options = ArgumentParser(description="Measure Greenroom beside its peers.")
    options.add_argument("--quick", action="store_true", help="a short look, no goals enforced")
    options.add_argument("--with-adk", action="store_true", help="google-adk too; sets up 900 MB")
    options.add_argument(
        "--with-inspect", action="store_true", help="inspect-ai too; sets up 350 MB"
    )
    given = options.parse_args()
    quick: bool = given.quick
    asked_for = {"google-adk": given.with_adk, "inspect-ai": given.with_inspect}
    heavy = [name for name in HEAVY if asked_for[name]]
    plan = QUICK if quick else FULL
    pythons = {"bare": sys.executable, PEER: environment(PEER), "greenroom": sys.executable}

    found: Figures = {
        "versions": {
            "python": platform.python_version(),
            **{name: requirements(name)[0] for name in (PEER, *heavy)},
        },
        "race": race(pythons, plan),
        "latency": latency(pythons, plan),
        "start": start(plan),
        "packages": json.loads(output([sys.executable, "-c", PACKAGES])),
        "flows": flows(plan),
        "rouge": likeness.pairs(plan.pairs, plan.rounds),
        "rouge_race": likeness.race(likeness.contestants(heavy), plan.usual, plan.rounds),
        "remembered": durable.measured(plan.remembered, [PEER, *heavy], plan.rounds),
        "storm": storm.weathered(),
        "stored": stored.measured(),
        "contracts": contracts.measured(),
        "costs": costs.measured(),
        "frameworks": gated(plan),
    }
    goals = judged(found, plan)
    print(shown(found, goals, plan, enforced=not quick))
    kept = {"quick": quick, **found, "goals": [{**asdict(g), "met": g.met} for g in goals]}
    RESULTS.write_text(json.dumps(kept, indent=2) + "\n")
    return 0 if quick or all(goal.met for goal in goals) else 1


# Measuring


def race(pythons: Mapping[str, str], plan: Plan) -> Figures:
    """CPU, memory and warm-up of every contestant at every size."""
    heats = {
        (size, name): played(name, python, size)
        for size in plan.sizes
        for name, python in pythons.items()
    }
    found = in_turns("race", heats, plan.rounds)
    return {str(size): {name: found[size, name] for name in pythons} for size in plan.sizes}


def latency(pythons: Mapping[str, str], plan: Plan) -> Figures:
    """Wall time with slow models, as a multiple of what waiting alone would take."""
    count = plan.latency_cases
    slow = {n: played(n, pythons[n], count, "--latency", LATENCY) for n in ("bare", "greenroom")}
    found = in_turns("slow models", slow, plan.rounds)
    ideal = ceil(count / CONCURRENCY) * MODEL_CALLS * LATENCY
    return {name: figures["wall"] / ideal for name, figures in found.items()}


def start(plan: Plan) -> Figures:
    """CPU seconds to start an interpreter and to import Greenroom in it."""
    python, door = [sys.executable, "-c"], Path(sys.executable).with_name("greenroom")
    commands = {
        "interpreter": [*python, "pass"],
        "import greenroom": [*python, "import greenroom"],
        "all public names": [*python, ALL_NAMES],
        "greenroom --help": [door, "--help"],
    }
    started = {name: lambda line=line: {"cpu": cpu_of(line)} for name, line in commands.items()}
    found = in_turns("start", started, plan.starts)
    return {name: figures["cpu"] for name, figures in found.items()}


def flows(plan: Plan) -> Figures:
    """CPU, events and model calls of one case, for each shape of agent."""
    command = [sys.executable, "-m", "contestants.flows", str(plan.flow_cases)]
    rounds = [json.loads(output(command)) for _ in turns("flows", plan.rounds)]
    return {name: best([found[name] for found in rounds]) for name in rounds[0]}


def gated(plan: Plan) -> Figures:
    """CPU of the frameworks' own runs and of those through the gate."""
    measured = [sys.executable, frameworks.__file__, plan.gated, "--json"]
    found: Figures = {}
    for _ in turns("frameworks", 1):
        # A framework may print something of its own before.
        found = json.loads(output(measured).splitlines()[-1])
    return found


# Judging


def judged(found: Figures, plan: Plan) -> list[Goal]:
    """The figures that have a limit."""
    usual, largest = plan.usual, plan.sizes[-1]
    race, begun = found["race"], found["start"]
    ours = per_case(race, "greenroom", usual)
    memory = race[str(largest)]["greenroom"]["kb"] / largest
    bare_start = begun["interpreter"]
    goals = [
        Goal(f"CPU of {PEER}, {usual} cases", ours / per_case(race, PEER, usual), 0.75, "×"),
        Goal(f"memory per case, {largest} cases", memory, 5.0, "kB"),
        Goal("wall time of ideal, slow models", found["latency"]["greenroom"], 1.15, "×"),
        Goal("import greenroom", begun["import greenroom"] - bare_start, 0.15, "s"),
        Goal("import all public names", begun["all public names"] - bare_start, 0.25, "s"),
        Goal(
            "packages imported with them, but the one that records are made of",
            len(found["packages"]),
            0,
            "",
        ),
        Goal("greenroom --help", begun["greenroom --help"], 0.3, "s"),
        *likeness.goals(found["rouge_race"], found["rouge"]),
        *durable.goals(found["remembered"]),
        *storm.goals(found["storm"]),
        *stored.goals(found["stored"]),
        *contracts.goals(found["contracts"]),
        *costs.goals(found["costs"]),
        *frameworks.goals(found["frameworks"]),
    ]
    if largest > usual:
        growth = per_case(race, "greenroom", largest) / ours
        goals.insert(2, Goal(f"CPU per case, {largest} beside {usual}", growth, 1.25, "×"))
    return goals


def per_case(race: Figures, name: str, size: int) -> float:
    """CPU microseconds for one case."""
    return race[str(size)][name]["cpu"] / size * 1e6


# Showing


def shown(found: Figures, goals: Sequence[Goal], plan: Plan, *, enforced: bool) -> str:
    """Everything on one page."""
    python, *peers = found["versions"].values()
    title = ", ".join([f"Python {python}", *peers])
    parts = [title, *race_lines(found["race"], plan), *flow_lines(found["flows"])]
    parts += likeness.lines(found["rouge_race"], found["rouge"])
    parts += durable.lines(found["remembered"])
    parts += frameworks.lines(found["frameworks"])
    parts += ["", "Goals" if enforced else "Goals (a short run: shown, not enforced)"]
    parts += [goal_line(goal, enforced) for goal in goals]
    if found["packages"]:
        parts.append(f"  imported besides: {', '.join(found['packages'])}")
    return "\n".join(parts)


def race_lines(race: Figures, plan: Plan) -> list[str]:
    names = list(race[str(plan.usual)])
    cpu = {name: [per_case(race, name, size) for size in plan.sizes] for name in names}
    net = {name: list(map(sub, cpu[name], cpu["bare"])) for name in names if name != "bare"}
    first = [f"{name} {race[str(plan.usual)][name]['warm_up'] * 1e3:.0f} ms" for name in names]
    return [
        "",
        row("CPU µs per case", [f"N={size}" for size in plan.sizes]),
        *(row(name, [f"{value:.1f}" for value in cpu[name]]) for name in names),
        *(row(f"{name}, net of bare", [f"{value:.1f}" for value in net[name]]) for name in net),
        row(f"greenroom / {PEER}", beside_peer(cpu)),
        row("the same, net of bare", beside_peer(net)),
        f"  the first ten cases, not counted above: {', '.join(first)}",
    ]


def beside_peer(cpu: Mapping[str, Sequence[float]]) -> list[str]:
    return [
        f"{ours / theirs:.2f} ×" for ours, theirs in zip(cpu["greenroom"], cpu[PEER], strict=True)
    ]


def flow_lines(flows: Figures) -> list[str]:
    one = flows["one agent"]["cpu"]
    lines = [
        row(
            name,
            [
                f"{it['cpu'] * 1e6:.0f}",
                f"{it['cpu'] / one:.1f} ×",
                f"{it['cpu'] / it['events'] * 1e6:.0f}",
                f"{it['events']}",
                f"{it['model_calls']}",
            ],
        )
        for name, it in flows.items()
    ]
    heads = ["µs/case", "relative", "µs/event", "events", "replies"]
    return ["", row("Greenroom by shape", heads), *lines]


if __name__ == "__main__":
    sys.exit(main())
