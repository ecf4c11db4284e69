"""Who writes a run down as it goes, if anybody does."""

import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from greenroom.backends.backend import Backend
from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadInput, StoreFailed, StoreRefused
from greenroom.results.result import CaseResult
from greenroom.store.runs import Key, Plan
from greenroom.suite.options import Options
from greenroom.suite.trial_state import Trial, TrialState

if TYPE_CHECKING:
    from greenroom.store.store import Store

Done = Callable[[CaseResult], None]


class Recorder(Protocol):
    """Whoever writes a run down."""

    run_id: str
    failure: str
    """Why nothing more can be written down; empty while all is well."""

    def listen(self, on_failure: Callable[[], None]) -> None:
        """Call `on_failure`, in any thread, once something cannot be written down."""
        ...

    def is_done(self, play: Trial) -> bool:
        """Whether an earlier process finished this trial of this very case."""
        ...

    def take(self, play: Trial, agent: Backend | None) -> TrialState:
        """Begin a trial, or go on where an earlier process was cut off."""
        ...

    def keep(self, take: TrialState, result: CaseResult, done: Done) -> Awaitable[None] | None:
        """Write a result down; `done` hears of it when it is safe. None: nobody need wait."""
        ...

    async def flush(self) -> None:
        """Wait until every result that was handed over is safe."""
        ...

    def freeze(self) -> None:
        """Write no more events of takes under way: they are being stopped."""
        ...

    @property
    def spent(self) -> tuple[float, float]:
        """What earlier processes have spent on this run, and on its dearest trial, in USD."""
        ...

    def earlier(self) -> Iterable[tuple[Key, CaseResult]]:
        """The results that earlier processes finished."""
        ...

    async def close(self, *, finished: bool, notes: Sequence[str], seconds: float) -> list[str]:
        """The run is over, for now or for good; what a reader should know of the recording."""
        ...


class Unrecorded:
    """Nothing is written down: the report is all there is."""

    run_id = ""
    failure = ""
    spent = (0.0, 0.0)

    def listen(self, on_failure: Callable[[], None]) -> None:
        """Nothing is written down, so nothing can fail."""

    def is_done(self, play: Trial) -> bool:  # noqa: ARG002 - as the protocol has it
        """Nobody knows of an earlier process."""
        return False

    def take(self, play: Trial, agent: Backend | None) -> TrialState:  # noqa: ARG002
        """A fresh beginning."""
        return TrialState(play)

    def keep(self, take: TrialState, result: CaseResult, done: Done) -> None:  # noqa: ARG002
        """A result is done when it is there."""
        done(result)

    async def flush(self) -> None:
        """Nobody is behind."""

    def freeze(self) -> None:
        """There is nothing to protect."""

    def earlier(self) -> Iterable[tuple[Key, CaseResult]]:
        """None."""
        return ()

    async def close(self, *, finished: bool, notes: Sequence[str], seconds: float) -> list[str]:  # noqa: ARG002
        """Nothing to put away."""
        return []


async def recording(options: Options, plan: Plan, evalset: EvalSet, notes: list[str]) -> Recorder:
    """Who writes a run down. Where nobody asked for a store and none can be had, a note says so."""
    store, resume = options.get("store"), options.get("resume", False)
    place = _place(store)
    if place is None:
        if resume is not False:
            raise BadInput("there is no store to resume from; leave store=False out.")
        return Unrecorded()
    # SQLite is loaded by those who have a use for it.
    from greenroom.suite.stored_run import begun, resumed

    try:
        if resume is False:
            return await begun(place, plan, evalset)
        return await resumed(place, plan, evalset, "" if resume is True else resume, options)
    except StoreFailed as error:
        # A place that somebody else holds is no accident of the disk, to be got over.
        if _is_named(store) or resume is not False or isinstance(error, StoreRefused):
            raise
        notes.append(f"the run is not remembered: {error}")
        return Unrecorded()


def _is_named(given: "Store | str | Path | bool | None") -> bool:
    """Whether somebody chose this store, here or for the whole machine: then it must work."""
    from greenroom.store.store import PLACE_VARIABLE

    return given is not None or bool(os.environ.get(PLACE_VARIABLE))


def _place(given: "Store | str | Path | bool | None") -> "Store | None":
    if given is False:
        return None
    from greenroom.store.store import as_store

    return as_store(given)
