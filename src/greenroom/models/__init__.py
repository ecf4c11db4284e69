"""Models: the protocol they share, the scripted one, those of providers by name, and choices."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from greenroom.models.model import (
    Model,
    ModelBody,
    ModelReply,
    ModelRequest,
    OnDelta,
    ToolSpec,
    send_piece,
)
from greenroom.models.named import as_model, provider_model
from greenroom.models.prices import Price, price_of
from greenroom.models.scripted import Scripted

if TYPE_CHECKING:
    from greenroom.models.candidates import Candidate, candidate
    from greenroom.models.choice import Choice, choose
    from greenroom.models.standing import Standing

# Most agents have one model, so these are loaded when they are first used.
_LATER = {
    "Candidate": "candidates",
    "Choice": "choice",
    "Standing": "standing",
    "candidate": "candidates",
    "choose": "choice",
}

__all__ = [
    "Candidate",
    "Choice",
    "Model",
    "ModelBody",
    "ModelReply",
    "ModelRequest",
    "OnDelta",
    "Price",
    "Scripted",
    "Standing",
    "ToolSpec",
    "as_model",
    "candidate",
    "choose",
    "price_of",
    "provider_model",
    "send_piece",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module 'greenroom.models' has no attribute {name!r}")
    value = getattr(import_module(f"greenroom.models.{_LATER[name]}"), name)
    globals()[name] = value
    return value
