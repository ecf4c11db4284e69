"""All that a new framework has to provide: seams and gates, translation, facts, and one run.

The page docs/how-to/backends.md walks through this file.
"""

import inspect
from collections.abc import Mapping
from contextvars import ContextVar
from copy import deepcopy
from functools import cache
from typing import Any, ClassVar

from backends.example.teapot import Bot, Function, Message, Reply
from greenroom.backends.backend import Feature, ToolFacts
from greenroom.backends.callers import (
    RunCaller,
    inner_model_caller,
    inner_tool_caller,
    refuse_to_wait,
)
from greenroom.backends.foreign import ForeignBackend, Origin, Spec, jsonable
from greenroom.backends.invocation import Invocation, Progress
from greenroom.backends.seams import Call, wrap
from greenroom.errors import BadAgent
from greenroom.ledger.identity import code_identity
from greenroom.ledger.messages import Message as Said
from greenroom.ledger.messages import ToolCall, Usage
from greenroom.ledger.plain import Json, as_array, as_object
from greenroom.models.model import ModelReply, ModelRequest
from greenroom.world import ToolError
from greenroom.world.call_context import ContextSetting
from greenroom.world.world import ToolRequest

RUN: ContextVar[RunCaller | None] = ContextVar("teapot_run", default=None)
"""The run of the backend that the running code belongs to; none in the body of a tool."""
PASSED: ContextVar[object] = ContextVar("teapot_passed", default=None)
"""The tool that was asked about and runs now."""


class TeapotBackend(ForeignBackend):
    """Runs a `Bot`."""

    name: ClassVar[str] = "teapot"
    memory: ClassVar[str] = "teapot.messages"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {"parallel_calls", "speaks_first", "turns", "usage"}
    )

    def __init__(self, bot: Bot) -> None:
        if "think" in vars(bot) or any("call" in vars(tool) for tool in bot.tools):
            raise BadAgent(
                f"bot {bot.name!r} has methods of its own, which would run past the gate."
            )
        self.bot = bot

    def describe(self) -> dict[str, Json]:
        """The bot with its prompt and its tools."""
        tools: list[Json] = [{"name": t.name, "code": code_identity(t.fn)} for t in self.bot.tools]
        return {"name": self.bot.name, "instructions": self.bot.prompt, "tools": tools}

    def list_tools(self) -> Mapping[str, ToolFacts]:
        """The tools by name."""
        return {
            tool.name: ToolFacts(tool.name, _parameters(tool), origin=Origin(tool.fn, tool))
            for tool in self.bot.tools
        }

    def install_seam(self) -> None:
        """Gate the framework's innermost calls."""
        install()

    async def run(self, invocation: Invocation) -> Progress:
        """One turn: what the user said goes in, the whole conversation comes out."""
        name, given = self.bot.name, invocation.given
        path = invocation.enter_node(name, invocation.root, given)
        # A copy: the framework may edit what it is given, and what happened is never edited.
        messages: list[Message] = [as_object(item) for item in deepcopy(invocation.history())]
        if given:
            messages.append({"role": "user", "text": given})
        with ContextSetting(RUN, RunCaller(invocation, name, path)):
            said = await self.bot.chat(messages)
        invocation.end_node(name, path)
        return Progress(as_array(jsonable(said)), said[-1]["text"])


# Seams: where the framework calls a tool and asks a model, whichever way a bot comes there.


@cache
def install() -> None:
    """Put the seams in, once in a process."""
    wrap([(Function, "call", _tool_seam), (Bot, "think", _model_seam)])


def _tool_seam(real: Call) -> Call:
    async def call(self: Function, args: dict[str, Any], call_id: str = "") -> Any:
        origin = Origin(self.fn, self)
        caller = RUN.get() or inner_tool_caller(origin, self.name)
        if caller is None or PASSED.get() is self:
            return await real(self, args, call_id)

        async def run() -> Any:
            # What the body starts is asked about by itself.
            with ContextSetting(RUN, None), ContextSetting(PASSED, self):
                return await real(self, args, call_id)

        request = ToolRequest(
            call_id, self.name, as_object(jsonable(args)), caller.agent, origin=origin
        )
        outcome, kept = await caller.ask_tool(caller.place_tool(request), run)
        outcome = refuse_to_wait(caller, self.name, outcome)
        if outcome.error:
            raise kept.error or ToolError(outcome.error)
        return kept.real if kept.matches(outcome.value) else outcome.value

    return call


def _model_seam(real: Call) -> Call:
    async def think(self: Bot, messages: list[Message]) -> Reply:
        caller = RUN.get() or inner_model_caller(self.name)
        if caller is None:
            return await real(self, messages)
        request = caller.place_model(_request(self, messages))
        reply, kept = await caller.ask_model(request, lambda _: real(self, messages), _reply)
        return kept.real if kept.matches(reply) else _response(reply)

    return think


# Translation: questions and replies between the framework's types and ours.


def _request(bot: Bot, messages: list[Message]) -> ModelRequest:
    return ModelRequest(
        agent=bot.name,
        node=bot.name,
        model="teapot",
        instructions=bot.prompt,
        messages=tuple(_said(message) for message in messages),
        tools=tuple(Spec(t.name, t.fn.__doc__ or "", {}) for t in bot.tools),
    )


def _said(message: Message) -> Said:
    if message["role"] == "tool":
        return Said("tool", message["text"], call_id=message["id"], tool=message["tool"])
    calls = tuple(ToolCall(name, args, call_id) for name, args, call_id in message.get("calls", ()))
    return Said(message["role"], message["text"], calls)


def _reply(reply: Reply) -> ModelReply:
    calls = tuple(
        ToolCall(name, as_object(jsonable(args)), call_id) for name, args, call_id in reply.calls
    )
    return ModelReply(reply.text, calls, Usage(*reply.tokens), model="teapot")


def _response(reply: ModelReply) -> Reply:
    used = reply.usage or Usage()
    calls = [(call.tool, dict(call.args), call.id) for call in reply.calls]
    return Reply(reply.text, calls, (used.input, used.output))


def _parameters(tool: Function) -> tuple[str, ...]:
    return tuple(inspect.signature(tool.fn).parameters)
