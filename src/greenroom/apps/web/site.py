"""The state of one server: its store, its settings, and the runs that were recently looked at."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock

from greenroom.apps.web.children import Children
from greenroom.apps.web.labels_page import LabelSets
from greenroom.apps.web.plans import Plans
from greenroom.apps.web.plays import Plays
from greenroom.apps.web.run_index import RunIndex
from greenroom.apps.web.run_pages import RunPages
from greenroom.apps.web.runs_page import Rates, agent_of, evalset_of
from greenroom.apps.web.sets_page import SetFiles
from greenroom.errors import BadInput
from greenroom.ledger.plain import Json
from greenroom.reports.page.shapes import Estimated, Progress
from greenroom.store import Store

_MOST_RUNS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings that the server was started with. The page can name nothing else."""

    agents: Sequence[str] = ()
    sets: Sequence[str] = ()
    """Files of eval sets, and folders of them."""
    read_only: bool = False
    budget: float = 1.0
    """The most that one action may spend, in USD."""
    trace_url: str = ""
    labels: str = "labels"
    """The folder of label sets."""


@dataclass(slots=True)
class Site:
    """The state that routes share."""

    store: Store
    settings: Settings
    pages: RunPages
    sets: SetFiles
    children: Children
    plays: Plays
    plans: Plans
    labels: LabelSets
    rates: Rates
    _indexes: dict[str, RunIndex] = field(default_factory=dict[str, RunIndex])
    _lock: Lock = field(default_factory=Lock)

    @classmethod
    def of(cls, store: Store, settings: Settings) -> "Site":
        """Build all parts of a server."""
        return cls(
            store,
            settings,
            pages=RunPages(store, settings.trace_url),
            sets=SetFiles(settings.sets),
            children=Children(store),
            plays=Plays(store, settings.agents, settings.budget),
            plans=Plans(store, settings.agents, settings.budget),
            labels=LabelSets(settings.labels),
            rates=Rates(store),
        )

    def index(self, run_id: str) -> RunIndex:
        """The rows of a run; those of the runs that were asked for last are kept."""
        found = self.store.run(run_id).id
        return self._index(found, lambda: RunIndex(self.store, found))

    def progress(self, run_id: str) -> Progress:
        """How much of a run has been read."""
        return Progress(read=self.index(run_id).read, trials=self.store.run(run_id).done)

    def compared(self, a: str, b: str) -> RunIndex:
        """The rows of run b, marked with how each case changed since run a."""
        of_b = self.index(b)
        of_b.update()  # this may take seconds, so it happens outside the lock that other pages wait for
        return self._index(f"{b} {a}", of_b.copy)

    def _index(self, name: str, make: Callable[[], RunIndex]) -> RunIndex:
        with self._lock:
            index = self._indexes.pop(name, None) or make()
            self._indexes[name] = index
            while len(self._indexes) > _MOST_RUNS:
                self._indexes.pop(next(iter(self._indexes)))
        return index

    def estimate(self, asked: Mapping[str, Json]) -> Estimated:
        """The estimate of a run, and the command that starts it."""
        return self.plans.plan(asked, self.sets)

    def resumption(self, run_id: str) -> tuple[list[str], str]:
        """The command that resumes an interrupted run of an agent and a set of this server, and that set."""
        run = self.store.run(run_id)
        agent = agent_of(run)
        if agent not in self.settings.agents:
            raise BadInput(
                f"run {run.id!r} is of {agent or 'an agent without a name'!r}, which this server "
                f"was not started with. Resume it in the terminal: greenroom eval run … --resume {run.id}."
            )
        chosen = self.sets.called(evalset_of(run))
        spent, _ = self.store.spent(run.id)
        argv = ["eval", "run", agent, str(chosen.path), "--resume", run.id]
        argv += ["--trials", str(run.plan.trials), "--budget", f"{spent + self.settings.budget:g}"]
        argv += ["--fence", run.plan.fence] if run.plan.fence else []
        argv += ["--store", self.store.address]
        return argv, chosen.id
