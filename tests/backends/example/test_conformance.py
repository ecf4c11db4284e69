"""A framework made up for the documents passes the suite that every backend passes."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest

from backends.example.backend import TeapotBackend, install
from backends.example.teapot import Answering, Bot, Function, Message, Reply
from greenroom.backends.seams import add_seam
from greenroom.errors import FenceNotHeld
from greenroom.ledger import ToolCall
from greenroom.testing import USAGE, BackendConformance, Blueprint, Bypass, Desk, Hang


def script(*lines: Any) -> Answering:
    """A model that answers by how many replies the conversation already holds."""

    async def answer(messages: list[Message]) -> Reply:
        line = lines[sum(message["role"] == "assistant" for message in messages)]
        if isinstance(line, Exception):
            raise line
        while isinstance(line, Hang):
            await asyncio.Event().wait()
        tokens = (USAGE.input, USAGE.output)
        if isinstance(line, str):
            return Reply(line, tokens=tokens)
        wanted: list[ToolCall] = [line] if isinstance(line, ToolCall) else list(line)
        return Reply(calls=[(one.tool, dict(one.args), one.id) for one in wanted], tokens=tokens)

    return answer


# A package would do this when it is imported: the seam goes in as soon as both are loaded.
add_seam("backends.example.backend", "backends.example.teapot")


class TeapotHarness:
    backend = TeapotBackend
    seam = ("backends.example.teapot:Function.call", "backends.example.teapot:Bot.think")

    def build(self, plan: Blueprint) -> Any:
        tools = [Function(given.fn) for given in plan.tools]
        return TeapotBackend(Bot(plan.name, script(*plan.lines), tools, plan.instructions))

    async def run_bare(self, agent: Any, says: str) -> None:
        await agent.bot.chat([{"role": "user", "text": says}])

    def bypasses(self) -> Mapping[str, Bypass]:
        return {
            "a model that calls a tool by itself": Bypass(in_the_model),
            "a tool that came up while the bot ran": Bypass(made_in_the_run),
        }


def in_the_model(desk: Desk) -> Any:
    weather = Function(desk.weather)

    async def answer(messages: list[Message]) -> Reply:
        with suppress(Exception):
            await weather.call({"city": "Oslo"})
        return Reply("done")

    return TeapotBackend(Bot("clerk", answer, [], ""))


def made_in_the_run(desk: Desk) -> Any:
    wanted = ToolCall("weather", {"city": "Oslo"}, "call-weather")
    tools: list[Function] = []
    scripted = script(wanted, "done")

    async def answer(messages: list[Message]) -> Reply:
        tools[:] = [Function(desk.weather)]
        return await scripted(messages)

    return TeapotBackend(Bot("clerk", answer, tools, ""))


class TestTeapot(BackendConformance):
    harness = TeapotHarness()

    def test_a_version_without_the_seam_is_refused(self) -> None:
        # The suite tries that in a process of its own, which does not know this framework.
        with pytest.MonkeyPatch.context() as patch:
            patch.delattr(Function, "call")
            with pytest.raises(FenceNotHeld, match=r"it has no Function\.call"):
                install.__wrapped__()
