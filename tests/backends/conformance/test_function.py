"""Plain functions pass the suite that every backend passes."""

import asyncio
import inspect
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from greenroom import tool
from greenroom.agents import Tool
from greenroom.backends.function import FunctionBackend
from greenroom.ledger import ToolCall
from greenroom.testing import (
    BackendConformance,
    Blueprint,
    Bypass,
    Desk,
    Hang,
    Structured,
    ToolPlan,
    pieces,
)
from greenroom.world import ToolError


def due(lines: Any, messages: list[dict[str, str]]) -> list[Any]:
    """The lines of this turn: those after as many answers as were given before."""
    answered = sum(message["role"] == "assistant" for message in messages)
    for index, line in enumerate(lines):
        if answered == 0:
            return list(lines[index:])
        answered -= isinstance(line, str | Structured)
    return []


def is_async(plan: Blueprint) -> bool:
    """Whether the function must be one; tools that block are called by a function that blocks."""
    waits = any(isinstance(line, Hang) for line in plan.lines)
    return waits or any(inspect.iscoroutinefunction(given.fn) for given in plan.tools)


class FunctionHarness:
    backend = FunctionBackend

    def build(self, plan: Blueprint) -> Any:
        tools = {given.name: made(given) for given in plan.tools}
        swallowed = Exception if plan.swallows else ToolError
        instructions = plan.instructions

        def said(line: Any, state: Any) -> Any:
            if isinstance(line, Exception):
                raise line
            answer = line if isinstance(line, str) else dict(line.value)
            if plan.writes:
                state["session"][plan.writes] = answer
            return answer

        async def later(messages: list[dict[str, str]], state: Any) -> Any:
            for line in due(plan.lines, messages):
                if isinstance(line, Hang):
                    await asyncio.Event().wait()
                elif isinstance(line, ToolCall):
                    with suppress(swallowed):
                        await tools[line.tool](**line.args)
                else:
                    return said(line, state)
            return f"{instructions} has no more lines"

        def clerk(messages: list[dict[str, str]], state: Any) -> Any:
            for line in due(plan.lines, messages):
                if not isinstance(line, ToolCall | list | tuple):
                    return said(line, state)
                for wanted in [line] if isinstance(line, ToolCall) else line:
                    with suppress(swallowed):
                        tools[wanted.tool](**wanted.args)
            return f"{instructions} has no more lines"

        def in_pieces(messages: list[dict[str, str]], state: Any) -> Any:
            yield from pieces(clerk(messages, state))

        chosen = in_pieces if plan.streams else later if is_async(plan) else clerk
        return FunctionBackend(chosen, tools=list(tools.values()), name=plan.name)

    async def run_bare(self, agent: Any, says: str) -> None:
        if isinstance(agent, FunctionBackend):
            agent = agent.fn
        returned = agent([{"role": "user", "content": says}], {})
        if asyncio.iscoroutine(returned):
            await returned

    def bypasses(self) -> Mapping[str, Bypass]:
        return {
            "a raw thread": Bypass(in_a_thread),
            "swallowing everything": Bypass(swallowing),
            "the tool's own method": Bypass(by_its_method),
            "a mock that calls the tool it stands for": Bypass(
                calling, mocks={"weather": calls_the_tool}
            ),
        }


def made(plan: ToolPlan) -> Tool:
    return tool(yields=plan.kind == "question")(plan.fn)


WEATHERS: list[Tool] = []


def calls_the_tool(city: str) -> str:
    return WEATHERS[-1](city)


def calling(desk: Desk) -> Any:
    weather = tool(desk.weather)
    WEATHERS.append(weather)

    def clerk(messages: Any, state: Any) -> str:
        weather("Oslo")
        return "done"

    return clerk


def in_a_thread(desk: Desk) -> Any:
    weather = tool(desk.weather)

    def act() -> None:
        with suppress(Exception):
            weather("Oslo")

    def clerk(messages: Any, state: Any) -> str:
        thread = threading.Thread(target=act)
        thread.start()
        thread.join()
        return "done"

    return clerk


def swallowing(desk: Desk) -> Any:
    weather = tool(desk.weather)

    def clerk(messages: Any, state: Any) -> str:
        with suppress(BaseException):
            weather("Oslo")
        return "done"

    return clerk


def by_its_method(desk: Desk) -> Any:
    weather = tool(desk.weather)

    async def clerk(messages: Any, state: Any) -> str:
        with suppress(Exception):
            await weather.run({"city": "Oslo"}, messages)
        return "done"

    return clerk


class TestFunction(BackendConformance):
    harness = FunctionHarness()
