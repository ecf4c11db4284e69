"""The seam at LangChain's chat models: the World of the case answers."""

# The framework is only partly typed.
# pyright: reportUnknownMemberType=false

from functools import cache
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel

from greenroom.backends.langchain import IN_MODEL, MARK, gate_model, watch_classes
from greenroom.backends.seams import Call, wrap

_SEAMS = (
    "_generate_with_cache",
    "_agenerate_with_cache",
    "stream",
    "astream",
    "_iter_v2_events",
    "_aiter_v2_events",
)
ABOVE = ("invoke", "ainvoke", "generate", "agenerate", *_SEAMS)


@cache
def install() -> None:
    """Install the seams, once, and a guard on every class that would bypass them."""
    wrap((BaseChatModel, name, _model_seam) for name in _SEAMS)
    watch_classes(BaseChatModel, ABOVE)


def _model_seam(real: Call) -> Call:
    def seam(self: BaseChatModel, *args: Any, **given: Any) -> Any:
        if MARK not in self.__dict__ and not IN_MODEL.get():
            self = gate_model(self)
        return real(self, *args, **given)

    return seam
