"""One question to a provider's model through pydantic-ai's model layer: one request, one reply, its cost."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from typing import Final

import genai_prices
from msgspec.structs import replace
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters, create_async_httpx2_client
from pydantic_ai.settings import ModelSettings

from greenroom.models.model import ModelReply, ModelRequest, OnDelta, send_piece
from greenroom.models.prices import Price, own_prices
from greenroom.models.providers.model import ProviderModel
from greenroom.models.providers.translation import (
    check_whole,
    failure_of,
    messages_of,
    parameters_of,
    reply_of,
)

# What clients raise when they receive JSON of a shape that they do not know.
_CHOKED: Final = (AttributeError, KeyError, TypeError)


async def ask(
    model: ProviderModel, request: ModelRequest, on_delta: OnDelta | None = None
) -> ModelReply:
    """The model's reply with its tokens and cost; a failure is raised as a `ModelBroke`."""
    own = own_prices()  # a broken price list is an error before anything is paid for
    key = model.key()
    deltas = _Deltas(on_delta)
    try:
        client = await client_of(model, key)
        parameters = parameters_of(model, client, request)
        if on_delta is None:
            response = await model_request(
                client,
                messages_of(model, request),
                model_settings=_settings(model, request),
                model_request_parameters=parameters,
                instrument=False,
            )
        else:
            response = await _streamed(model, client, request, parameters, deltas)
    except (AgentRunError, UserError, *_CHOKED) as error:
        if isinstance(error, _CHOKED) and on_delta is not None:
            raise  # `on_delta` may have raised it
        raise failure_of(error, model, key, again=deltas.retries(model)) from error
    except (RuntimeError, AssertionError, UnicodeError) as error:
        # With this error a client says that its provider does not accept what is attached.
        attached = {str(one) for message in request.messages for one in message.attachments}
        if not attached or deltas.has_sent:
            raise
        why = f"it was given {', '.join(sorted(attached))}. {error}".strip()
        raise failure_of(UserError(why), model, key, again=0) from error
    check_whole(model, response, streamed=on_delta is not None, again=deltas.retries(model))
    reply = reply_of(model, response, prompted=parameters.output_mode == "prompted")
    return priced(reply, model, response, own)


async def _streamed(
    model: ProviderModel,
    client: Model,
    request: ModelRequest,
    parameters: ModelRequestParameters,
    deltas: "_Deltas",
) -> ModelResponse:
    async with model_request_stream(
        client,
        messages_of(model, request),
        model_settings=_settings(model, request),
        model_request_parameters=parameters,
        instrument=False,
    ) as stream:
        async for event in stream:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    await deltas.send(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    await deltas.send(text)
                case _:
                    pass
    return stream.get()


def _settings(model: ProviderModel, request: ModelRequest) -> ModelSettings:
    # The clients' own retries would hide refusals from the shared pacer, and wait beyond the deadline.
    settings = ModelSettings(timeout=model.timeout, request_timeout=model.timeout, max_retries=0)
    if model.temperature is not None:
        settings["temperature"] = model.temperature
    seed = request.seed if model.seed is None and model.provider.takes_seed else model.seed
    if seed is not None:
        settings["seed"] = seed
    if model.max_tokens is not None:
        settings["max_tokens"] = model.max_tokens
    return settings


class _Deltas:
    """Passes on a reply as it comes, and knows whether anything was sent yet."""

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta = on_delta
        self.has_sent = False

    async def send(self, text: str) -> None:
        self.has_sent = self.has_sent or bool(text)
        await send_piece(self._on_delta, text)

    def retries(self, model: ProviderModel) -> int:
        """How often to ask again: never after words were sent, which cannot be taken back."""
        return 0 if self.has_sent else model.retries


def priced(
    reply: ModelReply, model: ProviderModel, response: ModelResponse, own: Mapping[str, Price]
) -> ModelReply:
    """The reply with its cost in USD and the price list it comes from; an unknown price stays None."""
    used = response.usage
    if reply.usage is None:
        return reply
    price = own.get(model.name) or own.get(model.priced_as)
    if price is not None:
        cost = price.cost(used.input_tokens, used.output_tokens, used.cache_read_tokens)
        return replace(reply, cost=cost, prices=price.table)
    cost = _listed(model, response)
    if cost is None:
        return reply
    return replace(reply, cost=cost, prices=f"genai-prices {genai_prices.__version__}")


def _listed(model: ProviderModel, response: ModelResponse) -> float | None:
    """The listed price; a custom endpoint has none, whatever its models are called."""
    provider, _, name = model.priced_as.partition(":")
    try:
        if name:
            found = genai_prices.calc_price(response.usage, name, provider_id=provider)
        elif response.provider_url:
            found = genai_prices.calc_price(
                response.usage,
                response.model_name or model.called,
                provider_api_url=response.provider_url,
                price_context=response.provider_details,
            )
        else:
            return None
    except (LookupError, ValueError):
        return None
    return float(found.total_price)


class _Pool:
    """The connections of one event loop, and the clients that were made for it."""

    def __init__(self) -> None:
        self.connections = create_async_httpx2_client()
        self.clients: dict[tuple[str, ...], Model] = {}
        # A loop closes its asynchronous generators when it ends, and this one closes the connections, so it
        # must be kept alive until then.
        self.keeper = self._keep()

    async def _keep(self) -> AsyncGenerator[None]:
        try:
            yield
        finally:
            await self.connections.aclose()


_pools: Final[dict[asyncio.AbstractEventLoop, _Pool]] = {}


async def client_of(model: ProviderModel, key: str) -> Model:
    """A client that asks this model with that key, on the running loop's connections."""
    pool = await _pool()
    place = (model.provider.name, model.called, model.url(), key)
    if place not in pool.clients:
        pool.clients[place] = model.provider.connect(model, key, pool.connections)
    return pool.clients[place]


async def _pool() -> _Pool:
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        for gone in [known for known in _pools if known.is_closed()]:
            del _pools[gone]
        pool = _pools[loop] = _Pool()
        await anext(pool.keeper)
    return _pools[loop]
