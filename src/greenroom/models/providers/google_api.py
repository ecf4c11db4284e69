"""Google's Gemini API."""

from typing import TYPE_CHECKING

from greenroom.models.providers.model import Provider, ProviderModel

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model


def _connect(model: ProviderModel, key: str, pool: "httpx2.AsyncClient") -> "Model":
    from pydantic_ai.models.google import GoogleModel
    from pydantic_ai.providers.google import GoogleProvider

    provider = GoogleProvider(api_key=key, base_url=model.url() or None, http_client=pool)
    return GoogleModel(model.called, provider=provider)


google = Provider(
    "google",
    "google.genai",
    "google",
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    _connect,
    "GOOGLE_GEMINI_BASE_URL",
    takes_own_files=True,
)
