"""The gates around the framework's innermost calls: copies of models and tools that ask the World.

A copy is made for one run or call. Everything the framework does around that call (callbacks, argument
checks, retries, streams, error policies) happens as usual, with the copy.
"""

# The framework is only partly typed, and the gates replace its private methods.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

import copy
import inspect
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial, wraps
from types import FunctionType
from typing import Any, cast

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.chat_models import generate_from_stream
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, message_chunk_to_message
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from msgspec.structs import replace

from greenroom.backends.callers import listener, refuse_to_wait
from greenroom.backends.foreign import jsonable, result_as_json
from greenroom.backends.langchain import ACTING, IN_MODEL, MARK, origin_of
from greenroom.backends.langgraph.run import IN_TOOL_NODE, FrameworkRun, InnerCaller
from greenroom.backends.langgraph.translation import (
    chunk_of,
    content_of,
    identified,
    message_of,
    model_name,
    provider_tools,
    reply_of,
    request_of,
)
from greenroom.errors import AgentFailed, ToolRefused
from greenroom.ledger.attachments import text_and_attachments
from greenroom.ledger.events import ToolReturned
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelRequest, send_piece
from greenroom.world.call_context import ContextSetting, decided
from greenroom.world.records import ToolError
from greenroom.world.world import CallPaused, ToolRequest

GraphCaller = FrameworkRun | InnerCaller
Chunks = list[ChatGenerationChunk]


class Fault(ToolException):
    """A mock's declared failure: handled as a tool's error is, else given to the model."""


def _failure(error: str, raised: str) -> Exception:
    """The error for code that may start again: the same then, when only the error's message is recorded.

    `raised` names what the real tool raised; a tool only gets back its own kind of error.
    """
    is_judged = not raised or raised in _names_of(ToolException)
    return Fault(error.removeprefix(f"{raised}: ")) if is_judged else ToolError(error)


def _names_of(kind: type) -> set[str]:
    """The names of a class and of all that descend from it."""
    return {kind.__name__}.union(*map(_names_of, kind.__subclasses__()))


def gated_model(caller: GraphCaller, model: BaseChatModel) -> BaseChatModel:
    """A copy of a model that asks the World wherever it would ask its provider."""
    known = caller.twins.get(id(model))
    if known is not None:
        return known[1]
    twin = copy.copy(model)
    caller.twins[id(model)] = (model, twin)
    gate = ModelGate(caller, model)
    # Pydantic refuses attributes that are not fields; and a cache would answer without asking the World.
    vars(twin).update(
        {
            MARK: True,
            "cache": False,
            "_generate": _like(model._generate, gate.generate),
            "_agenerate": _like(model._agenerate, gate.agenerate),
            "_stream": gate.stream,
            "_astream": gate.astream,
            "_stream_chat_model_events": None,
            "_astream_chat_model_events": None,
        }
    )
    return twin


