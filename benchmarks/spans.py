"""What a span costs: a run of many calls with spans and without, the best of several.

python benchmarks/spans.py    all of it in a process of its own, as JSON
"""

import asyncio
import json
import sys
from collections.abc import Sequence
from time import process_time
from typing import Any

from goals import Goal
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from turns import Figures, output

from greenroom import Agent, Case, Scripted, call, simulate, telemetry, tool

CALLS = 50
ROUNDS = 12
SPANS = 2 * CALLS + 3
"""One for each call and each question, the last answer, the turn and the case."""


@tool
def look(order: int) -> str:
    """Look an order up."""
    return f"order {order}"


def measured() -> Figures:
    """What a process of its own finds."""
    return json.loads(output([sys.executable, __file__]))


def goals(found: Figures) -> Sequence[Goal]:
    """The figures that have a limit."""
    return [Goal(f"a span {name}", one, 0.5, "ms") for name, one in found.items()]


def best(*middleware: Any) -> float:
    """The CPU seconds of a run."""
    replies = [*([call("look", order=1)] * CALLS), "Done."]
    agent = Agent("clerk", model=Scripted(*replies), tools=[look], max_steps=CALLS + 1)
    case = Case("c", says="Hi", mocks={"look": "ok"})
    times: list[float] = []
    for _ in range(ROUNDS):
        begun = process_time()
        asyncio.run(simulate(case, agent, middleware=middleware))
        times.append(process_time() - begun)
    return min(times)


def of_a_span(content: bool) -> float:
    """Milliseconds for a span, with what was said or without."""
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
    meters = MeterProvider([InMemoryMetricReader()])
    took = best(telemetry.spans(provider=provider, meters=meters, content=content)) - best()
    return took / SPANS * 1000


if __name__ == "__main__":
    print(json.dumps({"without content": of_a_span(False), "with content": of_a_span(True)}))
