"""A provider and its models, before the first question: nothing is loaded or connected yet."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, Literal

from greenroom.errors import BadAgent, KeyRefused, MissingExtra
from greenroom.installation import how_to_install
from greenroom.ledger.redaction import keep_secret
from greenroom.models.model import ModelReply, ModelRequest, OnDelta

if TYPE_CHECKING:
    import httpx2
    from pydantic_ai.models import Model as Client

TIMEOUT: Final = 120.0
RETRIES: Final = 4

# The module that imports pydantic-ai's model layer.
_LAYER: Final = "greenroom.models.providers.request"
_loaded: Final[dict[str, Any]] = {}


@dataclass(frozen=True, slots=True)
class Provider:
    """A company or server that has models: its package, and the variables for its key and address.

    `connect` makes a client for a model, with this key and these connections; it may import the package.
    `home` is the default address; without one the package knows it. If `takes_own_files` is not set, what
    a model itself has attached is shown to it as the user's.
    """

    name: str
    package: str
    extra: str
    keys: tuple[str, ...]
    connect: "Callable[[ProviderModel, str, httpx2.AsyncClient], Client]"
    address: str = ""
    home: str = ""
    takes_seed: bool = True
    takes_own_files: bool = False

    def __call__(self, name: str, /, **options: Any) -> "ProviderModel":
        """The provider's model `name`; BadAgent or MissingExtra if it cannot be made."""
        full = f"{self.name}:{name}"
        unknown = sorted(options.keys() - _OPTIONS)
        if unknown:
            raise BadAgent(
                f"the model {full!r} has the unknown options {unknown}. "
                f"Known: {', '.join(sorted(_OPTIONS))}."
            )
        for package in ("pydantic_ai", "genai_prices", self.package):
            if not _is_installed(package):
                raise MissingExtra(
                    f"the model {full!r} needs the package {package!r}, which is not installed. "
                    f"Install it with {how_to_install(self.extra)}."
                )
        return ProviderModel(self, name, **options)


@dataclass(frozen=True, slots=True, repr=False)
class ProviderModel:
    """A model at a provider. Until it is asked there is no client, no connection, and no key read.

    `retries` is how often a question is asked again after a failure that may pass, `structured` how a reply
    in a schema is requested (by the provider's own means if it has any, else in words), `priced_as` the
    model whose price counts when `base_url` leads to a replacement for it.
    """

    provider: Provider
    called: str
    temperature: float | None = None
    seed: int | None = None
    max_tokens: int | None = None
    timeout: float = TIMEOUT
    base_url: str = ""
    api_key: str = ""
    retries: int = RETRIES
    structured: Literal["native", "prompted"] = "native"
    priced_as: str = ""

    def __post_init__(self) -> None:
        keep_secret("api_key", self.api_key)
        if self.seed is not None and not self.provider.takes_seed:
            raise BadAgent(
                f"{self!r} has a seed, but {self.provider.name} does not accept one; leave it out."
            )
        if not self.timeout > 0:
            raise BadAgent(
                f"{self!r} has timeout={self.timeout!r}; give a number of seconds above 0."
            )
        if type(self.retries) is not int or self.retries < 0:
            raise BadAgent(f"{self!r} has retries={self.retries!r}; give a whole number from 0.")
        if self.structured not in ("native", "prompted"):
            raise BadAgent(
                f"{self!r} has structured={self.structured!r}; give 'native' or 'prompted'."
            )

    @property
    def name(self) -> str:
        """Its name in ledgers, reports and price lists."""
        return f"{self.provider.name}:{self.called}"

    def url(self) -> str:
        """The address where it is asked; empty if its provider's package knows it."""
        variable = self.provider.address
        configured = os.environ.get(variable, "") if variable else ""
        return self.base_url or configured or self.provider.home

    @property
    def listed_as(self) -> tuple[str, str]:
        """The provider and name to look up its price by; a custom endpoint has none."""
        provider, _, name = self.priced_as.partition(":")
        if name:
            return provider, name
        is_home = self.url() in ("", self.provider.home)
        return (self.provider.name, self.called) if is_home else ("", "")

    def key(self) -> str:
        """The key it is asked with; KeyRefused if there is none where one is needed."""
        variables = self.provider.keys
        found = next(filter(None, (os.environ.get(variable) for variable in variables)), "")
        if self.api_key or found:
            keep_secret("api_key", found)
            return self.api_key or found
        if self.url():
            return "none"  # a local server often needs no key, but clients insist on one
        raise KeyRefused(
            f"the model {self.name!r} needs an API key, but {' and '.join(variables)} "
            f"{'is' if len(variables) == 1 else 'are'} not set. Set {variables[0]}, or give "
            f"provider_model({self.name!r}, api_key=...)."
        )

    async def respond(self, request: ModelRequest, on_delta: OnDelta | None = None) -> ModelReply:
        """Ask it once."""
        return await (await _layer()).ask(self, request, on_delta)

    async def get_ready(self) -> None:
        """Load and open whatever is needed to ask, so that no call is delayed by that."""
        await (await _layer()).client_of(self, self.key())

    def __repr__(self) -> str:
        usual = {part.name: part.default for part in fields(self)}
        given = {name: getattr(self, name) for name in sorted(_OPTIONS - {"api_key"})}
        shown = [f"{name}={value!r}" for name, value in given.items() if value != usual[name]]
        return f"provider_model({', '.join([repr(self.name), *shown])})"


_OPTIONS: Final = frozenset(part.name for part in fields(ProviderModel)) - {"provider", "called"}


async def _layer() -> Any:
    if _LAYER not in _loaded:
        # Loading takes a second or two, which must not hold up other cases. Calls that come meanwhile wait
        # too: `sys.modules` would show them a half-loaded module.
        _loaded[_LAYER] = await asyncio.to_thread(import_module, _LAYER)
    return _loaded[_LAYER]


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except (ImportError, ValueError):  # its parent is missing, or it is half loaded
        return False
