"""The providers that can be named: `openai:gpt-4o-mini`, `google:gemini-2.5-flash` and the like.

Loading this costs nothing. The packages behind it are opened when a model is first asked.
"""

from greenroom.models.providers.model import Provider, ProviderModel

__all__ = ["Provider", "ProviderModel"]

openai = Provider("openai", "openai", "openai", ("OPENAI_API_KEY",), "OPENAI_BASE_URL")
anthropic = Provider(
    "anthropic",
    "anthropic",
    "anthropic",
    ("ANTHROPIC_API_KEY",),
    "ANTHROPIC_BASE_URL",
    takes_seed=False,
)
google = Provider(
    "google",
    "google.genai",
    "google",
    ("GOOGLE_API_KEY", "GEMINI_API_KEY"),
    "GOOGLE_GEMINI_BASE_URL",
)
ollama = Provider(
    "ollama",
    "openai",
    "openai",
    ("OLLAMA_API_KEY",),
    "OLLAMA_BASE_URL",
    home="http://localhost:11434/v1",
)
openrouter = Provider("openrouter", "openai", "openai", ("OPENROUTER_API_KEY",))
deepseek = Provider("deepseek", "openai", "openai", ("DEEPSEEK_API_KEY",))
