"""What a reply cost: by the user's own prices, else by the offline table of `genai-prices`."""

from collections.abc import Mapping
from dataclasses import replace

import genai_prices
from pydantic_ai.messages import ModelResponse

from greenroom.models.model import ModelReply
from greenroom.models.prices import Price
from greenroom.models.providers.model import ProviderModel


def priced(
    reply: ModelReply, model: ProviderModel, response: ModelResponse, own: Mapping[str, Price]
) -> ModelReply:
    """The reply with its cost in USD and the table it comes from; an unknown price stays None."""
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
    """The listed price; an endpoint of one's own has none, whatever its models are called."""
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
