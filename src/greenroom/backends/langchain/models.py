"""Where LangChain asks a chat model: the World of the case answers."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportUnknownMemberType=false

import functools
from collections.abc import Callable
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel

from greenroom.backends.langchain.callers import IN_MODEL, MARK, gate_model
from greenroom.backends.langchain.subclasses import watch_classes
from greenroom.backends.seams import original

Call = Callable[..., Any]

_SEAMS = (
    "_generate_with_cache",
    "_agenerate_with_cache",
    "stream",
    "astream",
    "_iter_v2_events",
    "_aiter_v2_events",
)
ABOVE = ("invoke", "ainvoke", "generate", "agenerate", *_SEAMS)
_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once, and a guard on every class that would go around them."""
    if _installed:
        return
    seams = {name: _model_seam(original(BaseChatModel, name)) for name in _SEAMS}
    for name, seam in seams.items():
        setattr(BaseChatModel, name, seam)
    watch_classes(BaseChatModel, ABOVE)
    _installed.append(True)


def _model_seam(real: Call) -> Call:
    @functools.wraps(real)
    def seam(self: BaseChatModel, *args: Any, **given: Any) -> Any:
        if MARK not in self.__dict__ and not IN_MODEL.get():
            self = gate_model(self)
        return real(self, *args, **given)

    return seam
