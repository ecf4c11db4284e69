"""OpenAI, and providers with an endpoint like it: Ollama, OpenRouter, DeepSeek."""

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from greenroom.models.providers.model import Provider, ProviderModel

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI
    from pydantic_ai.models import Model

_OPENAI: Final = "api.openai.com"


def _sdk(
    model: ProviderModel, key: str, pool: "httpx2.AsyncClient", home: str = ""
) -> "AsyncOpenAI":
    from openai import AsyncOpenAI

    url = model.url() or home or f"https://{_OPENAI}/v1"
    return AsyncOpenAI(api_key=key, base_url=url, http_client=pool, max_retries=0)


def _connect_openai(model: ProviderModel, key: str, pool: "httpx2.AsyncClient") -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider
    from pydantic_ai.providers.openai_compatible import OpenAICompatibleProvider

    sdk = _sdk(model, key, pool)
    if urlsplit(str(sdk.base_url)).hostname == _OPENAI:
        return OpenAIChatModel(model.called, provider=OpenAIProvider(openai_client=sdk))
    compatible = OpenAICompatibleProvider("openai-compatible", openai_client=sdk)
    return OpenAIChatModel(model.called, provider=compatible)


def _connect_ollama(model: ProviderModel, key: str, pool: "httpx2.AsyncClient") -> "Model":
    from pydantic_ai.models.ollama import OllamaModel
    from pydantic_ai.providers.ollama import OllamaProvider

    sdk = _sdk(model, key, pool)
    return OllamaModel(model.called, provider=OllamaProvider(openai_client=sdk))


def _connect_openrouter(model: ProviderModel, key: str, pool: "httpx2.AsyncClient") -> "Model":
    from pydantic_ai.models.openrouter import OpenRouterModel
    from pydantic_ai.providers.openrouter import OpenRouterProvider

    sdk = _sdk(model, key, pool, "https://openrouter.ai/api/v1")
    return OpenRouterModel(model.called, provider=OpenRouterProvider(openai_client=sdk))


def _connect_deepseek(model: ProviderModel, key: str, pool: "httpx2.AsyncClient") -> "Model":
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.deepseek import DeepSeekProvider

    sdk = _sdk(model, key, pool, "https://api.deepseek.com")
    return OpenAIChatModel(model.called, provider=DeepSeekProvider(openai_client=sdk))


openai = Provider(
    "openai", "openai", "openai", ("OPENAI_API_KEY",), _connect_openai, "OPENAI_BASE_URL"
)
ollama = Provider(
    "ollama",
    "openai",
    "openai",
    ("OLLAMA_API_KEY",),
    _connect_ollama,
    "OLLAMA_BASE_URL",
    home="http://localhost:11434/v1",
)
openrouter = Provider(
    "openrouter", "openai", "openai", ("OPENROUTER_API_KEY",), _connect_openrouter
)
deepseek = Provider("deepseek", "openai", "openai", ("DEEPSEEK_API_KEY",), _connect_deepseek)
