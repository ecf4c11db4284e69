"""What it costs to estimate an agent before it runs: 100 nodes, as given and as learnt, the best of several.

python benchmarks/costs.py    all of it in a process of its own, as JSON
"""

import json
import sys
from collections.abc import Callable, Sequence
from functools import reduce
from time import process_time
from typing import Any

from goals import Goal
from turns import Figures, output

from greenroom import Agent, Ledger, Scripted, loop, route
from greenroom.agents import Flow, Traffic, compile_flow, estimate
from greenroom.ledger import InvocationStarted, ModelCalled, ModelReplied, NodeStarted, Usage
from greenroom.models import as_model
from greenroom.models.model import model_name

NODES = 100
ROUNDS = 15
MODELS = (Scripted(name="scripted"), as_model("openai:gpt-4o-mini"))


def measured() -> Figures:
    """What a process of its own finds."""
    return json.loads(output([sys.executable, __file__]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    return [
        Goal(f"estimate of {NODES} nodes, {name}", one, 10, "ms") for name, one in found.items()
    ]


def mixture(number: int) -> Flow:
    """Blocks of agents in branches, routes and loops."""
    blocks: list[Flow] = []
    for n in range(number * 100, number * 100 + NODES // 8):
        several = agent(n) | agent(n + 1000)
        either = route("session.kind", a=agent(n + 2000), otherwise=agent(n + 3000))
        blocks += [several, loop(either >> agent(n + 4000), until={"done": True})]
    return reduce(lambda before, after: before >> after, blocks)


def agent(n: int) -> Agent:
    return Agent(f"a{n}", model=MODELS[n % 2])


def as_given(_: Flow) -> Traffic:
    return Traffic(conversations_per_day=1000, tokens_in=500, tokens_out=200, rounds=3)


def as_learnt(flow: Flow) -> Traffic:
    """What one run shows in which every node was visited."""
    ledger = Ledger()
    ledger.append(InvocationStarted(path="@1"), at=0.0)
    for node in compile_flow(flow).nodes():
        ledger.append(NodeStarted(path=node.id, node=node.id), at=0.0)
        if isinstance(node.flow, Agent):
            about: dict[str, Any] = {
                "path": node.id,
                "node": node.id,
                "model": model_name(node.flow.model),
            }
            ledger.append(ModelCalled(**about), at=0.0)
            ledger.append(ModelReplied(**about, usage=Usage(500, 200), cost=0.01), at=0.0)
    return Traffic.seen([ledger])


def best_of(traffic: Callable[[Flow], Traffic]) -> float:
    """Milliseconds of CPU for one estimate of an agent that is new."""
    found: list[float] = []
    for number in range(ROUNDS):
        flow = mixture(number)
        given = traffic(flow)
        compile_flow.cache_clear()
        begun = process_time()
        known = estimate(flow, given)
        found.append((process_time() - begun) * 1e3)
        assert known.usd
    return min(found)


if __name__ == "__main__":
    size = len(list(compile_flow(mixture(0)).nodes()))
    assert size >= NODES, size
    print(json.dumps({"as given": best_of(as_given), "as learnt": best_of(as_learnt)}))
