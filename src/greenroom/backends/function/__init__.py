"""Plain functions as agents: `(messages) -> str | dict`, sync or async, or in pieces.

    def clerk(message, state):
        return f"You said {message}."

    rehearse(clerk, cases)

A function asks for what it needs by name: `messages` (the conversation as dicts with `role` and
`content`), `message` (also `input`, `text`: what the user said last), `state`, `ctx`. A single
parameter of any other name is given the message. The backend keeps nothing between turns: the conversation
and the state are in the ledger.

`@tool` functions are called like functions, and the World answers them. Model calls are visible if they
are made with `ctx.ask(model, ...)`. A function that waited for its user, or was interrupted, starts again
and gets the answers that it had before.
"""

import asyncio
import inspect
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, cast

from greenroom.agents.signature import function_name, parameters_of
from greenroom.agents.tools import as_tool
from greenroom.backends.backend import Feature, Interception, Resumption, ToolFacts
from greenroom.backends.foreign import ForeignBackend, jsonable
from greenroom.backends.function.context import FunctionContext
from greenroom.backends.function.router import CallRouter, Waits
from greenroom.backends.invocation import Invocation, Progress
from greenroom.backends.tool_facts import by_name, own_facts
from greenroom.errors import AgentFailed, BadAgent
from greenroom.ledger.events import NodeEnded
from greenroom.ledger.identity import code_identity
from greenroom.ledger.messages import is_blank
from greenroom.ledger.plain import JSON_TYPES, Json, is_object, plain
from greenroom.models.model import OnDelta, send_piece
from greenroom.world.call_context import answered_by, model_host, placed
from greenroom.world.threads import in_thread

_NAMES: Mapping[str, str] = {
    "messages": "messages",
    "history": "messages",
    "message": "message",
    "input": "message",
    "text": "message",
    "prompt": "message",
    "question": "message",
    "state": "state",
    "attachments": "attachments",
    "ctx": "context",
    "context": "context",
}
"""The parameters a function may have, each with the part of its context that it is given."""
_NOT_IN_PATHS = re.compile(r"[^A-Za-z0-9_-]+")


