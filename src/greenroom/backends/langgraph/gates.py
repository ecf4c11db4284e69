"""The innermost wrapping: a copy of a model or tool whose work is asked of the World.

The copy is made for one run or call. Everything the framework does around that call (callbacks, checks of
arguments, retries, streams, error policies) it does as ever, with the copy.
"""

# The framework is half typed, and its seams are its own affair.
# pyright: reportUnknownMemberType=false, reportPrivateUsage=false

import copy
import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Any, cast
from weakref import WeakKeyDictionary

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import BaseTool, ToolException
from langgraph.errors import GraphBubbleUp

from greenroom.backends.callers import Kept, refuse_to_wait
from greenroom.backends.foreign import held, jsonable
from greenroom.backends.langchain.callers import IN_MODEL, MARK, origin_of
from greenroom.backends.langgraph.run import IN_TOOL_NODE, FrameworkRun, InnerCaller
from greenroom.backends.langgraph.stand_ins import like, signed
from greenroom.backends.langgraph.translation import (
    chunk_of,
    identified,
    message_of,
    model_name,
    provider_tools,
    reply_of,
    request_of,
)
from greenroom.errors import AgentFailed, ToolRefused
from greenroom.ledger.events import ToolReturned
from greenroom.ledger.plain import Json, plain
from greenroom.models.model import ModelReply, ModelRequest, OnDelta
from greenroom.world.records import ToolError
from greenroom.world.threads import Here
from greenroom.world.world import ToolRequest

GraphCaller = FrameworkRun | InnerCaller
Chunks = list[ChatGenerationChunk]

_MANAGED: "WeakKeyDictionary[Any, bool]" = WeakKeyDictionary()
_INJECTED: "WeakKeyDictionary[type, frozenset[str]]" = WeakKeyDictionary()


class Fault(ToolException):
    """A mock's declared failure: handled as a tool's error is, else given to the model."""


def _failure(told: str, real: str) -> Exception:
    """What code hears that may be begun anew: the same then, when only an error's words are left.

    `real` names what the real tool raised; a tool hears of its own kind of error only.
    """
    judged = not real or real in _names_of(ToolException)
    return Fault(told.removeprefix(f"{real}: ")) if judged else ToolError(told)


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
    # Pydantic refuses attributes that are no fields; and a cache would answer past the World.
    vars(twin).update(
        {
            MARK: True,
            "cache": False,
            "_generate": signed(gate.generate, _ASKED),
            "_agenerate": signed(gate.agenerate, _ASKED),
            "_stream": gate.stream,
            "_astream": gate.astream,
            "_stream_chat_model_events": None,
            "_astream_chat_model_events": None,
        }
    )
    return twin


