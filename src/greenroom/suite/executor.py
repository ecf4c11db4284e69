"""Where trials run: in this process, in worker processes of this machine, or on a cluster."""

from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Protocol

from greenroom.results.result import CaseResult
from greenroom.suite.options import CONCURRENCY
from greenroom.suite.settings import Settings
from greenroom.suite.trial import run_trial
from greenroom.suite.trial_state import TrialState
from greenroom.suite.watch import fence_gaps, leftovers


class Executor(Protocol):
    """Runs the trials of one evaluation. The run decides which trials are due, recorded and paid for."""

    @property
    def notes(self) -> list[str]:
        """Notes for the report on where trials ran, asked for when the last one is over."""
        ...

    @property
    def usual_concurrency(self) -> int:
        """How many trials run at once if no number was given."""
        ...

    async def connect(self) -> None:
        """Find the place where trials will run, before the run begins; BadInput if it cannot be used."""
        ...

    def for_trials(self, due: int) -> AbstractAsyncContextManager[object]:
        """Open it around the run of `due` trials."""
        ...

    def run(self, state: TrialState) -> Awaitable[CaseResult]:
        """Run and measure one trial."""
        ...

    def cut(self) -> None:
        """End all trials in other processes, now; call it in the thread of the loop."""
        ...


class InThisProcess:
    """Runs trials side by side on the event loop of the evaluation."""

    usual_concurrency = CONCURRENCY

    def __init__(self, agent: object, settings: Settings) -> None:
        self._agent = agent
        self._settings = settings

    @property
    def notes(self) -> list[str]:
        """What the fence cannot hold in this process by now, since a case may have loaded more; what cases left behind."""
        return [*fence_gaps(), *leftovers()]

    async def connect(self) -> None:
        """Nothing has to be found."""

    def for_trials(self, due: int) -> AbstractAsyncContextManager[int]:
        """Nothing is opened, however many are `due`."""
        return nullcontext(due)

    def run(self, state: TrialState) -> Awaitable[CaseResult]:
        """Run and measure one trial."""
        return run_trial(self._agent, state, self._settings)

    def cut(self) -> None:
        """No trial runs elsewhere; the watchdog ends those that run here."""