class FunctionBackend(ForeignBackend):
    """Runs a function; `tools`, if given, are all that it may call."""

    name: ClassVar[str] = "function"
    # Calls through a seam (our tools, `ctx.ask`, a framework's agent) are routed. A function may also have
    # its own clients, which are invisible and stopped by the fence.
    models: ClassVar[Interception] = "observed"
    tool_calls: ClassVar[Interception] = "routed"
    resumes: ClassVar[Resumption] = "by_replay"
    memory: ClassVar[str] = "function"
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
        self._wants = wanted_parameters(fn)
        self._tools = None if tools is None else tuple(as_tool(given) for given in tools)

    def describe(self) -> dict[str, Json]:
        """The function by its code, and its declared tools."""
        return {
            "name": self.agent,
            **described_function(self.fn),
            "tools": [described_function(tool.fn) for tool in self._tools or ()],
        }

    def list_tools(self) -> Mapping[str, ToolFacts] | None:
        """The declared tools; None if none were declared."""
        if self._tools is None:
            return None
        return by_name(map(own_facts, self._tools))

    async def run(self, invocation: Invocation) -> Progress:
        """Call the function; one that starts again gets the answers that it had before."""
        index, root = invocation.index, invocation.root
        ended = index.ended.get(f"{root}/{self.agent}")
        if ended is not None:
            return Progress([], ended.output)
        path = invocation.enter_node(self.agent, root, invocation.given)
        router = CallRouter(invocation, path)
        context = FunctionContext(router, self.agent, path)
        output = await self._output(router, context)
        if router.waits:
            return Progress([], yields=tuple(router.waits))
        if output is None:
            raise AgentFailed(
                f"function {self.agent!r} returned nothing; let it return its answer."
            )
        invocation.world.record(
            NodeEnded(path=path, node=self.agent, output=output, changes=context.changes())
        )
        return Progress([], output)

    async def _output(self, router: CallRouter, context: FunctionContext) -> Json:
        """The function's answer as JSON; None if it waits for its user."""
        if (host := model_host()) is not None:
            host.begin(context.path)
        with answered_by(router), placed(context.path):
            try:
                given = await self._call(context, router.invocation.to_user(context.path))
            except Waits:
                given = None
            finally:
                await router.settle()
        if isinstance(given, BaseException):
            raise AgentFailed(
                f"function {self.agent!r} returned the exception {given!r}; let it raise it."
            )
        answer = jsonable(given)
        if is_object(answer) and set(answer) == {"role", "content"}:
            # A message dict of the usual form counts as its text.
            has_text = answer["content"] in (None, []) or isinstance(answer["content"], str)
            answer = (answer["content"] or "") if has_text else answer
        if isinstance(answer, str) and is_blank(answer):
            raise AgentFailed(f"function {self.agent!r} answered with an empty string.")
        return plain(answer, "the function's answer")

    async def _call(self, context: FunctionContext, on_delta: OnDelta | None) -> Any:
        """What the function returns; if it yields strings, all of them joined, each passed on at once."""
        arguments = {
            name: context if part == "context" else getattr(context, part)
            for name, part in self._wants.items()
        }

        loop = asyncio.get_running_loop()

        def call() -> Any:
            given = self.fn(**arguments)
            if not inspect.isgenerator(given):
                return given
            pieces: list[str] = []
            for piece in cast("Iterator[Any]", given):
                pieces.append(_piece(piece))
                if on_delta is not None:
                    sent = send_piece(on_delta, pieces[-1])
                    asyncio.run_coroutine_threadsafe(sent, loop).result()
            return "".join(pieces)

        if inspect.isasyncgenfunction(self.fn) or inspect.iscoroutinefunction(self.fn):
            given = self.fn(**arguments)
        else:
            given = await in_thread(call)
        if not inspect.isasyncgen(given):
            return await given if inspect.isawaitable(given) else given
        pieces: list[str] = []
        async for piece in cast("AsyncIterator[Any]", given):
            pieces.append(_piece(piece))
            await send_piece(on_delta, pieces[-1])
        return "".join(pieces)


def _piece(piece: Any) -> str:
    if isinstance(piece, str):
        return piece
    raise AgentFailed(f"the function gave {piece!r} as a piece of its answer; yield strings.")


def wanted_parameters(fn: Callable[..., Any]) -> Mapping[str, str]:
    """What the function asks for; BadAgent for a parameter that cannot be filled."""
    needed = parameters_of(fn, "agent")
    for parameter in needed.values():
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise BadAgent(
                f"function {function_name(fn)!r} takes {parameter.name!r} by position only; remove "
                f"the `/`."
            )
    names = [n for n, p in needed.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    unknown = [name for name in names if name not in _NAMES]
    if len(names) == 1 and unknown:
        return {names[0]: "message"}
    if unknown:
        raise BadAgent(
            f"function {function_name(fn)!r} asks for {', '.join(map(repr, unknown))}, but an agent "
            f"can only be given {', '.join(sorted(_NAMES))}. Rename the parameter, or give it a "
            f"default."
        )
    return {name: _NAMES[name] for name in names}


def agent_name(fn: Callable[..., Any]) -> str:
    """The agent's name: the function's name in a form that is valid in a path."""
    inner = fn.func if isinstance(fn, partial) else fn
    return _NOT_IN_PATHS.sub("_", function_name(inner)).strip("_") or "agent"


def described_function(fn: Callable[..., Any]) -> dict[str, Json]:
    """A function by its code, and the strings and numbers in its closure."""
    inner = inspect.unwrap(fn.func if isinstance(fn, partial) else fn)
    code, cells = getattr(inner, "__code__", None), getattr(inner, "__closure__", None)
    kept: dict[str, Json] = {}
    for name, cell in zip(getattr(code, "co_freevars", ()), cells or (), strict=False):
        try:
            value: Any = cell.cell_contents
        except ValueError:  # the closure cell is still empty
            continue
        if type(value) in JSON_TYPES and not isinstance(value, list | dict):
            kept[name] = value
    return {"code": code_identity(inner), "given": kept}
