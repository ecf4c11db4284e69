"""What it costs to remember a run, and how soon an interrupted one goes on.

Every store is a temporary folder. Where that is on a disk, the disk is measured too.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from math import ceil
from pathlib import Path
from shutil import copytree
from tempfile import TemporaryDirectory

from goals import Goal, row
from peers import PEER, environment, left_out
from plan import Plan
from scenario import CONCURRENCY
from turns import Figures, best, in_turns, output, played, turns

OFF, ON = "greenroom", "greenroom-stored"
LATENCY = 0.1
MODEL_CALLS = 2
NEW = 10
PARTS = 5
"""The slope is drawn between a fifth of the large ledgers and all of them."""


def measured(plan: Plan) -> Figures:
    """All of it, and what the same race takes the peers."""
    return {
        "plan": asdict(plan),
        "race": race(plan.stored, [PEER, *plan.heavy], plan.rounds),
        "latency": latency(plan.stored_slow, plan.rounds),
        "resumed": resumed(plan.finished, plan.rounds),
        "memory": memory(plan.large, plan.large_bytes),
    }


def race(count: int, peers: Sequence[str], rounds: int) -> Figures:
    """CPU of the same cases without a store, with one, and by peers."""
    heats = {name: played(name, sys.executable, count) for name in (OFF, ON)}
    heats |= {name: played(name, environment(name), count) for name in peers}
    return in_turns("store", heats, rounds)


def latency(count: int, rounds: int) -> float:
    """Wall time with slow models and a store, as a multiple of what waiting alone would take."""
    slow = {ON: played(ON, sys.executable, count, "--latency", LATENCY)}
    found = in_turns("store, slow models", slow, rounds)
    return found[ON]["wall"] / (ceil(count / CONCURRENCY) * MODEL_CALLS * LATENCY)


def resumed(finished: int, rounds: int) -> Figures:
    """Seconds until the first new case of a run that had so many finished trials."""
    command = [sys.executable, "-m", "contestants.resumed"]
    with TemporaryDirectory() as folder:
        before = Path(folder) / "before"
        run = output([*command, before, finished]).strip()
        found: list[Figures] = []
        for number in turns("resuming", rounds):
            place = Path(folder) / str(number)
            copytree(before, place)
            found.append(json.loads(output([*command, place, finished, run, NEW])))
    return best(found)


def memory(count: int, size: int) -> Figures:
    """By how many MB a process grows with few large ledgers and with many; a busy machine changes nothing of it."""
    few = max(1, count // PARTS)
    counts = {"few": few, "many": count}
    entries = {
        name: played("large_ledgers", sys.executable, number, size)
        for name, number in counts.items()
    }
    found = {name: it["kb"] / 1024 for name, it in in_turns("memory", entries, 1).items()}
    slope = (found["many"] - found["few"]) / (count - few) * 1024
    return {**found, "kb_per_case": slope}


def goals(found: Figures) -> list[Goal]:
    """What is promised of a run that is remembered."""
    cpu = {name: figures["cpu"] for name, figures in found["race"].items()}
    plan = found["plan"]
    return [
        Goal("CPU with a store, of without", cpu[ON] / cpu[OFF], 2.5, "×"),
        Goal("wall time of ideal, with a store", found["latency"], 1.15, "×"),
        Goal(f"going on after {plan['finished']} trials", found["resumed"]["seconds"], 2.0, "s"),
        Goal(f"growth, {plan['large']} large ledgers", found["memory"]["many"], 300.0, "MB"),
    ]


def lines(found: Figures) -> list[str]:
    """Everybody beside Greenroom with and without a store, and what has no goal."""
    plan = found["plan"]
    cpu = {name: it["cpu"] / plan["stored"] * 1e6 for name, it in found["race"].items()}
    return [
        row(f"A remembered run, N={plan['stored']}", ["µs/case", "without", "with"]),
        *(row(name, _cells(name, cpu)) for name in cpu),
        "  without and with a store: Greenroom as a part of this; of the others only inspect-ai writes",
        *left_out(cpu),
        *_told(plan, found["resumed"], found["memory"]),
    ]


def _told(plan: Figures, again: Figures, held: Figures) -> list[str]:
    begins, cpu, done = (again[key] for key in ("seconds", "cpu", "whole"))
    size, more, slope = plan["large_bytes"] / 1e6, held["many"], held["kb_per_case"]
    return [
        f"  going on after {plan['finished']} trials: a case begins after {begins:.2f} s, {cpu:.2f} CPU",
        f"  and all is done after {done:.2f} s",
        f"  {plan['large']} ledgers of {size:g} MB: {more:.0f} MB more memory, {slope:.1f} kB a case",
    ]


def _cells(name: str, cpu: Mapping[str, float]) -> list[str]:
    return [f"{cpu[name]:.0f}", *(f"{cpu[ours] / cpu[name]:.2f} ×" for ours in (OFF, ON))]
