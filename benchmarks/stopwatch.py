"""How a contestant is measured: in a process of its own, from plain rows to a number of passes."""

import json
import resource
import sys
import time
from argparse import ArgumentParser
from collections.abc import Callable, Sequence

from scenario import Row, expected_passes, rows

Play = Callable[[Sequence[Row], float], int]
"""Plays the rows, each model call taking so many seconds, and counts those that passed."""

WARM_UP = 10


def main(play: Play, scene: Callable[[int], list[Row]] = rows) -> None:
    """Time one contestant as the command line says, and print its figures as a line of JSON."""
    options = ArgumentParser()
    options.add_argument("count", type=int)
    options.add_argument("--latency", type=float, default=0.0)
    given = options.parse_args()
    table = scene(given.count + WARM_UP)
    warm_up = cpu_seconds()
    play(table[given.count :], 0.0)
    warm_up = cpu_seconds() - warm_up

    memory, cpu, wall = peak_kb(), cpu_seconds(), time.perf_counter()
    passed = play(table[: given.count], given.latency)
    wall, cpu, memory = time.perf_counter() - wall, cpu_seconds() - cpu, peak_kb() - memory

    if passed != expected_passes(given.count):
        sys.exit(f"{passed} of {given.count} passed, expected {expected_passes(given.count)}")
    figures = {"cpu": cpu, "wall": wall, "kb": memory, "warm_up": warm_up}
    print(json.dumps(figures))


def cpu_seconds() -> float:
    """What this process and its children have used up so far."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def peak_kb() -> float:
    """The most memory this process ever held."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1024 if sys.platform == "darwin" else peak
