"""Models: the protocol they share, the scripted one, those of providers by name, and choices."""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy
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
    from greenroom.models.chooser import ChoiceContext


__all__ = [
    "Candidate",
    "Choice",
    "ChoiceContext",
    "Model",
    "ModelBody",
    "ModelReply",
    "ModelRequest",
    "OnDelta",
    "Price",
    "Scripted",
    "ToolSpec",
    "as_model",
    "candidate",
    "choose",
    "price_of",
    "provider_model",
    "send_piece",
]

# Most agents have one model.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "candidates": "Candidate candidate",
        "choice": "Choice choose",
        "chooser": "ChoiceContext",
    },
)
