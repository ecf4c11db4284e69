"""inspect-ai with its own agent loop: a scripted model, one tool, two scorers, and its log on disk.

It keeps the whole transcript of every sample, as Greenroom's store does; without a log it cannot run.
"""

import json
import os
from asyncio import sleep
from collections.abc import Callable, Sequence
from tempfile import TemporaryDirectory
from typing import Any

import stopwatch
from scenario import CONCURRENCY, Row

FOLDER = TemporaryDirectory()
# It keeps traces and caches in the home folder.
os.environ |= {"XDG_DATA_HOME": FOLDER.name, "XDG_CACHE_HOME": FOLDER.name}

from inspect_ai import Task, eval  # noqa: A004, E402 - its own name, and where it writes comes first
from inspect_ai.dataset import MemoryDataset, Sample  # noqa: E402
from inspect_ai.model import ModelOutput, ModelUsage, get_model  # noqa: E402
from inspect_ai.scorer import Score, accuracy, scorer  # noqa: E402
from inspect_ai.solver import TaskState, generate, use_tools  # noqa: E402
from inspect_ai.tool import tool  # noqa: E402

SCRIPT: dict[str, Row] = {}
MODEL = "scripted"
Judge = Callable[[Row, str], bool]
"""Whether what was said is good enough."""


@tool
def get_weather() -> Any:
    """The one tool."""

    async def execute(city: str) -> str:
        """Current weather in a city.

        Args:
            city: the city's name
        """
        return json.dumps({"city": city, "celsius": 21})

    return execute


def model(latency: float) -> Any:
    """Finds its lines by what the user said."""

    async def reply(messages: Any, *_: Any) -> ModelOutput:
        if latency:
            await sleep(latency)
        row = SCRIPT[next(message.text for message in messages if message.role == "user")]
        if messages[-1].role == "tool":
            said = ModelOutput.from_content(MODEL, row.answer)
        else:
            said = ModelOutput.for_tool_call(MODEL, "get_weather", {"city": row.asked_city})
        # Without usage inspect-ai would count tokens, and fetch a tokenizer for it.
        said.usage = ModelUsage(input_tokens=10, output_tokens=10, total_tokens=20)
        return said

    return get_model("mockllm/model", custom_outputs=reply, memoize=False)


@scorer(metrics=[accuracy()])
def in_order() -> Any:
    """Exactly the expected calls."""

    async def score(state: TaskState, _: Any) -> Score:
        calls = [
            (call.function, call.arguments)
            for message in state.messages
            if message.role == "assistant"
            for call in message.tool_calls or ()
        ]
        expected = SCRIPT[state.input_text].expected_city
        return Score(value=calls == [("get_weather", {"city": expected})])

    return score


@scorer(metrics=[accuracy()])
def says(judge: Judge) -> Any:
    """The answer is good enough."""

    async def score(state: TaskState, _: Any) -> Score:
        return Score(value=judge(SCRIPT[state.input_text], state.output.completion))

    return score


def play(rows: Sequence[Row], latency: float, judge: Judge) -> int:
    """Build the task, evaluate it, count the samples whose scores all hold."""
    SCRIPT.update({row.says: row for row in rows})
    task = Task(
        dataset=MemoryDataset([Sample(id=row.id, input=row.says, target="") for row in rows]),
        solver=[use_tools(get_weather()), generate()],
        scorer=[in_order(), says(judge)],
    )
    [log] = eval(
        task,
        model=model(latency),
        display="none",
        max_samples=CONCURRENCY,
        max_connections=CONCURRENCY,
        log_dir=f"{FOLDER.name}/logs",
    )
    if log.status != "success":
        raise RuntimeError(f"inspect-ai ended with {log.status!r}: {log.error}")
    return sum(all(score.value for score in it.scores.values()) for it in log.samples or ())


def contains(row: Row, said: str) -> bool:
    """The expected text is part of the answer."""
    return row.expected_text in said


if __name__ == "__main__":
    stopwatch.main(lambda rows, latency: play(rows, latency, contains))
