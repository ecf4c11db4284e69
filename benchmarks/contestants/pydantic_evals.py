"""pydantic-evals with a bare task: the agent of the bare loop, and two evaluators."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import stopwatch
from contestants.bare import Answer, agent
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from scenario import CONCURRENCY, Row

Context = EvaluatorContext[str, Answer, Any]


@dataclass
class InOrder(Evaluator[str, Answer, Any]):
    """Exactly the expected calls."""

    def evaluate(self, ctx: Context) -> bool:
        return ctx.output.calls == ctx.metadata


@dataclass
class Contains(Evaluator[str, Answer, Any]):
    """The expected text is part of the answer."""

    def evaluate(self, ctx: Context) -> bool:
        return ctx.expected_output in ctx.output.text


async def evaluate(rows: Sequence[Row], latency: float) -> int:
    """Build the dataset, evaluate it, count the cases whose assertions all hold."""
    script = {row.says: row for row in rows}

    async def task(says: str) -> Answer:
        return await agent(script, says, latency)

    dataset = Dataset(
        name="weather",
        cases=[case(row) for row in rows],
        evaluators=[InOrder(), Contains()],
    )
    report = await dataset.evaluate(task, max_concurrency=CONCURRENCY, progress=False)
    return sum(all(found.value for found in case.assertions.values()) for case in report.cases)


def case(row: Row) -> Any:
    """One row as a case."""
    return Case(
        name=row.id,
        inputs=row.says,
        expected_output=row.expected_text,
        metadata=[("get_weather", {"city": row.expected_city})],
    )


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: asyncio.run(evaluate(rows, latency)))