class ModelGate:
    """Replaces a model's own methods."""

    __slots__ = ("_caller", "_model", "_name")

    def __init__(self, caller: GraphCaller, model: BaseChatModel) -> None:
        self._caller = caller
        self._model = model
        self._name = model_name(model)

    async def agenerate(self, messages: list[BaseMessage], **given: Any) -> ChatResult:
        """One whole answer."""

        async def run() -> ChatResult:
            if listener() is None or not _streams(self._model):
                return await self._model._agenerate(messages, **given)
            return generate_from_stream(iter(await _read(self._model._astream(messages, **given))))

        return await self._result(messages, given, run)

    def generate(self, messages: list[BaseMessage], **given: Any) -> ChatResult:
        """One whole answer, for a caller who cannot await."""

        def ask() -> ChatResult:
            return self._model._generate(messages, **given)

        return self._caller.blocking(lambda here: self._result(messages, given, partial(here, ask)))

    async def astream(
        self, messages: list[BaseMessage], *args: Any, **given: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        """The answer in pieces, given when it is whole."""

        async def run() -> Chunks:
            if not _streams(self._model):
                return [_chunk(await self._model._agenerate(messages, *args, **given))]
            return await _read(self._model._astream(messages, *args, **given))

        for chunk in await self._chunks(messages, given, run):
            yield chunk

    def stream(
        self, messages: list[BaseMessage], *args: Any, **given: Any
    ) -> Iterator[ChatGenerationChunk]:
        """The answer in pieces, for a caller who cannot await."""

        def read() -> Chunks:
            if not _streams(self._model):
                return [_chunk(self._model._generate(messages, *args, **given))]
            return list(self._model._stream(messages, *args, **given))

        yield from self._caller.blocking(
            lambda here: self._chunks(messages, given, partial(here, read))
        )

    async def _result(
        self,
        messages: list[BaseMessage],
        options: dict[str, Any],
        run: Callable[[], Awaitable[ChatResult]],
    ) -> ChatResult:
        real, message = await self._ask(messages, options, run, _message_in)
        return (
            real if message is None else ChatResult(generations=[ChatGeneration(message=message)])
        )

    async def _chunks(
        self,
        messages: list[BaseMessage],
        options: dict[str, Any],
        run: Callable[[], Awaitable[Chunks]],
    ) -> Chunks:
        real, message = await self._ask(messages, options, run, _message_of_chunks)
        return real if message is None else [ChatGenerationChunk(message=chunk_of(message))]

    async def _ask(
        self,
        messages: Sequence[BaseMessage],
        options: dict[str, Any],
        run: Callable[[], Awaitable[Any]],
        message_in: Callable[[Any], BaseMessage],
    ) -> tuple[Any, AIMessage | None]:
        """The real model's response, if that is what the World replied; else the World's reply."""
        caller = self._caller
        if found := provider_tools(options):
            raise caller.refuse(
                ToolRefused(
                    f"agent {caller.agent!r} gives its model {', '.join(found)}, which would run at "
                    f"the model's provider, where the tool gate cannot intercept it. Rehearse with your own "
                    f"tool instead."
                )
            )
        if (known := caller.answered()) is not None:
            return None, message_of(known)
        asker = {"agent": caller.agent, "node": caller.node}
        request = caller.place_model(request_of(messages, options, model=self._name, **asker))

        async def ask(asked: ModelRequest) -> Any:
            if asked.seed is not None and getattr(self._model, "seed", 0) is None:
                options.setdefault("seed", asked.seed)  # the model takes one, and has none set
            with ContextSetting(IN_MODEL, True):
                return await run()

        reply, kept = await caller.ask_model(request, ask, lambda real: reply_of(message_in(real)))
        if kept.matches(reply):
            return kept.real, None
        if kept.real is not None:
            message = message_in(kept.real)
            if isinstance(message, AIMessageChunk):
                message = message_chunk_to_message(message)
            if (own := identified(message, reply)) is not None:
                return None, own
        return None, message_of(reply)


def gated_tool(caller: GraphCaller, tool: BaseTool, given: Any, call_id: str | None) -> BaseTool:
    """A copy of a tool for one call, whose body asks the World."""
    twin = copy.copy(tool)
    gate = ToolGate(caller, tool, given, call_id)
    # Pydantic refuses attributes that are not fields.
    vars(twin).update(
        {MARK: True, "_run": _like(tool._run, gate.run), "_arun": _like(tool._arun, gate.arun)}
    )
    if any(getattr(twin, name) is not vars(twin)[name] for name in ("_run", "_arun")):
        why = (
            f"tool {tool.name!r} is a {type(tool).__name__}, whose class looks up its own methods, so the "
            f"tool gate cannot hold it. Leave __getattribute__ to LangChain."
        )
        raise caller.refuse(ToolRefused(why))
    return twin


def _like(real: Callable[..., Any], gate: Callable[..., Any]) -> Callable[..., Any]:
    """The gate with the real method's signature, because the framework chooses arguments by it."""

    @wraps(real)
    def stand_in(*args: Any, **given: Any) -> Any:
        return gate(*args, **given)

    # A seam's signature has a `self`, a bound method's has none, so it is read from the method itself.
    vars(stand_in).pop("__signature__", None)
    return stand_in


class ToolGate:
    """Replaces a tool's `_run` and `_arun`, after its arguments have been checked."""

    __slots__ = ("_call_id", "_caller", "_given", "_tool")

    def __init__(
        self, caller: GraphCaller, tool: BaseTool, given: Any, call_id: str | None
    ) -> None:
        self._caller = caller
        self._tool = tool
        self._given = given
        self._call_id = call_id

    async def arun(self, *args: Any, **checked: Any) -> Any:
        """The World's answer to a call whose arguments the framework has checked."""

        async def act() -> Any:
            with self._acting():
                return await self._tool._arun(*args, **checked)

        return await self._ask(args, checked, act)

    def run(self, *args: Any, **checked: Any) -> Any:
        """The World's answer, for a caller who cannot await."""

        def act() -> Any:
            with self._acting():
                return self._tool._run(*args, **checked)

        return self._caller.blocking(lambda here: self._ask(args, checked, partial(here, act)))

    @contextmanager
    def _acting(self) -> Generator[None]:
        tool = self._tool
        with ACTING.during(tool), decided(_name_at_server(tool) or tool.name):
            yield

    async def _ask(
        self, args: tuple[Any, ...], checked: dict[str, Any], body: Callable[[], Awaitable[Any]]
    ) -> Any:
        caller = self._caller
        request = self._request(args, checked)
        end = caller.recorded(request)
        if end is not None:
            if isinstance(end, ToolReturned):
                return self._shaped(plain(end.value))
            raise _failure(end.error, end.error_type if end.source == "live" else "")

        async def run() -> Any:
            # A tool's body is not part of the model that may have called it.
            with ContextSetting(IN_MODEL, False):
                try:
                    return await body()
                except GraphInterrupt as pause:
                    raise CallPaused(pause) from None

        try:
            outcome, kept = await caller.ask_tool(request, run, result_as_json)
        except CallPaused as paused:
            raise paused.pause from None
        if isinstance(kept.error, GraphBubbleUp):
            raise kept.error  # control flow of LangGraph, not a failure
        outcome = refuse_to_wait(caller, request.tool, outcome)
        if outcome.error:
            # A tool node handles what the real tool raised, before its graph may pause.
            if kept.error is not None and IN_TOOL_NODE.get():
                raise kept.error
            raise _failure(outcome.error, type(kept.error).__name__ if kept.error else "")
        return kept.real if kept.matches(outcome.value) else self._shaped(outcome.value)

    def _request(self, args: tuple[Any, ...], checked: dict[str, Any]) -> ToolRequest:
        tool = self._tool
        given = cast("dict[str, Json]", jsonable(self._arguments(args, checked)))
        request = ToolRequest(self._call_id or "", tool.name, given, origin=origin_of(tool))
        placed = self._caller.place_tool(request)
        again = self._caller.has_paused(placed)
        return replace(placed, again=again, pauses=(GraphInterrupt,))

    def _arguments(self, args: tuple[Any, ...], checked: dict[str, Any]) -> dict[str, Any]:
        """The checked arguments, without those that the framework injected."""
        tool, given = self._tool, self._given
        if not isinstance(given, dict):
            return {next(iter(tool.args), "input"): args[0] if args else given}
        visible = tool._filter_injected_args(cast("dict[str, Any]", given))
        if args:
            return visible
        if visible.keys() <= checked.keys():
            return {name: checked[name] for name in visible}
        known = tool._filter_injected_args(checked)
        return {name: value for name, value in known.items() if name != "config"}

    def _shaped(self, value: Json) -> Any:
        """The World's answer in the tool's declared response format."""
        two = self._tool.response_format == "content_and_artifact"
        text, attached = text_and_attachments(value) if value is not None else ("", ())
        given = content_of(text, attached) if attached else value
        return (given, None) if two else given


def _name_at_server(tool: BaseTool) -> str:
    """The name by which an MCP server knows a tool that LangChain's adapters made; "" for any other tool."""
    adapters: Any = sys.modules.get("langchain_mcp_adapters.tools")
    body: Any = getattr(tool, "coroutine", None)
    if adapters is None or not isinstance(body, FunctionType):
        return ""
    # Compared by code object: the adapters make a function for each tool.
    makes = getattr(adapters, "convert_mcp_tool_to_langchain_tool", None)
    made: Any = getattr(getattr(makes, "__code__", None), "co_consts", ())
    if not any(body.__code__ is code for code in made):
        return ""
    theirs = inspect.getclosurevars(body).nonlocals.get("tool")
    return str(getattr(theirs, "name", ""))


def _streams(model: BaseChatModel) -> bool:
    kind = type(model)
    return kind._stream is not BaseChatModel._stream or kind._astream is not BaseChatModel._astream


async def _read(stream: AsyncIterator[ChatGenerationChunk]) -> Chunks:
    """All pieces of a reply, each passed on to the listener."""
    chunks: Chunks = []
    async for chunk in stream:
        await send_piece(listener(), chunk.text)
        chunks.append(chunk)
    return chunks


def _message_in(result: ChatResult) -> BaseMessage:
    return result.generations[0].message


def _message_of_chunks(chunks: Chunks) -> BaseMessage:
    if not chunks:
        raise AgentFailed("the model's stream ended without a single piece.")
    return sum(chunks[1:], chunks[0]).message


def _chunk(result: ChatResult) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=chunk_of(cast(AIMessage, _message_in(result))))
