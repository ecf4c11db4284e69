"""Runs kept in an SQLite file or on a Postgres server, with a journal for trials in progress."""

from typing import TYPE_CHECKING

from greenroom.lazy import lazy
from greenroom.store.runs import Run, RunStatus

if TYPE_CHECKING:
    from greenroom.store.store import Store, default_store

__all__ = ["Run", "RunStatus", "Store", "default_store"]

# Loaded when first used: SQLite is needed only if something is stored.
__getattr__, __dir__ = lazy(
    __name__,
    {
        "store": "Store default_store",
    },
)
