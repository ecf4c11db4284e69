"""The framework's models, asked through the World of the case.

Every model class has its own `request`, so each is wrapped, including those defined later. If models ask
each other, the World answers for the outermost.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any, Final

from pydantic_ai import Agent
from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import (
    CompletedStreamedResponse,
    Model,
    ModelRequestParameters,
    StreamedResponse,
)
from pydantic_ai.settings import ModelSettings

from greenroom.backends.callers import Caller, listener
from greenroom.backends.pydantic_ai.facts import native_kinds
from greenroom.backends.pydantic_ai.run import RUN, model_caller, refused
from greenroom.backends.pydantic_ai.translation import reply_of, request_of, response_of
from greenroom.backends.seams import Call, Wrap, wrap_below
from greenroom.ledger.redaction import keep_keys
from greenroom.models.model import ModelRequest, send_piece
from greenroom.world.call_context import ContextSetting

# Other methods that call a provider. A version that lacks one does not use it either.
_PAST_THE_WORLD: Final = (
    *("batch_create", "batch_status", "batch_results", "batch_cancel"),
    *("compact_messages", "count_tokens", "cancel_suspended_response"),
)


def wrap_models() -> None:
    """Wrap every model class, including those that are defined later."""
    seams: dict[str, Wrap] = {"request": _request_seam, "request_stream": _stream_seam}
    seams |= {name: partial(_refusing_seam, name) for name in _PAST_THE_WORLD}
    wrap_below(Model, seams)


class StandIn(Model):
    """A placeholder for agents that only name their model, or have none, if another answers; never asked."""

    @property
    def model_name(self) -> str:
        """Its name in errors."""
        return "stand-in"

    @property
    def system(self) -> str:
        """Its provider: none."""
        return "greenroom"

    async def request(self, *_: Any, **__: Any) -> ModelResponse:
        """Raise: the World answers, so this is never called."""
        raise AssertionError("a stand-in was asked past the World")

    def request_stream(self, *_: Any, **__: Any) -> Any:
        """Raise; the method exists to declare that this model can stream."""
        raise AssertionError("a stand-in was asked past the World")


def with_stand_in(agent: Agent[Any, Any], given: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a run, with a stand-in model if creating the named one would need a key."""
    named = agent.model if given.get("model") is None else given["model"]
    return {**given, "model": StandIn()} if named is None or isinstance(named, str) else given


def _request_seam(real: Call) -> Call:
    async def request(self: Model, *given: Any, **named: Any) -> ModelResponse:
        caller = model_caller()
        if caller is None:
            return await real(self, *given, **named)
        return await _answer(caller, self, _Question(*given, **named), real)

    return request


def _stream_seam(real: Call) -> Call:
    async def whole(self: Model, *question: Any) -> ModelResponse:
        async with real(self, *question) as stream:
            return await _read(stream)

    @asynccontextmanager
    async def replayed(caller: Caller, self: Model, question: "_Question") -> AsyncGenerator[Any]:
        response = await _answer(caller, self, question, whole)
        yield CompletedStreamedResponse(
            response, model_request_parameters=question.parameters, replay_events=True
        )

    def request_stream(self: Model, *given: Any, **named: Any) -> Any:
        """The whole reply as a stream."""
        caller = model_caller()
        if caller is None:
            return real(self, *given, **named)
        return replayed(caller, self, _Question(*given, **named))

    return request_stream


async def _read(stream: StreamedResponse) -> ModelResponse:
    """A whole reply that comes in pieces, each passed on to the listener."""
    async for event in stream:
        match event:
            case (
                PartStartEvent(part=TextPart(content=text))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=text))
            ):
                await send_piece(listener(), text)
            case _:
                pass
    return stream.get()


async def _streamed(model: Model, asked: Sequence[Any], real: Call) -> ModelResponse:
    """A reply in pieces; from a model that cannot stream, the whole reply."""
    async with AsyncExitStack() as stack:
        try:
            stream = await stack.enter_async_context(model.request_stream(*asked))
        except (NotImplementedError, AssertionError):
            return await real(model, *asked)
        return await _read(stream)


def _refusing_seam(name: str, real: Call) -> Call:
    async def refuse(self: Model, *given: Any, **named: Any) -> Any:
        caller = model_caller()
        if caller is None:
            return await real(self, *given, **named)
        raise refused(
            caller,
            f"has its model do {name!r}, which calls the provider and bypasses the tool gate. Rehearse "
            f"without that.",
        )

    return refuse


class _Question:
    """A model's request, however its arguments were passed."""

    __slots__ = ("messages", "more", "parameters", "settings")

    def __init__(
        self,
        messages: list[ModelMessage],
        model_settings: Any,
        model_request_parameters: ModelRequestParameters,
        *more: Any,
        run_context: Any = None,
    ) -> None:
        self.messages = messages
        self.settings = model_settings
        self.parameters = model_request_parameters
        self.more = more or ((run_context,) if run_context is not None else ())


async def _answer(
    caller: Caller,
    model: Model,
    question: _Question,
    real: Callable[..., Awaitable[ModelResponse]],
) -> ModelResponse:
    """The World's reply; the real model's own response object if that is what it replied."""
    keep_keys(model)
    # Tools that run at the provider are refused, wherever the agent got them from.
    kinds = native_kinds(question.parameters.native_tools)
    for settings in (question.settings, model.settings):
        for name, given in dict(settings or {}).items():
            if given and name.endswith(("_native_tools", "_builtin_tools")):
                kinds.append(f"the setting {name}")
    if kinds:
        raise refused(
            caller,
            f"gives its model {', '.join(kinds)}, which would run at the model's provider, where the "
            f"tool gate cannot intercept it. Rehearse with a function tool.",
        )

    async def run(request: ModelRequest) -> ModelResponse:
        settings = question.settings
        if request.seed is not None and "seed" not in (model.settings or {}):
            settings = ModelSettings(seed=request.seed) | (settings or {})
        asked = (question.messages, settings, question.parameters, *question.more)
        with ContextSetting(RUN, None):
            if listener() is not None:
                return await _streamed(model, asked, real)
            return await real(model, *asked)

    request = request_of(
        question.messages,
        question.parameters,
        agent=caller.agent,
        node=caller.agent,
        model=model.model_name,
    )
    reply, kept = await caller.ask_model(caller.place_model(request), run, reply_of)
    return kept.real if kept.matches(reply) else response_of(reply)
