"""The workers of a run: who plays what, and what happens when one of them is lost."""

import asyncio
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from greenroom.backends.backend import Backend
from greenroom.errors import BadInput, GreenroomError, InDoubt, MetricsHung, WorkerDied
from greenroom.ledger.events import RunEnded
from greenroom.results.result import CaseResult
from greenroom.suite.blockers import Blockers
from greenroom.suite.resume import taken_up
from greenroom.suite.trial import Settings
from greenroom.suite.trial_state import TrialState
from greenroom.suite.workers.identity import difference
from greenroom.suite.workers.process import Worker
from greenroom.suite.workers.trial import Cut, Died, Done, WorkerTrial

_LOOK: Final = 0.1


class Pool:
    """Worker processes that play the trials of one run. Open it around the run.

    All are started, and have shown that they found what this process found, before the first plays.
    One that dies is replaced; its trials go on, alone in a new one, and only once. One that is
    blocked beyond the limits of a trial is ended, and that trial with it.
    """

    def __init__(
        self,
        count: int,
        briefing: dict[str, Any],
        identity: dict[str, Any],
        agent: Backend | None,
        settings: Settings,
    ) -> None:
        self.size = count
        """How many workers play at a time."""
        self._count = count
        self.notes: list[str] = []
        self._briefing = briefing
        self._identity = identity
        self._agent = agent
        self._settings = settings
        self._workers: list[Worker] = []
        self._known: set[Worker] = set()
        """Every worker there is, those that are starting or play for one trial alone included."""
        self._blockers = Blockers(settings.hooks.note)
        self._hiring = asyncio.Lock()
        self._is_cut = False
        self._looking: asyncio.Task[None] | None = None

    def for_trials(self, due: int) -> Self:
        """The pool, with no more workers than trials are due."""
        self.size = min(self._count, due)
        return self

    async def __aenter__(self) -> Self:
        self._looking = asyncio.create_task(self._look())
        hired = [asyncio.ensure_future(self._hired()) for _ in range(self.size)]
        try:
            self._workers = list(await asyncio.gather(*hired))
        except BaseException as error:
            for each in hired:
                each.cancel()
            await asyncio.gather(*hired, return_exceptions=True)
            await self._closed(at_once=True)
            if self._is_cut and isinstance(error, GreenroomError):
                return self  # nothing is played any more
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        await self._closed(at_once=kind is not None or self._is_cut)

    async def _closed(self, *, at_once: bool) -> None:
        if self._looking is not None:
            self._looking.cancel()
        try:
            if not at_once:
                await asyncio.gather(*(worker.leave() for worker in self._known))
        finally:
            known, self._known, self._workers = self._known, set(), []
            for worker in known:
                worker.kill()
            await asyncio.gather(*(worker.close() for worker in known))

    def cut(self) -> None:
        """End every worker now, and what it plays; for the thread of the loop."""
        self._is_cut = True
        for worker in self._known:
            worker.kill()

    async def play(self, take: TrialState) -> CaseResult:
        """One trial, played and measured by as many workers as it takes."""
        errand = WorkerTrial(take, self._settings)
        while True:
            try:
                worker = await self._worker_for(errand)
            except GreenroomError as error:
                if self._is_cut:
                    raise asyncio.CancelledError from error
                return errand.broke(error)
            ending = await worker.play(errand)
            await self._let_go(worker)
            if isinstance(ending, Done):
                self._note(ending.told["notes"])
                if errand.went_back():
                    continue
                return self._concluded(errand, ending)
            error = self._missing(errand, ending)
            if error is not None:
                return errand.broke(error)

    def _concluded(self, errand: WorkerTrial, ending: Done) -> CaseResult:
        try:
            return errand.concluded(ending.told)
        except BadInput as error:
            return errand.broke(error)

    def _missing(self, errand: WorkerTrial, ending: Died | Cut) -> GreenroomError | None:
        """Make ready to go on after the loss of a worker; why not, if that is no use."""
        if isinstance(ending, Died):
            errand.deaths += 1
            if errand.deaths > 1:
                return WorkerDied(f"its worker process {ending.how}, for the second time.")
            errand.notes.append(f"its worker process {ending.how}; the trial went on in another")
        elif ending.overdue == "measuring":
            return MetricsHung(
                f"the metrics were not done within {errand.measuring_seconds:g} s; they blocked "
                f"their worker process, which was ended."
            )
        elif ending.overdue == "playing" and not errand.is_played:
            errand.end(RunEnded(reason="max_seconds"))
            return None
        take = TrialState(errand.take.play)
        note = taken_up(take, errand, self._agent, unbegun=errand.waiting)
        if note:
            errand.notes.append(note)
        if take.doubt:
            return InDoubt(take.doubt)
        errand.go_on(take, was_blocked=isinstance(ending, Cut))
        return None

    # Workers

    async def _worker_for(self, errand: WorkerTrial) -> Worker:
        if errand.deaths:
            # Nobody knows whose fault it was; alone it can be told.
            return await self._hired()
        async with self._hiring:
            while len(self._alive()) < self.size:
                hired = await self._hired()
                # Another may have come back meanwhile.
                self._workers = [*self._alive(), hired]
            self._workers = self._alive()
            return min(self._workers, key=lambda worker: len(worker.errands))

    def _alive(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.is_gone]

    async def _hired(self) -> Worker:
        """A worker that has found the same as this process; one that dies before is replaced once."""
        try:
            return await self._started()
        except WorkerDied:
            if self._is_cut:
                raise
            return await self._started()

    async def _started(self) -> Worker:
        if self._is_cut:
            raise WorkerDied("the run is being stopped.")
        worker = Worker(self._blockers.tell)
        self._known.add(worker)
        try:
            found = await worker.start(self._briefing)
            self._note(found["notes"])
            self._check(found)
        except BaseException:
            self._known.discard(worker)
            await worker.close()
            raise
        return worker

    def _check(self, found: dict[str, Any]) -> None:
        if other := difference(self._identity, found):
            raise BadInput(
                f"a worker process found {other}. Something changed while the run began, or what "
                f"the agent and the cases are made of depends on the process that imports them."
            )

    async def _let_go(self, worker: Worker) -> None:
        """Put away a worker that is gone, or one too many."""
        others = [other for other in self._alive() if other is not worker]
        if not worker.is_gone and len(others) < self.size:
            self._workers = [*others, worker]
        elif not worker.errands:
            self._workers = others
            self._known.discard(worker)
            await worker.leave()

    def _note(self, notes: list[str]) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    async def _look(self) -> None:
        """Look after the workers, as long as there are any."""
        while True:
            await asyncio.sleep(_LOOK)
            for worker in tuple(self._known):
                worker.look(monotonic())
