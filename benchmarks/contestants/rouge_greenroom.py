"""Greenroom with an agent of its own, the expected trajectory, and `response_match_score`."""

import asyncio
from collections.abc import Sequence

import stopwatch
from contestants.greenroom import agent
from scenario import CONCURRENCY, LIKENESS, Row, compared_rows

from greenroom import Case, Expect, call, evaluate
from greenroom.metrics import response_match_score


def case(row: Row) -> Case:
    """One row as a case: the tool mocked, the trajectory expected, and a text to resemble."""
    return Case(
        row.id,
        says=row.says,
        mocks={"get_weather": row.weather},
        expect=Expect(tools=[call("get_weather", city=row.expected_city)], reference=row.reference),
    )


async def play(rows: Sequence[Row], latency: float) -> int:
    """Build the cases, rehearse them, count those that passed."""
    report = await evaluate(
        agent(rows, latency),
        [case(row) for row in rows],
        metrics=[response_match_score(LIKENESS)],
        concurrency=CONCURRENCY,
        keep_ledgers=False,
        store=False,
    )
    return report.summary.passed


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: asyncio.run(play(rows, latency)), compared_rows)
