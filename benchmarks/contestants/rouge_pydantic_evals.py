"""pydantic-evals with a bare task, and two evaluators: the calls, and ROUGE-1 from rouge-score."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import stopwatch
from contestants.bare import Answer, agent
from contestants.pydantic_evals import Context, InOrder
from contestants.rouge_bare import rouge_score_f1
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator
from scenario import CONCURRENCY, LIKENESS, Row, compared_rows

f1 = rouge_score_f1()


@dataclass
class Resembles(Evaluator[str, Answer, Any]):
    """The answer is like the reference."""

    def evaluate(self, ctx: Context) -> bool:
        return f1(ctx.expected_output, ctx.output.text) >= LIKENESS


async def evaluate(rows: Sequence[Row], latency: float) -> int:
    """Build the dataset, evaluate it, count the cases whose assertions all hold."""
    script = {row.says: row for row in rows}

    async def task(says: str) -> Answer:
        return await agent(script, says, latency)

    dataset = Dataset(
        name="weather",
        cases=[_case(row) for row in rows],
        evaluators=[InOrder(), Resembles()],
    )
    report = await dataset.evaluate(task, max_concurrency=CONCURRENCY, progress=False)
    return sum(all(found.value for found in case.assertions.values()) for case in report.cases)


def _case(row: Row) -> Any:
    return Case(
        name=row.id,
        inputs=row.says,
        expected_output=row.reference,
        metadata=[("get_weather", {"city": row.expected_city})],
    )


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: asyncio.run(evaluate(rows, latency)), compared_rows)
