"""What one server knows: its store, what it was started with, and the runs that were lately looked at."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock

from greenroom.apps.web.run_index import RunIndex
from greenroom.store import Store

_MOST_RUNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the server was started with. The page can name nothing that is not in here."""

    agents: Sequence[str] = ()
    sets: Sequence[str] = ()
    """Files of eval sets, and folders of them."""
    read_only: bool = False
    labels: bool = True
    """Whether people may grade."""
    budget: float = 1.0
    """The most that one action may spend, in USD."""
    trace_url: str = ""


@dataclass(slots=True)
class Site:
    """The state that routes share."""

    store: Store
    settings: Settings
    _indexes: dict[str, RunIndex] = field(default_factory=dict[str, RunIndex])
    _lock: Lock = field(default_factory=Lock)

    def index(self, run_id: str) -> RunIndex:
        """The rows of a run; those of the runs that were asked for last are kept."""
        known = self.store.run(run_id).id
        with self._lock:
            index = self._indexes.pop(known, None) or RunIndex(self.store, known)
            self._indexes[known] = index
            while len(self._indexes) > _MOST_RUNS:
                self._indexes.pop(next(iter(self._indexes)))
        return index
