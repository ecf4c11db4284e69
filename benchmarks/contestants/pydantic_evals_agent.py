"""pydantic-evals with an agent of pydantic-ai as its task, and the same two evaluators."""

import asyncio
from collections.abc import Sequence

import stopwatch
from contestants.bare import Answer
from contestants.pydantic_evals import Contains, InOrder, case
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_evals import Dataset
from scenario import CONCURRENCY, Row


async def evaluate(rows: Sequence[Row], latency: float) -> int:
    """Build the dataset, evaluate it, count the cases whose assertions all hold."""
    script = {row.says: row for row in rows}

    async def respond(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        await asyncio.sleep(latency)
        row = script[messages[0].parts[0].content]
        if len(messages) > 1:
            return ModelResponse([TextPart(row.answer)])
        return ModelResponse([ToolCallPart("get_weather", {"city": row.asked_city})])

    agent = Agent(FunctionModel(respond))

    @agent.tool_plain
    def get_weather(city: str) -> dict[str, object]:
        """Current weather in a city."""
        return {"city": city}

    async def task(says: str) -> Answer:
        run = await agent.run(says)
        calls = [
            (part.tool_name, part.args)
            for message in run.all_messages()
            for part in message.parts
            if isinstance(part, ToolCallPart)
        ]
        return Answer(run.output, calls)

    dataset = Dataset(
        name="weather", cases=[case(row) for row in rows], evaluators=[InOrder(), Contains()]
    )
    report = await dataset.evaluate(task, max_concurrency=CONCURRENCY, progress=False)
    return sum(all(found.value for found in one.assertions.values()) for one in report.cases)


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: asyncio.run(evaluate(rows, latency)))
