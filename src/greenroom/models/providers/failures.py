"""What went wrong with a provider's model, by the names this house has for it."""

from collections.abc import Mapping
from typing import Any, cast

from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelHTTPError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelRequestTimeout,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UserError,
)
from pydantic_ai.messages import ModelResponse

from greenroom.errors import (
    GarbledReply,
    KeyRefused,
    ModelBroke,
    ModelTimedOut,
    ModelUnreachable,
    RateLimited,
    RequestRefused,
)
from greenroom.models.providers.model import ProviderModel

_SHOWN = 400


def named(error: Exception, model: ProviderModel, key: str, *, again: int) -> ModelBroke:
    """The failure by its name; `again` is what it is worth if it may pass."""
    who = _who(model)
    why = _why(error, key)
    match error:
        case ModelAuthenticationError():
            return KeyRefused(f"{who} refused the API key{_status(error)}: {_other_key(model)}")
        case ModelQuotaExceededError():
            return RequestRefused(f"{who} has used up its quota or credit{_status(error)}: {why}")
        case ModelRateLimitError():
            after = error.retry_after
            asks = "" if after is None else f" and asks to wait {after:g} s"
            return RateLimited(
                f"{who} was asked too often{_status(error)}{asks}: {why}",
                again=again,
                retry_after=after,
            )
        case ModelRequestTimeout() | ModelTimeoutError():
            return ModelTimedOut(
                f"{who} gave no reply within {model.timeout:g} s. Raise it with "
                f"provider_model({model.name!r}, timeout=...).",
                again=again,
            )
        case ModelUnavailableError() | ModelServerError():
            after = error.retry_after
            return ModelUnreachable(
                f"{who} is in trouble{_status(error)}: {why}", again=again, retry_after=after
            )
        case ModelConnectionError():
            return ModelUnreachable(f"the connection to {who} failed: {why}", again=again)
        case ModelRequestRejectedError() | ContentFilterError() | UserError():
            return RequestRefused(f"{who} will not answer this{_status(error)}: {why}")
        case _:
            return GarbledReply(f"{who} gave a reply that cannot be read: {why}", again=again)


def check_whole(
    model: ProviderModel, response: ModelResponse, *, streamed: bool, again: int
) -> None:
    """Refuse a reply that its provider never said was over, or would not let out."""
    if response.finish_reason == "content_filter" and not response.parts:
        raise RequestRefused(
            f"{_who(model)} kept its reply back: the provider's filter forbids it."
        )
    is_over = bool((response.provider_details or {}).get("finish_reason"))
    # Some servers never say it; there the end of the JSON has to do.
    has_end = not streamed and bool(response.parts) and response.finish_reason is not None
    if not is_over and not has_end:
        raise GarbledReply(
            f"{_who(model)} gave a reply that breaks off: {(response.text or '')[-80:]!r}",
            again=again,
        )


def _who(model: ProviderModel) -> str:
    return f"the model {model.name!r}" + (f" at {model.url()}" if model.url() else "")


def _other_key(model: ProviderModel) -> str:
    if model.api_key:
        return "give another api_key."
    return f"check {' or '.join(model.provider.keys)}, and that it may use this model."


def _status(error: Exception) -> str:
    return f" (HTTP {error.status_code})" if isinstance(error, ModelHTTPError) else ""


def _why(error: Exception, key: str) -> str:
    """What the provider said, without the key, should it have repeated it."""
    body = error.body if isinstance(error, ModelAPIError) else None
    text = _message(body) or str(error) or type(error).__name__
    return text.replace(key, "…")[:_SHOWN]


def _message(body: object) -> str:
    """The words in an error's body, wherever providers put them."""
    if isinstance(body, Mapping):
        inner = cast("Mapping[str, Any]", body)
        return _message(inner.get("error")) or str(inner.get("message") or "")
    return body if isinstance(body, str) else ""