class ModelGate:
    """Stands where a model's own methods stood."""

    __slots__ = ("_caller", "_model", "_name")

    def __init__(self, caller: GraphCaller, model: BaseChatModel) -> None:
        self._caller = caller
        self._model = model
        self._name = model_name(model)

    async def agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **given: Any,
    ) -> ChatResult:
        """One whole answer."""

        async def run() -> ChatResult:
            ask = self._model._agenerate
            return await ask(messages, stop=stop, **_managed(ask, run_manager), **given)

        return await self._result(messages, given, run)

    def generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: Any = None,
        **given: Any,
    ) -> ChatResult:
        """One whole answer, for a caller who cannot await."""

        async def run(here: Here) -> ChatResult:
            ask = self._model._generate
            more = _managed(ask, run_manager)
            return await here(ask, messages, stop=stop, **more, **given)

        return self._caller.blocking(lambda here: self._result(messages, given, partial(run, here)))

    async def astream(
        self, messages: list[BaseMessage], *args: Any, **given: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        """The answer in pieces, told when it is whole."""

        async def run() -> Chunks:
            if not _streams(self._model):
                return [_chunk(await self._model._agenerate(messages, *args, **given))]
            found = self._model._astream(messages, *args, **given)
            return [chunk async for chunk in found]

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
        """What the real model gave, if that is what the World replied; else the reply itself."""
        caller, kept = self._caller, Kept()
        if found := provider_tools(options):
            raise caller.refuse(_refused_tools(caller.agent, found))
        if (known := caller.answered()) is not None:
            return None, message_of(known)
        who = {"agent": caller.agent, "node": caller.node}
        request = caller.place_model(request_of(messages, options, model=self._name, **who))

        async def body(_request: ModelRequest, _on_delta: OnDelta | None) -> ModelReply:
            with held(IN_MODEL, True):
                real = await run()
            return kept.keep(real, reply_of(message_in(real)))

        reply = await caller.ask_model(request, body)
        if kept.matches(reply):
            return kept.real, None
        own = None if kept.real is None else identified(_whole(message_in(kept.real)), reply)
        return None, own or message_of(reply)


# A model's own `_generate` and `_agenerate`, as far as the framework looks at them.
_ASKED = inspect.Signature(list(inspect.signature(ModelGate.agenerate).parameters.values())[1:])


def gated_tool(caller: GraphCaller, tool: BaseTool, given: Any, call_id: str | None) -> BaseTool:
    """A copy of a tool for one call, whose body asks the World."""
    twin = copy.copy(tool)
    gate = ToolGate(caller, tool, given, call_id)
    parts = vars(twin)
    parts[MARK] = True
    parts["_run"] = like(tool._run, gate.run)
    parts["_arun"] = like(tool._arun, gate.arun)
    if type(tool)._filter_injected_args is BaseTool._filter_injected_args:
        # What it would work out anew at every call.
        parts["_filter_injected_args"] = gate.visible
    return twin


class ToolGate:
    """Stands where a tool's `_run` and `_arun` stood, below the checks of its arguments."""

    __slots__ = ("_call_id", "_caller", "_given", "_tool")

    def __init__(
        self, caller: GraphCaller, tool: BaseTool, given: Any, call_id: str | None
    ) -> None:
        self._caller = caller
        self._tool = tool
        self._given = given
        self._call_id = call_id

    def visible(self, given: dict[str, Any]) -> dict[str, Any]:
        """The arguments that a model may know of."""
        hidden = _injected(self._tool)
        return {name: value for name, value in given.items() if name not in hidden}

    async def arun(self, *args: Any, **checked: Any) -> Any:
        """The World's answer to a call whose arguments the framework has checked."""
        return await self._ask(args, checked, lambda: self._tool._arun(*args, **checked))

    def run(self, *args: Any, **checked: Any) -> Any:
        """The World's answer, for a caller who cannot await."""

        def body(here: Here) -> Callable[[], Awaitable[Any]]:
            return partial(here, self._tool._run, *args, **checked)

        return self._caller.blocking(lambda here: self._ask(args, checked, body(here)))

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
            # A tool's body is no part of the model that may have called it.
            with held(IN_MODEL, False):
                return await body()

        outcome, kept = await caller.ask_tool(request, run)
        if isinstance(kept.error, GraphBubbleUp):
            if isinstance(caller, InnerCaller):
                raise kept.error  # the pause is the author's, who runs this graph
            raise caller.refuse(_paused_inside(request.tool)) from kept.error
        outcome = refuse_to_wait(caller, request.tool, outcome)
        if outcome.error:
            # A tool node judges what the real tool raised, and is done before its graph may pause.
            if kept.error is not None and IN_TOOL_NODE.get():
                raise kept.error
            raise _failure(outcome.error, type(kept.error).__name__ if kept.error else "")
        return kept.real if kept.matches(outcome.value) else self._shaped(outcome.value)

    def _request(self, args: tuple[Any, ...], checked: dict[str, Any]) -> ToolRequest:
        tool, told = self._tool, cast("dict[str, Json]", jsonable(self._given_args(args, checked)))
        request = ToolRequest(self._call_id or "", tool.name, told, origin=origin_of(tool))
        return self._caller.place_tool(request)

    def _given_args(self, args: tuple[Any, ...], checked: dict[str, Any]) -> dict[str, Any]:
        """The checked arguments, without what the framework put in by itself."""
        raw = self._given
        if not isinstance(raw, dict):
            return {_first_name(self._tool): args[0] if args else raw}
        named = self.visible(cast("dict[str, Any]", raw))
        if args:
            return named
        if named.keys() <= checked.keys():
            return {name: checked[name] for name in named}
        hidden = {"run_manager", "callbacks", "config", *_injected(self._tool)}
        return {name: value for name, value in checked.items() if name not in hidden}

    def _shaped(self, value: Json) -> Any:
        """An answer of the World in the shape the tool has promised."""
        two = self._tool.response_format == "content_and_artifact"
        return (value, None) if two else value


def _injected(tool: BaseTool) -> frozenset[str]:
    """Arguments that the framework fills in, which no model knows of."""
    schema: Any = tool.args_schema
    key = schema if isinstance(schema, type) else type(tool)
    known = _INJECTED.get(key)
    if known is None:
        fields = getattr(schema, "model_fields", None)
        fields = getattr(schema, "__fields__", ()) if fields is None else fields
        every = dict.fromkeys([*fields, "run_manager", "callbacks"])
        shown = tool._filter_injected_args(every)
        known = _INJECTED[key] = frozenset(every) - frozenset(shown)
    return known | tool._injected_args_keys


def _managed(ask: Callable[..., Any], run_manager: Any) -> dict[str, Any]:
    """The run's manager, for a model that wants it."""
    code = getattr(ask, "__func__", ask)
    wanted = _MANAGED.get(code)
    if wanted is None:
        wanted = _MANAGED[code] = "run_manager" in inspect.signature(ask).parameters
    return {"run_manager": run_manager} if wanted else {}


def _first_name(tool: BaseTool) -> str:
    return next(iter(tool.args), "input")


def _streams(model: BaseChatModel) -> bool:
    kind = type(model)
    return kind._stream is not BaseChatModel._stream or kind._astream is not BaseChatModel._astream


def _message_in(result: ChatResult) -> BaseMessage:
    return result.generations[0].message


def _message_of_chunks(chunks: Chunks) -> BaseMessage:
    if not chunks:
        raise AgentFailed("the model's stream ended without a single piece.")
    return sum(chunks[1:], chunks[0]).message


def _chunk(result: ChatResult) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=chunk_of(cast(AIMessage, _message_in(result))))


def _whole(message: BaseMessage) -> BaseMessage:
    from langchain_core.messages import AIMessageChunk, message_chunk_to_message

    return message_chunk_to_message(message) if isinstance(message, AIMessageChunk) else message


def _refused_tools(agent: str, found: list[str]) -> ToolRefused:
    return ToolRefused(
        f"agent {agent!r} gives its model {', '.join(found)}, which would run at the model's "
        f"provider, where no gate can hold it. Rehearse with a tool of your own instead."
    )


def _paused_inside(tool: str) -> AgentFailed:
    return AgentFailed(
        f"tool {tool!r} was let run for real and paused inside its body, where it cannot be taken "
        f"up again. Mock it, or let HumanInTheLoopMiddleware ask before it runs."
    )
