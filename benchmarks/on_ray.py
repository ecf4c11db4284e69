"""What Ray adds to a trial, and how close slow models come to the ideal there.

    python benchmarks/on_ray.py              a cluster of its own, and all figures as JSON
    python benchmarks/on_ray.py drive PLACE COUNT AGENT

The driver is what all workers share, so it is the driver's CPU that counts, as the slope between a few
trials and many: starting is not part of it.
"""

import asyncio
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

from goals import Goal
from turns import Figures, best, output

sys.path.append(str(Path(__file__).parents[1] / "tests"))

FEW, MANY, ROUNDS = 500, 2_500, 2
SLOW, AT_ONCE, LATENCY, CALLS = 768, 256, 0.5, 2
PLACES = ("workers", "ray")
AGENT = """
from greenroom import Agent, Scripted, call, tool

@tool
def refund(order: int) -> dict:
    "Pay an order back."

def clerk(latency):
    model = Scripted(call("refund", order=7), "Done.", latency=latency)
    return Agent("clerk", model=model, tools=[refund])

quick, slow = clerk(0.0), clerk(LATENCY)
"""


def measured() -> Figures:
    """Both places in turns, on a cluster that is there only for this; nothing where Ray is not installed."""
    if find_spec("ray") is None:
        return {}
    return json.loads(output([sys.executable, __file__]).splitlines()[-1])


def goals(found: Figures) -> Sequence[Goal]:
    """What has a limit."""
    if not found:
        return []
    price = found["ray"]["cpu"] - found["workers"]["cpu"]
    return [
        Goal("driver CPU per trial, Ray over pipes", price, 0.3, "ms"),
        *(Goal(f"500 ms models, {place}", found[place]["slow"], 1.25, "×") for place in PLACES),
    ]


def lines(found: Figures) -> Sequence[str]:
    """The figures without a limit."""
    if not found:
        return ["  Ray is not installed: pip install 'greenroom[ray]'"]
    return [f"  driver CPU per trial, {p}: {found[p]['cpu']:.2f} ms" for p in PLACES]


def main() -> None:
    """Start a cluster as the tests have it, measure, end it."""
    cluster: Any = import_module("ray_clusters").new_cluster()
    # Apart from the cluster's own folder: what is in a project's folder travels to the nodes.
    with TemporaryDirectory() as project:
        Path(project, "shop.py").write_text(AGENT.replace("LATENCY", str(LATENCY)))
        try:
            cluster.start_head()
            os.environ["RAY_ADDRESS"] = cluster.address
            print(json.dumps({place: figures(place, project) for place in PLACES}))
        finally:
            cluster.stop()


def figures(place: str, project: str) -> Figures:
    """One place: the slope of the driver's CPU, and the wall time with slow models beside the ideal."""

    def driven(count: int, agent: str) -> Figures:
        command = [sys.executable, Path(__file__).absolute(), "drive", place, count, agent]
        return json.loads(output(command, project).splitlines()[-1])

    few, many, slow = (
        best([driven(count, agent) for _ in range(ROUNDS)])
        for count, agent in ((FEW, "quick"), (MANY, "quick"), (SLOW, "slow"))
    )
    return {"cpu": 1000 * (many["cpu"] - few["cpu"]) / (MANY - FEW), "slow": slow["slow"]}


async def drive(place: str, count: int, agent: str) -> Figures:
    """Run so many trials; what it took this process, and how long beside the ideal."""
    from greenroom import Case, Expect, evaluate

    cases = [
        Case(f"c{n}", "Hi", mocks={"refund": {}}, expect=Expect(response="Done."))
        for n in range(count)
    ]
    done: list[float] = []
    on: dict[str, Any] = {"on": "ray"} if place == "ray" else {}
    begun = process_time()
    report = await evaluate(
        f"shop.py:{agent}", cases, workers=2, concurrency=AT_ONCE, store=False, keep_ledgers=False,
        on_case_complete=lambda _: done.append(perf_counter()), progress=False, **on,
    )  # fmt: skip
    assert report.pass_rate == 1
    # Without the first of them, in which workers are still being started.
    ideal = (count - AT_ONCE) / AT_ONCE * CALLS * LATENCY
    return {"cpu": process_time() - begun, "slow": (done[-1] - done[AT_ONCE - 1]) / ideal}


if __name__ == "__main__":
    if sys.argv[1:2] == ["drive"]:
        print(json.dumps(asyncio.run(drive(sys.argv[2], int(sys.argv[3]), sys.argv[4]))))
    else:
        main()
