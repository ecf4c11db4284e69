"""Results remembered between runs, in one SQLite file, with a journal for what is still under way."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from greenroom.store.runs import Run, RunStatus

if TYPE_CHECKING:
    from greenroom.store.store import Store, default_store

__all__ = ["Run", "RunStatus", "Store", "default_store"]


def __getattr__(name: str) -> Any:
    # SQLite is loaded when something is to be remembered.
    if name in __all__:
        return getattr(import_module("greenroom.store.store"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
