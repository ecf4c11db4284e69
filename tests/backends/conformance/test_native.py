"""Greenroom's own agents pass the suite that every backend passes."""

import asyncio
from collections.abc import Mapping
from typing import Any

from greenroom import Agent, Scripted, call, loop, step, tool
from greenroom.agents import Tool
from greenroom.backends.native import NativeBackend
from greenroom.ledger import Ledger, UserSaid
from greenroom.models import ModelReply, ModelRequest
from greenroom.models.model import OnDelta
from greenroom.testing import (
    USAGE,
    BackendConformance,
    Blueprint,
    Bypass,
    Desk,
    HandOver,
    Hang,
    Line,
    Structured,
    ToolPlan,
    pieces,
)
from greenroom.world import LiveWorld


async def forever(_: ModelRequest) -> str:
    await asyncio.Event().wait()
    return ""


class InPieces(Scripted):
    """Gives its texts word by word."""

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        reply = await super().respond(request)
        if on_delta is not None:
            for piece in pieces(reply.text):
                on_delta(piece)
        return reply


def answer(line: Line) -> Any:
    match line:
        case Hang():
            return forever
        case Structured(value):
            return dict(value)
        case HandOver(to):
            return call(f"transfer_to_{to}")
        case _:
            return line


def made(plan: ToolPlan) -> Tool:
    return tool(yields=plan.kind == "question")(plan.fn)


class NativeHarness:
    backend = NativeBackend

    def build(self, plan: Blueprint) -> Any:
        agent = Agent(
            plan.name,
            model=(InPieces if plan.streams else Scripted)(*map(answer, plan.lines), usage=USAGE),
            tools=[made(given) for given in plan.tools],
            instructions=plan.instructions,
            output=plan.output,
            writes=plan.writes,
            handoffs=[self.build(helper) for helper in plan.helpers],
        )
        return loop(agent, awaits_input=True, max_rounds=2) if plan.awaits_input else agent

    async def run_bare(self, agent: Any, says: str) -> None:
        world = LiveWorld(Ledger())
        world.record(UserSaid(text=says))
        await NativeBackend(agent).advance(world.ledger, world)

    def bypasses(self) -> Mapping[str, Bypass]:
        return {
            "a step that calls the tool": Bypass(in_a_step),
            "an async step that runs the tool by its own method": Bypass(by_its_method),
        }


def in_a_step(desk: Desk) -> Any:
    weather = tool(desk.weather)

    @step
    def act() -> str:
        try:
            weather("Oslo")
        except Exception:
            return "done"
        return "done"

    return act


def by_its_method(desk: Desk) -> Any:
    weather = tool(desk.weather)

    @step
    async def act(ctx: Any) -> str:
        await weather.run({"city": "Oslo"}, ctx)
        return "done"

    return act


class TestNative(BackendConformance):
    harness = NativeHarness()
