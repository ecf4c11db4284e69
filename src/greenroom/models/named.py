"""Models by name: `openai:gpt-4o-mini` is the provider's prefix and the provider's own name.

The best-known families may be named without their provider: `gpt-4o-mini`, `claude-…`, `gemini-…`.
"""

from typing import Any, Protocol, cast

from greenroom.errors import BadAgent, BadInput, BadPlugin
from greenroom.ledger.plain import without_addresses
from greenroom.models.model import Model
from greenroom.plugins import Plugins

# Other tools' configs name these without a provider, and no other provider has models with such names.
_FAMILIES = {
    "gpt-": "openai",
    "o1": "openai",
    "o3": "openai",
    "o4": "openai",
    "claude-": "anthropic",
    "gemini-": "google",
}
_USE = (
    "Use Scripted(...), a name such as 'openai:gpt-4o-mini', or an object with `name` and "
    "`async respond(request, on_delta=None)`."
)

_COMPATIBLE = " An OpenAI-compatible endpoint is 'openai:…' with base_url=…"
_IN_A_FILE = " Only evaluations and commands look in files; here import the model and give the object itself."


class OpenModel(Protocol):
    """The function behind an entry point of the group `greenroom.models`."""

    def __call__(self, name: str, /, **options: Any) -> Model:
        """The provider's model `name`. This must not connect or load a client yet."""
        ...


def _accept(found: object, _name: str) -> OpenModel | None:
    return cast(OpenModel, found) if callable(found) else None


PROVIDERS = Plugins(
    "greenroom.models",
    "model provider",
    accept=_accept,
    wanted="a function that takes a model's name and options, and returns the model",
    unknown=BadAgent,
)


def as_model(given: Model | str, whose: str = "") -> Model:
    """A model as it was given, or the one whose name was given; `whose` begins an error.

    Nothing is loaded or connected before the model is asked. These are errors at once: a name
    without a provider, an unknown provider, a package that is not installed.
    """
    if isinstance(given, str):
        return _opened(given, {}, whose)
    if not hasattr(given, "respond") or isinstance(given, type):
        shown = without_addresses(repr(given))
        raise BadAgent(f"{_has(whose)} {shown}, which cannot respond. {_USE}")
    return given


def provider_model(
    name: str,
    *,
    temperature: float | None = None,
    seed: int | None = None,
    max_tokens: int | None = None,
    timeout: float | None = None,
    base_url: str | None = None,
    api_key: str | None = None,
    **options: object,
) -> Model:
    """The model `provider:name`, with the options that its provider accepts.

    `timeout` is in seconds for one reply. `base_url` is the address of a compatible endpoint; `api_key`
    replaces the provider's environment variable. Further options are the provider's own.
    """
    known: dict[str, Any] = {
        "temperature": temperature,
        "seed": seed,
        "max_tokens": max_tokens,
        "timeout": timeout,
        "base_url": base_url,
        "api_key": api_key,
    }
    given = {option: value for option, value in known.items() if value is not None}
    return _opened(name, given | options, "")


def _opened(name: str, options: dict[str, object], whose: str) -> Model:
    provider, colon, rest = name.partition(":")
    if not colon and (home := home_of(name)):
        provider, rest = home, name
    elif not colon or not provider or not rest.strip():
        raise BadAgent(
            f"{_has(whose)} {name!r}, but a model's name is 'provider:model', such as "
            f"'openai:gpt-4o-mini'."
        )
    try:
        open_model = PROVIDERS.load(provider)
    except BadInput as error:
        hint = _IN_A_FILE if provider.endswith(".py") else _COMPATIBLE
        more = hint if isinstance(error, BadAgent) else ""
        raise type(error)(f"{_has(whose)} {name!r}, but {error}{more}") from error
    model = open_model(rest, **options)
    if not hasattr(model, "respond"):
        raise BadPlugin(
            f"{_has(whose)} {name!r}, but the model provider {provider!r} returned {model!r}, which "
            f"cannot respond. Correct the package that offers it, or uninstall it."
        )
    return model


def home_of(name: str) -> str:
    """The provider of a family of models that is known by its name alone, or nothing."""
    return next((home for family, home in _FAMILIES.items() if name.startswith(family)), "")


def _has(whose: str) -> str:
    return f"{whose} has the model" if whose else "the model is"
