"""The lanes of a run: trials side by side, each begun in the recorder, paid for, run and recorded."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from msgspec import Struct, field

from greenroom.backends.backend import Backend
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken, skipped
from greenroom.suite.budget import Budget
from greenroom.suite.collected import CollectedResults
from greenroom.suite.early_end import EarlyEnd
from greenroom.suite.executor import Executor
from greenroom.suite.hooks import Hooks
from greenroom.suite.settings import Settings
from greenroom.suite.storage.recorder import Recorder
from greenroom.suite.trial_state import Trial, TrialState


class Lanes(Struct):
    """Runs the trials it is given, and adds what came of each to the results of the run."""

    backend: Backend | None
    settings: Settings
    recorder: Recorder
    early_end: EarlyEnd
    executor: Executor
    results: CollectedResults
    notes: list[str]
    """The notes of the report."""
    unfinished: int = 0
    """How many trials that were due have no result of their own."""
    hook_calls: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])
    """Calls of hooks that have not returned, or have failed."""

    async def run_all(self, due: Iterable[Trial], count: int) -> None:
        """All of these trials, `count` of them, at most `concurrency` at once."""
        waiting, queue = iter(due), self.results.queue

        async def run_in_turn() -> None:
            for trial in waiting:
                if queue is not None:
                    await queue.room()
                await self._run_one(trial)

        at_once = self.settings.concurrency or self.executor.usual_concurrency
        lanes = [asyncio.ensure_future(run_in_turn()) for _ in range(max(1, min(at_once, count)))]
        try:
            await asyncio.gather(*lanes)
        finally:
            for lane in lanes:
                lane.cancel()
            await asyncio.gather(*lanes, return_exceptions=True)

    async def _run_one(self, trial: Trial) -> None:
        """Begin a trial in the recorder, run it, pay for it and record its result."""
        budget, why = self.settings.budget, self.early_end.reason
        if budget is not None and not why:
            why = await self._reserve(trial, budget)
        if why:
            self._skip(trial, f"not run: {why}")
            return
        state = self.recorder.begin(
            trial, lambda: self.settings.backend_of(trial.case, self.backend)
        )
        if self.recorder.failure:
            self._release(trial)
            self._skip(trial, f"not run: {self.recorder.failure}")
            return
        self.settings.hooks.case_started(trial.case)
        if budget is not None:
            budget.carry(self.settings.reservation(trial), state.paid)
        try:
            if self.settings.tape is not None and (why := self.settings.tape.lend(state)):
                names = self.settings.measuring.names(trial.case)
                result = broken(trial.case, why, metrics=names)
            else:
                result = await self.executor.run(state)
        except BaseException as error:
            if not self.early_end.has_stopped(error):
                self._release(trial)
                raise
            result = skipped(trial.case, self.early_end.cut_reason)
        await self._finish(state, result)

    async def _finish(self, state: TrialState, result: CaseResult) -> None:
        """Count what a trial cost, and record what came of it."""
        trial = state.trial
        if self.settings.tape is not None and not self.early_end.cut_reason:
            result = self.settings.tape.keep(state, result)
        if not result.passed:
            result = self._after_failure(result)
        if trial.number > 1:
            result = replace(result, trial=trial.number)
        if self.settings.budget is not None:
            self.settings.budget.settle(self.settings.reservation(trial), result)
        self.notes += [f"case {trial.case.id!r}: {note}" for note in state.notes]
        if self.early_end.cut_reason:
            # A stopped trial did not show how it would have ended; it runs again when the run is resumed.
            self._skip(trial, f"not finished: {self.early_end.cut_reason}")
            return
        self.unfinished -= 1
        await self.recorder.keep(state, result, partial(self._complete, trial.position))
        if self.early_end.own_reason and not self.early_end.cut_reason:
            await self.early_end.stop_others()

    def _after_failure(self, result: CaseResult) -> CaseResult:
        """A result that did not pass, as it counts; it may stop the run."""
        has_error = result.status == "error"
        if has_error and self.settings.on_error == "skip":
            notes = (*result.notes, "left out because of its error")
            return replace(result, status="skipped", notes=notes)
        if self.early_end.cut_reason or self.early_end.own_reason:
            return result
        if has_error and self.settings.on_error == "stop":
            self.early_end.own_reason = f"case {result.case_id!r} had an error before"
        elif self.settings.fail_fast and result.status != "skipped":
            self.early_end.own_reason = f"case {result.case_id!r} did not pass"
        return result

    def _skip(self, trial: Trial, why: str) -> None:
        self._complete(trial.position, replace(skipped(trial.case, why), trial=trial.number))

    def _complete(self, position: int, result: CaseResult) -> None:
        """Add a result, which is saved by now if the run is recorded, and call the hooks."""
        self.results.add(position, result)
        hooks = self.settings.hooks
        if asyncio.current_task() is not None:
            hooks.case_completed(result)
        elif "on_case_complete" in hooks.listeners:
            # Called by the writer, outside any task. A hook that hangs can be stopped only in its own task.
            call = asyncio.ensure_future(_complete_case(hooks, result))
            self.hook_calls.add(call)
            call.add_done_callback(self._forget)

    def _forget(self, call: "asyncio.Future[None]") -> None:
        """Forget a hook call that succeeded; with one for each trial they would pile up."""
        if not call.cancelled() and call.exception() is None:
            self.hook_calls.discard(call)

    async def _reserve(self, trial: Trial, budget: Budget) -> str:
        """Set money aside for a trial; why not, if there is not enough."""
        why = await budget.begin(self.settings.reservation(trial))
        if not why and (why := self.early_end.reason):  # the run was stopped while this one waited
            self._release(trial)
        return why

    def _release(self, trial: Trial) -> None:
        if self.settings.budget is not None:
            self.settings.budget.release(self.settings.reservation(trial))


async def _complete_case(hooks: Hooks, result: CaseResult) -> None:
    hooks.case_completed(result)
