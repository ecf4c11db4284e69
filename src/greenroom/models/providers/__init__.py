"""The providers that can be named: `openai:gpt-4o-mini`, `google:gemini-2.5-flash` and the like.

A provider is one file, and an entry point of the group `greenroom.models`. Importing it is cheap: the
packages behind it are imported when a model is first asked.
"""

from greenroom.models.providers.anthropic_api import anthropic
from greenroom.models.providers.google_api import google
from greenroom.models.providers.model import Provider, ProviderModel
from greenroom.models.providers.openai_api import deepseek, ollama, openai, openrouter

__all__ = [
    "Provider",
    "ProviderModel",
    "anthropic",
    "deepseek",
    "google",
    "ollama",
    "openai",
    "openrouter",
]
