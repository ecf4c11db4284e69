"""What it costs to check an agent before it runs: 100 nodes, all checks, the best of several.

python benchmarks/contracts.py    all of it in a process of its own, as JSON
"""

import json
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from time import process_time
from typing import Literal

from goals import Goal
from turns import Figures, output

from greenroom import Agent, Scripted, StateSchema, loop, route
from greenroom.agents import Flow, check, compile_flow

NODES = 100
ROUNDS = 15
MODEL = Scripted(then="x")


class Desk(StateSchema):
    """A schema that half of the nodes speak of."""

    kind: Literal["a", "b"]
    answer: str


def measured() -> Figures:
    """What a process of its own finds."""
    return json.loads(output([sys.executable, __file__]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    return [Goal(f"check of {NODES} nodes, {name}", one, 50, "ms") for name, one in found.items()]


def line(number: int) -> Flow:
    """Agents that each read what the one before wrote."""
    return in_order([agent(n + 100 * number) for n in range(NODES - 1)])


def mixture(number: int) -> Flow:
    """Blocks of agents in branches, routes and loops, all of which read and write the state."""
    blocks: list[Flow] = []
    for n in range(number * 100, number * 100 + NODES // 9):
        several = agent(n) | agent(n + 1000)
        either = route(Desk.kind, a=agent(n + 2000), otherwise=agent(n + 3000))
        blocks += [several, loop(either >> agent(n + 4000), max_rounds=3)]
    return in_order([Agent("first", model=MODEL, writes=Desk.kind), *blocks])


def in_order(parts: Sequence[Flow]) -> Flow:
    """One after another."""
    return reduce(lambda before, after: before >> after, parts)


def agent(n: int) -> Agent:
    reads = [f"key{n - 1}", Desk.answer]
    return Agent(
        f"a{n}", model=MODEL, reads=reads, writes=f"key{n}", instructions=f"{{key{n - 1}}}"
    )


def best_of(make: Callable[[int], Flow]) -> float:
    """Milliseconds of CPU for one check of a graph that is new."""
    found: list[float] = []
    for number in range(ROUNDS):
        graph = compile_flow(make(number))
        begun = process_time()
        check(graph, schema=Desk, given={"session": {"key0": "x"}})
        found.append((process_time() - begun) * 1e3)
    return min(found)


if __name__ == "__main__":
    shapes = {"in line": line, "mixed": mixture}
    sizes = {name: len(list(compile_flow(make(0)).nodes())) for name, make in shapes.items()}
    assert all(size >= NODES for size in sizes.values()), sizes
    print(json.dumps({name: best_of(make) for name, make in shapes.items()}))
