"""One question to a provider's model through pydantic-ai's model layer: one request, one reply."""

from typing import Final

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import AgentRunError, UserError
from pydantic_ai.messages import (
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
)
from pydantic_ai.models import Model, ModelRequestParameters
from pydantic_ai.settings import ModelSettings

from greenroom.models.model import ModelReply, ModelRequest, OnDelta
from greenroom.models.prices import own_prices
from greenroom.models.providers.clients import client_of
from greenroom.models.providers.failures import check_whole, named
from greenroom.models.providers.model import ProviderModel
from greenroom.models.providers.price_list import priced
from greenroom.models.providers.translation import messages_of, parameters_of, reply_of

# What clients raise when they are sent JSON of another shape than they know.
_CHOKED: Final = (AttributeError, KeyError, TypeError)


async def ask(
    model: ProviderModel, request: ModelRequest, on_delta: OnDelta | None = None
) -> ModelReply:
    """The model's reply with what it used and cost; a failure comes as a `ModelBroke`."""
    own = own_prices()  # a broken price list is told before anything is paid for
    key = model.key()
    told = _Telling(on_delta)
    try:
        client = await client_of(model, key)
        parameters = parameters_of(model, client, request)
        if on_delta is None:
            response = await model_request(
                client,
                messages_of(request),
                model_settings=_settings(model),
                model_request_parameters=parameters,
                instrument=False,
            )
        else:
            response = await _streamed(client, request, parameters, _settings(model), told)
    except (AgentRunError, UserError, *_CHOKED) as error:
        if isinstance(error, _CHOKED) and on_delta is not None:
            raise  # it may well be the listener's
        raise named(error, model, key, again=told.again(model)) from error
    check_whole(model, response, streamed=on_delta is not None, again=told.again(model))
    reply = reply_of(model, response, prompted=parameters.output_mode == "prompted")
    return priced(reply, model, response, own)


async def _streamed(
    client: Model,
    request: ModelRequest,
    parameters: ModelRequestParameters,
    settings: ModelSettings,
    told: "_Telling",
) -> ModelResponse:
    async with model_request_stream(
        client,
        messages_of(request),
        model_settings=settings,
        model_request_parameters=parameters,
        instrument=False,
    ) as stream:
        async for event in stream:
            match event:
                case PartStartEvent(part=TextPart(content=text)):
                    told.tell(text)
                case PartDeltaEvent(delta=TextPartDelta(content_delta=text)):
                    told.tell(text)
                case _:
                    pass
    return stream.get()


def _settings(model: ProviderModel) -> ModelSettings:
    # The clients' own retries would hide refusals from the shared pacer, and wait past the deadline.
    settings = ModelSettings(timeout=model.timeout, request_timeout=model.timeout, max_retries=0)
    if model.temperature is not None:
        settings["temperature"] = model.temperature
    if model.seed is not None:
        settings["seed"] = model.seed
    if model.max_tokens is not None:
        settings["max_tokens"] = model.max_tokens
    return settings


class _Telling:
    """Whoever listens to a reply as it comes, and whether they have heard anything yet."""

    __slots__ = ("_anything", "_on_delta")

    def __init__(self, on_delta: OnDelta | None) -> None:
        self._on_delta = on_delta
        self._anything = False

    def tell(self, text: str) -> None:
        if text and self._on_delta is not None:
            self._anything = True
            self._on_delta(text)

    def again(self, model: ProviderModel) -> int:
        """How often to ask again: words that were told cannot be taken back."""
        return 0 if self._anything else model.retries
