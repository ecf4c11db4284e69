"""The bare loop, with the trajectory compared by hand and ROUGE-1 from rouge-score."""

import asyncio
from collections.abc import Callable, Sequence

import stopwatch
from contestants.bare import agent
from scenario import CONCURRENCY, LIKENESS, Row, compared_rows

Compare = Callable[[str, str], float]
"""The F1 of a reference and what was said."""


async def evaluate(rows: Sequence[Row], latency: float, f1: Compare) -> int:
    """Play and judge every row, so many at a time."""
    script = {row.says: row for row in rows}
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(row: Row) -> bool:
        async with slots:
            answer = await agent(script, row.says, latency)
        in_order = answer.calls == [("get_weather", {"city": row.expected_city})]
        # Both are measured whatever the first one says, as every harness does.
        return (f1(row.reference, answer.text) >= LIKENESS) & in_order

    return sum(await asyncio.gather(*(one(row) for row in rows)))


def main(f1: Compare) -> None:
    """Time the loop with this comparison."""
    stopwatch.main(lambda rows, latency: asyncio.run(evaluate(rows, latency, f1)), compared_rows)


def rouge_score_f1() -> Compare:
    """rouge-score's own F1, with one scorer for all texts."""
    from rouge_score.rouge_scorer import RougeScorer

    score = RougeScorer(["rouge1"], use_stemmer=True).score
    return lambda reference, said: score(reference, said)["rouge1"].fmeasure


if __name__ == "__main__":
    main(rouge_score_f1())
