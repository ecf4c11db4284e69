"""Results remembered between runs, in one SQLite file, with a journal for what is still under way."""

from greenroom.store.runs import Run, RunStatus
from greenroom.store.store import Store, default_store

__all__ = ["Run", "RunStatus", "Store", "default_store"]
