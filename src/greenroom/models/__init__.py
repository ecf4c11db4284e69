"""Models: the protocol they share, the scripted one, and those of providers by name."""

from greenroom.models.model import Model, ModelBody, ModelReply, ModelRequest, OnDelta, ToolSpec
from greenroom.models.named import as_model, provider_model
from greenroom.models.scripted import Scripted

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
