"""The races: the same cases by a bare loop, by peers and by Greenroom, and by its shapes of agents."""

import json
import sys
from collections.abc import Mapping, Sequence
from math import ceil
from operator import sub

from goals import Goal, row
from peers import PEER, environment
from plan import Plan, usual
from scenario import CONCURRENCY
from turns import Figures, best, in_turns, output, played, turns

PEER_WITH_AGENT = "pydantic-evals-agent"
LATENCY = 0.05
MODEL_CALLS = 2


def race(plan: Plan) -> Figures:
    """CPU, memory and warm-up of every contestant at every size."""
    pythons = {"bare": sys.executable, PEER: environment(PEER), "greenroom": sys.executable}
    heats = {
        (size, name): played(name, python, size)
        for size in plan.sizes
        for name, python in pythons.items()
    }
    found = in_turns("race", heats, plan.rounds)
    return {str(size): {name: found[size, name] for name in pythons} for size in plan.sizes}


def goals(race: Figures) -> list[Goal]:
    """Cheaper than the peer, and no dearer with many cases than with few."""
    sizes = list(map(int, race))
    size, largest = usual(sizes), sizes[-1]
    ours = per_case(race, "greenroom", size)
    memory = race[str(largest)]["greenroom"]["kb"] / largest
    growth = per_case(race, "greenroom", largest) / ours
    return [
        Goal(f"CPU of {PEER}, {size} cases", ours / per_case(race, PEER, size), 0.75, "×"),
        Goal(f"memory per case, {largest} cases", memory, 5.0, "kB"),
        *([Goal(f"CPU per case, {largest} beside {size}", growth, 1.25, "×")] * (largest > size)),
    ]


def lines(race: Figures) -> list[str]:
    """CPU for one case by contestant and size."""
    sizes = list(map(int, race))
    of_usual = race[str(usual(sizes))]
    cpu = {name: [per_case(race, name, size) for size in sizes] for name in of_usual}
    net = {name: list(map(sub, cpu[name], cpu["bare"])) for name in cpu if name != "bare"}
    first = [f"{name} {it['warm_up'] * 1e3:.0f} ms" for name, it in of_usual.items()]
    return [
        row("CPU µs per case", [f"N={size}" for size in sizes]),
        *(row(name, [f"{value:.1f}" for value in cpu[name]]) for name in cpu),
        *(row(f"{name}, net of bare", [f"{value:.1f}" for value in net[name]]) for name in net),
        row(f"greenroom / {PEER}", _beside_peer(cpu)),
        row("the same, net of bare", _beside_peer(net)),
        f"  the first ten cases, not counted above: {', '.join(first)}",
    ]


def per_case(race: Figures, name: str, size: int) -> float:
    """CPU microseconds for one case."""
    return race[str(size)][name]["cpu"] / size * 1e6


def _beside_peer(cpu: Mapping[str, Sequence[float]]) -> list[str]:
    return [
        f"{ours / theirs:.2f} ×" for ours, theirs in zip(cpu["greenroom"], cpu[PEER], strict=True)
    ]


def agents(plan: Plan) -> Figures:
    """CPU of Greenroom with its own agent, and of the peer with one of pydantic-ai."""
    count = plan.agent_cases
    heats = {
        "greenroom": played("greenroom", sys.executable, count),
        PEER_WITH_AGENT: played(PEER_WITH_AGENT, environment(PEER), count),
    }
    found = in_turns("agents", heats, plan.rounds)
    return {name: figures["cpu"] / count * 1e6 for name, figures in found.items()}


def agent_goals(found: Figures) -> list[Goal]:
    """What the peer takes once it runs an agent too."""
    ratio = found["greenroom"] / found[PEER_WITH_AGENT]
    return [Goal(f"CPU of {PEER} with a pydantic-ai agent", ratio, 0.05, "×")]


def latency(plan: Plan) -> Figures:
    """Wall time with slow models, as a multiple of what waiting alone would take."""
    count = plan.latency_cases
    slow = {
        name: played(name, sys.executable, count, "--latency", LATENCY)
        for name in ("bare", "greenroom")
    }
    found = in_turns("slow models", slow, plan.rounds)
    ideal = ceil(count / CONCURRENCY) * MODEL_CALLS * LATENCY
    return {name: figures["wall"] / ideal for name, figures in found.items()}


def latency_goals(found: Figures) -> list[Goal]:
    """Hardly more than the waiting."""
    return [Goal("wall time of ideal, slow models", found["greenroom"], 1.15, "×")]


def flows(plan: Plan) -> Figures:
    """CPU, events and model calls of one case, for each shape of agent."""
    command = [sys.executable, "-m", "contestants.flows", str(plan.flow_cases)]
    rounds = [json.loads(output(command)) for _ in turns("flows", plan.rounds)]
    return {name: best([found[name] for found in rounds]) for name in rounds[0]}


def flow_lines(flows: Figures) -> list[str]:
    """A table of the shapes."""
    one = flows["one agent"]["cpu"]
    heads = ["µs/case", "relative", "µs/event", "events", "replies"]
    return [
        row("Greenroom by shape", heads),
        *(
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
        ),
    ]
