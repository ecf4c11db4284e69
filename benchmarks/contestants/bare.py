"""The least anybody can do: an asyncio loop with a semaphore and two comparisons by hand."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field

import stopwatch
from scenario import CONCURRENCY, Row


@dataclass(slots=True)
class Answer:
    """What the agent did and said."""

    text: str = ""
    calls: list[tuple[str, dict[str, str]]] = field(default_factory=list)


async def agent(script: dict[str, Row], says: str, latency: float) -> Answer:
    """Ask the model, call the tool, ask the model again."""
    answer = Answer()
    wanted = await model(script[says].asked_city, latency)
    answer.calls.append(("get_weather", {"city": wanted}))
    script[says].weather.copy()
    answer.text = await model(script[says].answer, latency)
    return answer


async def model(line: str, latency: float) -> str:
    """The next line of the script."""
    if latency:
        await asyncio.sleep(latency)
    return line


async def evaluate(rows: Sequence[Row], latency: float) -> int:
    """Play and judge every row, so many at a time."""
    script = {row.says: row for row in rows}
    slots = asyncio.Semaphore(CONCURRENCY)

    async def one(row: Row) -> bool:
        async with slots:
            answer = await agent(script, row.says, latency)
        in_order = answer.calls == [("get_weather", {"city": row.expected_city})]
        return in_order and row.expected_text in answer.text

    return sum(await asyncio.gather(*(one(row) for row in rows)))


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: asyncio.run(evaluate(rows, latency)))
