"""Greenroom with an agent of its own: gated, fenced, watched, and every event written down."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

import stopwatch
from scenario import CONCURRENCY, Row

from greenroom import Agent, Case, Expect, Scripted, call, evaluate, tool
from greenroom.ledger import ToolCall
from greenroom.models import ModelRequest


@tool
def get_weather(city: str) -> dict[str, object]:
    """Current weather in a city."""
    raise RuntimeError(f"never reached in a rehearsal: {city!r}")


def agent(rows: Sequence[Row], latency: float) -> Agent:
    """One agent for all rows; its model finds its lines by what the user said."""
    script = {row.says: row for row in rows}

    def asks(request: ModelRequest) -> ToolCall:
        return call("get_weather", city=script[request.messages[0].text].asked_city)

    def answers(request: ModelRequest) -> str:
        return script[request.messages[0].text].answer

    return Agent("weather", model=Scripted(asks, answers, latency=latency), tools=[get_weather])


def case(row: Row) -> Case:
    """One row as a case: the tool mocked, the trajectory and the text expected."""
    return Case(
        row.id,
        says=row.says,
        mocks={"get_weather": row.weather},
        expect=Expect(
            tools=[call("get_weather", city=row.expected_city)], contains=row.expected_text
        ),
    )


async def play(rows: Sequence[Row], latency: float, store: Path | None = None) -> int:
    """Build the cases, rehearse them, count those that passed; remember the run if told where."""
    report = await evaluate(
        agent(rows, latency),
        [case(row) for row in rows],
        concurrency=CONCURRENCY,
        keep_ledgers=False,
        store=store or False,
    )
    return report.summary.passed


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: asyncio.run(play(rows, latency)))
