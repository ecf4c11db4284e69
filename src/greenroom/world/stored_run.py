"""The run of the store that the trial under way belongs to."""

from contextvars import ContextVar
from typing import Final

from greenroom.world.presence import ContextSetting

_STORED: Final = ContextVar("greenroom_stored_run", default="")


def stored_run() -> str:
    """Its id; empty if nothing is stored."""
    return _STORED.get()


def stored_as(run_id: str) -> ContextSetting[str]:
    """A trial of this run of the store."""
    return ContextSetting(_STORED, run_id)
