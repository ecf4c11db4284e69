"""Models: the protocol they share, the scripted one, and those of providers by name."""

from typing import TYPE_CHECKING, Any

from greenroom.models.model import Model, ModelBody, ModelReply, ModelRequest, OnDelta, ToolSpec
from greenroom.models.scripted import Scripted

if TYPE_CHECKING:
    from greenroom.models.named import as_model, provider_model

__all__ = [
    "Model",
    "ModelBody",
    "ModelReply",
    "ModelRequest",
    "OnDelta",
    "Scripted",
    "ToolSpec",
    "as_model",
    "provider_model",
]

_NAMED = ("as_model", "provider_model")


def __getattr__(name: str) -> Any:
    if name not in _NAMED:
        raise AttributeError(f"module 'greenroom.models' has no attribute {name!r}")
    from greenroom.models import named  # most runs name no provider

    return getattr(named, name)
