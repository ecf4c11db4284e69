"""Models: the protocol they share, and the scripted one."""

from greenroom.models.model import Model, ModelBody, ModelReply, ModelRequest, OnDelta, ToolSpec
from greenroom.models.scripted import Scripted

__all__ = [
    "Model",
    "ModelBody",
    "ModelReply",
    "ModelRequest",
    "OnDelta",
    "Scripted",
    "ToolSpec",
]
