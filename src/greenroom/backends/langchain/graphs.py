"""The seam at the memory of LangGraph's graphs: in a rehearsal, each trial has its own."""

# The framework is only partly typed.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from functools import cache
from importlib import import_module
from typing import Any

from langgraph.pregel import Pregel

from greenroom.backends.seams import Call, wrap
from greenroom.world.call_context import model_host

# The methods that read or write a graph's memory.
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


@cache
def install() -> None:
    """Install the seams, once."""
    wrap((Pregel, name, _memory_seam) for name in _REMEMBERING)


def _memory_seam(real: Call) -> Call:
    """In a rehearsal a graph's memory belongs to its trial, and nothing is written elsewhere."""

    def seam(self: Any, *args: Any, **given: Any) -> Any:
        if model_host() is not None:
            # Imported when it is needed: by then the framework is fully loaded.
            memory = import_module("greenroom.backends.langgraph.memory")
            self = memory.with_own_memory(self)
        return real(self, *args, **given)

    return seam
