"""Where LangGraph's graphs remember: inside a case, for their own trial alone."""

# The framework is half typed, and its seams are its own affair.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from langgraph.pregel import Pregel

from greenroom.backends.seams import original
from greenroom.world.presence import model_host

Call = Callable[..., Any]

# Whatever reads or writes what a graph remembers.
_REMEMBERING = (
    "stream",
    "astream",
    "get_state",
    "aget_state",
    "get_state_history",
    "aget_state_history",
    "bulk_update_state",
    "abulk_update_state",
)
_installed: list[bool] = []


def install() -> None:
    """Put the seams in, once."""
    if _installed:
        return
    seams = {name: _memory_seam(original(Pregel, name)) for name in _REMEMBERING}
    for name, seam in seams.items():
        setattr(Pregel, name, seam)
    _installed.append(True)


def _memory_seam(real: Call) -> Call:
    """In a rehearsal a graph remembers for its own trial only, and writes nothing outside of it."""

    @functools.wraps(real)
    def seam(self: Any, *args: Any, **given: Any) -> Any:
        if model_host() is not None:
            # Loaded when it is needed: by then the framework is whole.
            memory = import_module("greenroom.backends.langgraph.memory")
            self = memory.with_own_memory(self)
        return real(self, *args, **given)

    return seam
