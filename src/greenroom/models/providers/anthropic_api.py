"""Anthropic."""

from typing import TYPE_CHECKING

from greenroom.models.providers.model import Provider, ProviderModel

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model


def _connect(model: ProviderModel, key: str, pool: "httpx2.AsyncClient") -> "Model":
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(api_key=key, base_url=model.url() or None, http_client=pool, max_retries=0)
    return AnthropicModel(model.called, provider=AnthropicProvider(anthropic_client=sdk))


anthropic = Provider(
    "anthropic",
    "anthropic",
    "anthropic",
    ("ANTHROPIC_API_KEY",),
    _connect,
    "ANTHROPIC_BASE_URL",
    takes_seed=False,
)
