"""The workers of a run: which trial runs where, and what happens when a worker is lost."""

import asyncio
from time import monotonic
from types import TracebackType
from typing import Any, Final, Self

from greenroom.backends.backend import Backend
from greenroom.errors import BadInput, GreenroomError, InDoubt, MetricsHung, WorkerDied
from greenroom.ledger.events import RunEnded
from greenroom.results.result import CaseResult
from greenroom.suite.settings import Settings
from greenroom.suite.storage.identity import difference
from greenroom.suite.trial import run_trial
from greenroom.suite.trial_state import TrialState
from greenroom.suite.watch import Blockers
from greenroom.suite.workers.process import Worker
from greenroom.suite.workers.trial import Cut, Died, Done, Lost, WorkerTrial
from greenroom.suite.workers.turns import TurnGiver
from greenroom.suite.workers.workplace import Workplace
from greenroom.world.pacer import Pace, pace_of

_LOOK: Final = 0.1
_MOST_LOSSES: Final = 5
"""How often a trial may lose its worker together with the machine."""


class Pool:
    """Worker processes that run the trials of one evaluation. Open it around the run.

    A worker gets trials only after it has shown that it found what this process found. One that dies is
    replaced; its trials continue, alone in a new one, and only once. One that is lost with its machine
    is replaced too, and its trials continue anywhere. One that is blocked beyond the limits of a trial
    is ended, and that trial with it.
    """

    def __init__(
        self,
        place: Workplace,
        count: int | None,
        briefing: dict[str, Any],
        identity: dict[str, Any],
        agent: Backend | None,
        settings: Settings,
    ) -> None:
        self._place = place
        self.size = self._count = count or 1
        """How many workers run at a time."""
        self._asked = count
        self.notes: list[str] = []
        self._briefing = briefing
        self._identity = identity
        self._agent = agent
        self._settings = settings
        self._workers: list[Worker] = []
        self._known: set[Worker] = set()
        """Every worker there is, including those that are starting or that run one trial alone."""
        self._hiring: set[asyncio.Task[None]] = set()
        self._failure: BaseException | None = None
        """Why the last worker could not be started."""
        self._changed = asyncio.Event()
        self._blockers = Blockers(settings.hooks.note)
        self._turns = TurnGiver(_pace_of)
        self._is_cut = False
        self._watching: asyncio.Task[None] | None = None

    @property
    def usual_concurrency(self) -> int:
        """One trial in each worker, since agents that are run in workers are likely to block."""
        return self._count

    async def connect(self) -> None:
        """Find the place where the workers will be."""
        self.size = self._count = await self._place.connect(self._asked)

    def for_trials(self, due: int) -> Self:
        """The pool, with no more workers than trials are due."""
        self.size = min(self._count, due)
        return self

    async def __aenter__(self) -> Self:
        self._watching = asyncio.create_task(self._look())
        self._place.open(lambda why: self._note([why]))
        self._hire()
        try:
            await self._begin()
        except BaseException as error:
            await self._close(at_once=True)
            if self._is_cut and isinstance(error, GreenroomError):
                return self  # the run is being stopped
            raise
        return self

    async def _begin(self) -> None:
        """Wait for all workers, or for the first where the others may take long."""
        while self._failure is None and self._hiring and not self._is_cut:
            if self._workers and not self._place.starts_together:
                return
            await self._change()
        if self._failure is not None and (self._place.starts_together or not self._workers):
            raise self._failure

    async def __aexit__(
        self, kind: type[BaseException] | None, _: BaseException | None, __: TracebackType | None
    ) -> None:
        await self._close(at_once=kind is not None or self._is_cut)

    async def _close(self, *, at_once: bool) -> None:
        if self._watching is not None:
            self._watching.cancel()
        for task in (hiring := tuple(self._hiring)):
            task.cancel()
        await asyncio.gather(*hiring, return_exceptions=True)
        try:
            if not at_once:
                await asyncio.gather(*(worker.leave() for worker in self._known))
        finally:
            known, self._known, self._workers = self._known, set(), []
            for worker in known:
                worker.kill()
            await asyncio.gather(*(worker.close() for worker in known))
            for worker in known:
                self._note(worker.notes)
            self._turns.close()
            self._place.close(at_once=at_once)

    def cut(self) -> None:
        """End every worker and its trials now; call it in the thread of the loop."""
        self._is_cut = True
        for worker in self._known:
            worker.kill()
        self._changed.set()

    async def run(self, state: TrialState) -> CaseResult:
        """Run and measure one trial, in as many workers as it takes."""
        if state.doubt:
            return await run_trial(self._agent, state, self._settings)
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

    def _after_loss(self, trial: WorkerTrial, ending: Died | Lost | Cut) -> GreenroomError | None:
        """Prepare to continue a trial after the loss of its worker; the error if it cannot."""
        if isinstance(ending, Died):
            trial.deaths += 1
            if trial.deaths > 1:
                return WorkerDied(f"its worker process {ending.how}, for the second time.")
            trial.notes.append(f"its worker process {ending.how}; the trial continued in another")
        elif isinstance(ending, Lost):
            trial.losses += 1
            if trial.losses > _MOST_LOSSES:
                return WorkerDied(
                    f"its worker process {ending.how}, for the {trial.losses}th time."
                )
            trial.notes.append(f"its worker process {ending.how}; the trial continued in another")
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
        """A worker with room for another trial; GreenroomError if there is none and none can be started."""
        if trial.deaths:
            # It is unknown which of the worker's trials was at fault; alone in a worker, that becomes clear.
            return await self._start()
        at_once = self._settings.concurrency or self.usual_concurrency
        share = -(-at_once // self.size)
        while True:
            if self._is_cut:
                raise WorkerDied("the run is being stopped.")
            alive = self._workers = self._alive()
            if self._failure is not None and not alive and not self._hiring:
                failure, self._failure = self._failure, None
                raise failure
            self._hire()
            if free := [worker for worker in alive if len(worker.trials) < share]:
                return min(free, key=lambda worker: len(worker.trials))
            await self._change()

    def _alive(self) -> list[Worker]:
        return [worker for worker in self._workers if not worker.is_gone]

    async def _change(self) -> None:
        """Wait until a worker has come, has gone, or has room again."""
        self._changed.clear()
        await self._changed.wait()

    def _hire(self) -> None:
        """Start as many workers as are missing, unless starting them is known to fail."""
        if isinstance(self._failure, BadInput) or self._is_cut:
            return
        for _ in range(self.size - len(self._alive()) - len(self._hiring)):
            task = asyncio.create_task(self._hire_one())
            self._hiring.add(task)
            task.add_done_callback(self._hired)

    async def _hire_one(self) -> None:
        worker = await self._start()
        if len(alive := self._alive()) < self.size:
            self._workers = [*alive, worker]
        else:  # another came back meanwhile
            self._known.discard(worker)
            await worker.leave()

    def _hired(self, task: "asyncio.Task[None]") -> None:
        self._hiring.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._failure = error
            if self._alive():
                self._note([f"a worker could not be started, and others did its work: {error}"])
        self._changed.set()

    async def _start(self) -> Worker:
        """Start a worker and check that it found what this process found; one that dies before is replaced once."""
        try:
            return await self._start_once()
        except WorkerDied:
            if self._is_cut:
                raise
            return await self._start_once()

    async def _start_once(self) -> Worker:
        if self._is_cut:
            raise WorkerDied("the run is being stopped.")
        worker = Worker(self._place.hire(), self._turns, self._blockers.report)
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
        self._changed.set()
        others = [other for other in self._alive() if other is not worker]
        if not worker.is_gone and len(others) < self.size:
            self._workers = [*others, worker]
            missing = self.size - len(self._workers)
            for task in (surplus := [*self._hiring][missing:]):
                task.cancel()
            await asyncio.gather(*surplus, return_exceptions=True)
        elif not worker.trials:
            self._workers = others
            self._known.discard(worker)
            await worker.leave()
            self._note(worker.notes)

    def _note(self, notes: list[str]) -> None:
        self.notes += [note for note in notes if note not in self.notes]

    async def _look(self) -> None:
        """Check on the workers regularly, as long as there are any."""
        while True:
            await asyncio.sleep(_LOOK)
            for worker in tuple(self._known):
                worker.look(monotonic())


def _pace_of(model: str, is_opening: bool) -> Pace:
    """The pace of a model in this process, which its workers share."""
    pace = pace_of(model, is_opening=is_opening)
    assert isinstance(pace, Pace)  # only worker processes have other kinds
    return pace
