"""Models: the protocol they share, the scripted one, and those of providers by name."""

from greenroom.models.model import Model, ModelBody, ModelReply, ModelRequest, OnDelta, ToolSpec
from greenroom.models.named import as_model, provider_model
from greenroom.models.prices import Price, price_of
from greenroom.models.scripted import Scripted

__all__ = [
    "Model",
    "ModelBody",
    "ModelReply",
    "ModelRequest",
    "OnDelta",
    "Price",
    "Scripted",
    "ToolSpec",
    "as_model",
    "price_of",
    "provider_model",
]
