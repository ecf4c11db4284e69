"""Plain functions as agents: `(messages) -> str | dict`, sync or async, or in pieces.

    def clerk(message, state):
        return f"You said {message}."

    rehearse(clerk, cases)

A function asks for what it needs by name: `messages` (the conversation as dicts with `role` and
`content`), `message` (also `input`, `text`: what the user said last), `state`, `ctx`. A single
parameter of any other name is given the message. It keeps nothing between turns: what was said and
what it put into the state is in the ledger.

Functions made tools by `@tool` are called like functions, and the World answers them. Models are
seen if they are asked by `ctx.ask(model, ...)`. A function that waits for its user, or was cut, is
begun anew and hears the answers it had before.
"""

import inspect
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, cast

from greenroom.agents.tool import Tool, as_tool
from greenroom.backends.backend import (
    Advance,
    Feature,
    Interception,
    Resumption,
    ToolFacts,
)
from greenroom.backends.foreign import Invocation, Played, digest_of, jsonable
from greenroom.backends.function.context import FunctionContext
from greenroom.backends.function.router import CallRouter, Waits
from greenroom.backends.function.signature import (
    WantedParameters,
    agent_name,
    described_function,
    wants_of,
)
from greenroom.errors import AgentFailed
from greenroom.ledger.events import NodeEnded, NodeStarted
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import Json, is_object, plain
from greenroom.world.presence import answered_by, model_host, placed
from greenroom.world.threads import in_thread
from greenroom.world.world import World

MEMORY = "function"


class FunctionBackend:
    """Runs a function; `tools`, if given, are all that it may call."""

    name: ClassVar[str] = "function"
    # What passes a seam (our tools, `ctx.ask`, a framework's agent) is routed; a function may have
    # clients of its own beside that, which the fence holds, unseen.
    models: ClassVar[Interception] = "observed"
    tool_calls: ClassVar[Interception] = "routed"
    resumes: ClassVar[Resumption] = "by_replay"
    supports: ClassVar[frozenset[Feature]] = frozenset(
        {
            "error_handlers",
            "parallel_calls",
            "questions",
            "speaks_first",
            "state",
            "streaming",
            "structured_output",
            "turns",
        }
    )
    way_out: ClassVar[str] = (
        "A function asks models with ctx.ask(model, ...), and other things through a @tool."
    )
    """What to do instead, for a function that the fence stopped."""

    def __init__(
        self, fn: Callable[..., Any], tools: Sequence[Any] | None = None, *, name: str = ""
    ) -> None:
        self.fn = fn
        self.agent = name or agent_name(fn)
        self._wants: WantedParameters = wants_of(fn)
        self._tools: tuple[Tool, ...] | None = None
        if tools is not None:
            self._tools = tuple(as_tool(given) for given in tools)

    @cached_property
    def snapshot(self) -> Json:
        """The function by its code, and the tools it was said to call."""
        return {
            "framework": self.name,
            "name": self.agent,
            **described_function(self.fn),
            "tools": [described_function(tool.fn) for tool in self._tools or ()],
        }

    @cached_property
    def digest(self) -> str:
        """Changes whenever the function's own code does."""
        return digest_of(self.snapshot)

    @property
    def tools(self) -> Mapping[str, ToolFacts] | None:
        """The tools it was said to call; None if it was not said."""
        if self._tools is None:
            return None
        return {
            tool.name: ToolFacts(tool.name, tool.argument_names, tool.read_only, tool.yields, tool)
            for tool in self._tools
        }

    async def advance(self, ledger: Ledger, world: World) -> Advance:
        """Go on with the open invocation, or begin the next one with what the user said last."""
        invocation = Invocation(ledger, world, MEMORY, replays=True)
        return await invocation.play(lambda: self._play(invocation))

    async def _play(self, invocation: Invocation) -> Played:
        path = f"{invocation.root}/{self.agent}"
        index = invocation.index
        if path in index.ended:
            return Played([], index.ended[path].output)
        if path not in index.started:
            invocation.world.record(NodeStarted(path=path, node=self.agent, input=invocation.given))
        board = CallRouter(invocation, path)
        context = FunctionContext(board, self.agent, path)
        output = await self._output(board, context)
        if board.waits:
            return Played([], yields=tuple(board.waits))
        if output is None:
            raise AgentFailed(
                f"function {self.agent!r} returned nothing; let it return its answer."
            )
        invocation.world.record(
            NodeEnded(path=path, node=self.agent, output=output, changes=context.changes())
        )
        return Played([], output)

    async def _output(self, board: CallRouter, context: FunctionContext) -> Json:
        """What the function answers; nothing if it waits for its user."""
        if (host := model_host()) is not None:
            host.begin(context.path)
        with answered_by(board), placed(context.path):
            try:
                given = await self._returned(self._wants.arguments(context))
            except Waits:
                given = None
            finally:
                await board.settle()
        return plain(_answer(given, self.agent), "the function's answer")

    async def _returned(self, arguments: dict[str, Any]) -> Any:
        if inspect.isasyncgenfunction(self.fn) or inspect.iscoroutinefunction(self.fn):
            given = self.fn(**arguments)
        else:
            given = await in_thread(self._called, arguments)
        if inspect.isasyncgen(given):
            return "".join([_piece(piece) async for piece in cast("AsyncIterator[Any]", given)])
        return await given if inspect.isawaitable(given) else given

    def _called(self, arguments: dict[str, Any]) -> Any:
        given = self.fn(**arguments)
        if inspect.isgenerator(given):
            return "".join(_piece(piece) for piece in cast("Iterator[Any]", given))
        return given


def _piece(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    raise AgentFailed(f"the function gave {piece!r} as a piece of its answer; give texts.")


def _answer(given: Any, name: str) -> Json:
    """The answer as JSON; a message of the usual form is its text."""
    told = jsonable(given)
    if is_object(told) and set(told) == {"role", "content"} and isinstance(told["content"], str):
        return told["content"]
    if isinstance(told, str) and not told.strip():
        raise AgentFailed(f"function {name!r} answered with an empty text.")
    return told
