"""The clients behind providers' models: one pool of connections for each event loop."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
from pydantic_ai.models import Model, create_async_httpx2_client

from greenroom.models.providers.model import ProviderModel

_OPENAI: Final = "api.openai.com"


class _Pool:
    """The connections of one event loop, and the clients that were made for it."""

    __slots__ = ("clients", "connections", "keeper")

    def __init__(self) -> None:
        self.connections = create_async_httpx2_client()
        self.clients: dict[tuple[str, ...], Model] = {}
        # A loop ends its asynchronous generators, and this one closes the connections; until then
        # somebody must hold on to it.
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
        pool.clients[place] = _OPENERS[model.provider.name](model, key, pool.connections)
    return pool.clients[place]


async def _pool() -> _Pool:
    loop = asyncio.get_running_loop()
    if loop not in _pools:
        for gone in [known for known in _pools if known.is_closed()]:
            del _pools[gone]
        pool = _pools[loop] = _Pool()
        await anext(pool.keeper)
    return _pools[loop]


def _openai(model: ProviderModel, key: str, pool: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    sdk = _openai_sdk(model, key, pool)
    if urlsplit(str(sdk.base_url)).hostname == _OPENAI:
        return OpenAIChatModel(model.called, provider=OpenAIProvider(openai_client=sdk))
    compatible = OpenAICompatibleProvider("openai-compatible", openai_client=sdk)
    return OpenAIChatModel(model.called, provider=compatible)


def _ollama(model: ProviderModel, key: str, pool: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    sdk = _openai_sdk(model, key, pool)
    return OllamaModel(model.called, provider=OllamaProvider(openai_client=sdk))


def _openrouter(model: ProviderModel, key: str, pool: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    sdk = _openai_sdk(model, key, pool, "https://openrouter.ai/api/v1")
    return OpenRouterModel(model.called, provider=OpenRouterProvider(openai_client=sdk))


def _deepseek(model: ProviderModel, key: str, pool: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.deepseek import DeepSeekProvider

    sdk = _openai_sdk(model, key, pool, "https://api.deepseek.com")
    return OpenAIChatModel(model.called, provider=DeepSeekProvider(openai_client=sdk))


def _openai_sdk(model: ProviderModel, key: str, pool: httpx2.AsyncClient, home: str = "") -> Any:
    from openai import AsyncOpenAI

    url = model.url() or home or f"https://{_OPENAI}/v1"
    return AsyncOpenAI(api_key=key, base_url=url, http_client=pool, max_retries=0)


def _anthropic(model: ProviderModel, key: str, pool: httpx2.AsyncClient) -> Model:
    from anthropic import AsyncAnthropic
    from pydantic_ai.models.anthropic import AnthropicModel
    from pydantic_ai.providers.anthropic import AnthropicProvider

    sdk = AsyncAnthropic(api_key=key, base_url=model.url() or None, http_client=pool, max_retries=0)
    return AnthropicModel(model.called, provider=AnthropicProvider(anthropic_client=sdk))


def _google(model: ProviderModel, key: str, pool: httpx2.AsyncClient) -> Model:
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=key, base_url=model.url() or None, http_client=pool)
    return GoogleModel(model.called, provider=provider)


_OPENERS: Final[dict[str, Callable[[ProviderModel, str, httpx2.AsyncClient], Model]]] = {
    "openai": _openai,
    "anthropic": _anthropic,
    "google": _google,
    "ollama": _ollama,
    "openrouter": _openrouter,
    "deepseek": _deepseek,
}
