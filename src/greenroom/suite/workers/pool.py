"""The workers of a run: which trial runs where, and what happens when a worker is lost."""

import asyncio
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from greenroom.backends.backend import Backend
from greenroom.errors import BadInput, GreenroomError, InDoubt, MetricsHung, WorkerDied
from greenroom.ledger.events import RunEnded
from greenroom.results.result import CaseResult
from greenroom.suite.identity import difference
from greenroom.suite.trial import Settings, TrialState
from greenroom.suite.watch import Blockers
from greenroom.suite.workers.closed_in import ClosedIn
from greenroom.suite.workers.process import Worker
from greenroom.suite.workers.trial import Cut, Died, Done, WorkerTrial

_LOOK: Final = 0.1


class Pool:
    """Worker processes that run the trials of one evaluation. Open it around the run.

    All are started, and have shown that they found what this process found, before the first trial.
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
        fence: ClosedIn | None = None,
    ) -> None:
        self._fence = fence
        self.size = count
        """How many workers there are at a time."""
        self._count = count
        self.notes: list[str] = []
        self._briefing = briefing
        self._identity = identity
        self._agent = agent
        self._settings = settings
        self._workers: list[Worker] = []
        self._known: set[Worker] = set()
        """Every worker there is, including those that are starting or that run one trial alone."""
        self._blockers = Blockers(settings.hooks.note)
        self._starting = asyncio.Lock()
        self._is_cut = False
        self._watching: asyncio.Task[None] | None = None

    def for_trials(self, due: int) -> Self:
        """The pool, with no more workers than trials are due."""
        self.size = min(self._count, due)
        return self

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._look())
        if self._fence is not None:
            self._note(self._fence.notes)
            self._fence.open(lambda why: self._note([why]))
        started = [asyncio.ensure_future(self._start()) for _ in range(self.size)]
        try:
            self._workers = list(await asyncio.gather(*started))
        except BaseException as error:
            for each in started:
                each.cancel()
            await asyncio.gather(*started, return_exceptions=True)
            await self._close(at_once=True)
            if self._is_cut and isinstance(error, GreenroomError):
                return self  # nothing runs any more
            raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        await self._close(at_once=kind is not None or self._is_cut)

    async def _close(self, *, at_once: bool) -> None:
        if self._watching is not None:
            self._watching.cancel()
        try:
            if not at_once:
                await asyncio.gather(*(worker.leave() for worker in self._known))
        finally:
            known, self._known, self._workers = self._known, set(), []
            for worker in known:
                worker.kill()
            await asyncio.gather(*(worker.close() for worker in known))
            if self._fence is not None:
                self._fence.close()

    def cut(self) -> None:
        """End every worker now, and its trials; for the thread of the loop."""
        self._is_cut = True
        for worker in self._known:
            worker.kill()

    async def run(self, state: TrialState) -> CaseResult:
        """Run and measure one trial, in as many workers as it takes."""
        trial = WorkerTrial(state, self._settings)
        while True:
            try:
                worker = await self._worker_for(trial)
            except GreenroomError as error:
                if self._is_cut:
                    raise asyncio.CancelledError from error
                return trial.error_result(error)
            ending = await worker.run(trial)
            await self._release(worker)
            if isinstance(ending, Done):
                self._note(ending.message["notes"])
                if trial.go_back():
                    continue
                try:
                    return trial.result(ending.message)
                except BadInput as error:
                    return trial.error_result(error)
            error = self._after_loss(trial, ending)
            if error is not None:
                return trial.error_result(error)

    def _after_loss(self, trial: WorkerTrial, ending: Died | Cut) -> GreenroomError | None:
        """Prepare to go on after the loss of a worker; the error if that is no use."""
        if isinstance(ending, Died):
            trial.deaths += 1
            if trial.deaths > 1:
                return WorkerDied(f"its worker process {ending.how}, for the second time.")
            trial.notes.append(f"its worker process {ending.how}; the trial went on in another")
        elif ending.overdue == "measuring":
            return MetricsHung(
                f"the metrics were not done within {trial.measuring_seconds:g} s; they blocked "
                f"their worker process, which was ended."
            )
        elif ending.overdue == "simulating" and not trial.is_simulated:
            trial.end(RunEnded(reason="max_seconds"))
            return None
        state = TrialState(trial.state.trial)
        backend = self._settings.backend_of(state.trial.case, self._agent)
        note = state.resume(trial, backend, not_begun=trial.waiting)
        if note:
            trial.notes.append(note)
        if state.doubt:
            return InDoubt(state.doubt)
        trial.resume(state, was_blocked=isinstance(ending, Cut))
        return None

    # Workers

    async def _worker_for(self, trial: WorkerTrial) -> Worker:
        if trial.deaths:
            # It is unknown which trial was at fault; alone it becomes clear.
            return await self._start()
        async with self._starting:
            while len(self._alive()) < self.size:
                started = await self._start()
                # Another may have come back meanwhile.
                self._workers = [*self._alive(), started]
            self._workers = self._alive()
            return min(self._workers, key=lambda worker: len(worker.trials))

    def _alive(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.is_gone]

    async def _start(self) -> Worker:
        """A worker that has found the same as this process; one that dies before is replaced once."""
        try:
            return await self._start_once()
        except WorkerDied:
            if self._is_cut:
                raise
            return await self._start_once()

    async def _start_once(self) -> Worker:
        if self._is_cut:
            raise WorkerDied("the run is being stopped.")
        worker = Worker(self._blockers.report, self._fence)
        self._known.add(worker)
        try:
            found = await worker.start(self._briefing)
            self._note(found["notes"])
            if other := difference(self._identity, found):
                raise BadInput(
                    f"a worker process found {other}. Something changed while the run began, or what "
                    f"the agent and the cases are made of depends on the process that imports them."
                )
        except BaseException:
            self._known.discard(worker)
            await worker.close()
            raise
        return worker

    async def _release(self, worker: Worker) -> None:
        """Close a worker that is gone, or one too many."""
        others = [other for other in self._alive() if other is not worker]
        if not worker.is_gone and len(others) < self.size:
            self._workers = [*others, worker]
        elif not worker.trials:
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
