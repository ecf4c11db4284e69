"""The run of many: which trials are due, how they run side by side, and what ends them early."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import replace
from functools import partial
from time import perf_counter, time
from typing import TYPE_CHECKING

from msgspec import Struct, field

from greenroom.backends.backend import Backend
from greenroom.cases.evalset import EvalSet
from greenroom.errors import StoreFailed
from greenroom.metrics.definition import as_metric
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken, skipped
from greenroom.simulation.fence import strays
from greenroom.simulation.outside_trials import outside_trials
from greenroom.suite.budget import cost_so_far
from greenroom.suite.collected import CollectedResults, ResultQueue
from greenroom.suite.early_end import EarlyEnd
from greenroom.suite.executor import Executor
from greenroom.suite.hooks import Hooks
from greenroom.suite.settings import Settings
from greenroom.suite.storage.identity import metric_digests
from greenroom.suite.storage.recorder import Recorder
from greenroom.suite.trial_state import Trial, TrialState
from greenroom.suite.watch import closed, refusals_since, watched
from greenroom.world.pacer import keep_rates

if TYPE_CHECKING:
    from greenroom.suite.adaptive import Adaptive
    from greenroom.suite.suspects import Suspects

_MOST_KEPT = 10_000
"""Results of a run with more trials stay in its store, if it has one: each takes about 2 kB."""


class ActiveRun(Struct):
    """One evaluation in progress."""

    backend: Backend | None
    evalset: EvalSet
    settings: Settings
    recorder: Recorder
    early_end: EarlyEnd
    executor: Executor
    notes: list[str] = field(default_factory=list[str])
    adaptive: "Adaptive | None" = None
    """Decides which trials are worth their price; without it, all are due."""
    suspects: "Suspects | None" = None
    """Decides which cases run again because they passed in a baseline; without it, none does."""
    shard: str = ""
    """Which part of the cases is run here, such as `2/4`; empty for all of them."""
    results: CollectedResults = field(default_factory=CollectedResults)
    unfinished: int = 0
    """How many trials that were due have no result of their own."""
    _hook_calls: set[asyncio.Future[None]] = field(default_factory=set[asyncio.Future[None]])

    async def stream(self) -> AsyncGenerator[CaseResult]:
        """The results as they are done; they are not kept here."""
        self.results.queue = queue = ResultQueue()
        results = queue.results(asyncio.ensure_future(self.report()))
        async with aclosing(results):
            async for result in results:
                yield result

    async def report(self) -> Report:
        """Run all trials that are due, and return the report with its notes."""
        at, began, known_strays = time(), perf_counter(), len(strays())
        try:
            with outside_trials(), keep_rates(self.settings.rates):
                await self._run_all()
        except BaseException:
            self.recorder.freeze()
            seconds = perf_counter() - began
            await self.recorder.close(finished=False, notes=self.notes, seconds=seconds)
            raise
        self._note_all(refusals_since(known_strays))
        self.notes += await self.recorder.close(
            finished=not (self.unfinished or self.recorder.failure),
            notes=self.notes,
            seconds=perf_counter() - began,
        )
        report = self.settings.hooks.run_completed(self._report(at, perf_counter() - began))
        if self.recorder.failure:
            raise StoreFailed(
                f"the run has stopped, because not everything could be recorded: "
                f"{self.recorder.failure} Fix that, then resume run {report.id!r}.",
                report,
            )
        return report

    def _note_all(self, refusals: Sequence[str]) -> None:
        """Add the notes on fence, hooks, workers and budget to the report."""
        usual = {as_metric(criterion).name for criterion in self.evalset.usual or ()}
        asked = [one.name for one in self.settings.measuring.metrics if one.name not in usual]
        common = self.results.common.notes(self.settings.rates, asked)
        self.notes += [*common, *refusals, *self.settings.hooks.notes]
        self.notes += [note for note in self.executor.notes if note not in self.notes]
        if self.settings.budget is not None:
            self.notes += self.settings.budget.notes

    def _report(self, at: float, seconds: float) -> Report:
        """The results in the order of the cases; trials that confirm a suspect are kept apart."""
        if (shared := self.recorder.shared_report()) is not None:
            return shared
        results, suspects = self.results, self.suspects
        in_order = sorted(results.kept.items())
        kept = [r for position, r in in_order if not (suspects and suspects.is_again(position))]
        return Report(
            kept if results.keeps else self.recorder.results(self.evalset, results.left_out),
            self.evalset.name or self.evalset.id,
            seconds,
            self.notes,
            id=self.recorder.run_id or new_report_id(),
            evalset_id=self.evalset.id,
            at=at,
            adaptive=self.adaptive is not None,
            against=None if suspects is None else suspects.baseline.id,
            measures=metric_digests(self.settings.measuring.metrics),
            confirmed=tuple(
                r for position, r in in_order if suspects and suspects.is_again(position)
            ),
        )

    # What is due

    async def _run_all(self) -> None:
        """Every trial that is due; then those of cases that seem to have got worse."""
        due = sum(1 for _ in self._due())
        self.unfinished = 0 if self.adaptive else due
        self.results.keeps = self._keeps_results()
        # Thousands of earlier results take time to read; only what depends on them waits for that.
        reads_first = bool(self.adaptive or self.settings.budget or self.suspects)
        self.early_end.listen()
        try:
            async with watched(self.settings.hooks.note, self.early_end.cancel):
                if reads_first:
                    self._read_earlier()
                async with self._open(due):
                    if self.adaptive is not None:
                        await self._run_rounds(self.adaptive)
                        self.notes.append(str(self.adaptive.conclusion))
                    else:
                        await self._run_side_by_side(self._due(), due)
                    if due:
                        await self._confirm()
                if not due:  # an earlier process ran every case, and was interrupted after that
                    async with self._open(len(self._suspected())):
                        await self._confirm()
                if not reads_first:
                    self._read_earlier()
                await self.recorder.flush()
                await asyncio.gather(*self._hook_calls)
        finally:
            self.early_end.leave()
            if self.settings.middleware is not None:
                self.notes += await closed(self.settings.middleware)

    def _due(self) -> Iterator[Trial]:
        """The trials that no earlier process finished, made one by one: there may be a million."""
        mine = _part_of(self.evalset.ids, self.shard) if self.shard else None
        position = 0
        for case in self.evalset.cases:
            for number in range(1, self.evalset.trials + 1):
                trial = Trial(position, case, number)
                if (mine is None or case.id in mine) and not self.recorder.is_done(trial):
                    yield trial
                position += 1

    def _keeps_results(self) -> bool:
        """Whether results stay in memory: rounds need them, and so do reports of runs without a store."""
        if self.adaptive or self.suspects:
            return True
        is_large = len(self.evalset) * self.evalset.trials > _MOST_KEPT
        return self.results.queue is None and not (is_large and self.recorder.run_id)

    def _open(self, due: int) -> AbstractAsyncContextManager[object]:
        """Keep the executor open while any trial is due."""
        if not due or self.early_end.reason:
            return nullcontext()
        return self.executor.for_trials(due)

    def _read_earlier(self) -> None:
        """Put the results of earlier processes in their places."""
        budget, trials = self.settings.budget, self.evalset.trials
        indexes: dict[str, int] = {}
        if budget is not None:
            budget.add_earlier(*self.recorder.spent)
        for key, result in self.recorder.earlier():
            # Most runs were not begun before, and may have a million cases.
            indexes = indexes or {case.id: index for index, case in enumerate(self.evalset.cases)}
            if self.suspects is not None and key.trial > trials:
                trial = self.suspects.trial_of(key)
            else:
                index = indexes[key.case_id]
                position = index * trials + key.trial - 1
                trial = Trial(position, self.evalset.cases[index], key.trial)
            if budget is not None:
                budget.learn(result, cost_so_far(result))
            self.results.add(trial.position, replace(result, asked=trial.case))

    async def _confirm(self) -> None:
        """Run cases again that passed in the baseline and fail now, until it is clear."""
        await self.recorder.flush()
        if self.suspects is not None and self._suspected():
            await self._run_rounds(self.suspects)

    def _suspected(self) -> list[Trial]:
        """The trials that confirm or clear a suspect; known once every case has run."""
        if self.suspects is None or self.unfinished:
            return []
        suspects, in_order = self.suspects, sorted(self.results.kept.items())
        suspects.begin([result for place, result in in_order if not suspects.is_again(place)])
        return suspects.due()

    async def _run_rounds(self, rounds: "Adaptive | Suspects") -> None:
        """Round after round, until nothing is due."""
        while not self.early_end.reason and (due := rounds.due()):
            fresh = [trial for trial in due if not self.recorder.is_done(trial)]
            self.unfinished += len(fresh)
            await self._run_side_by_side(fresh, len(fresh))
            await self.recorder.flush()
            for trial in due:
                rounds.add(self.results.kept[trial.position])
        if self.early_end.reason:
            self.unfinished += len(rounds.due())  # there is more to do if the run is resumed

    async def _run_side_by_side(self, due: Iterable[Trial], count: int) -> None:
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

    # One trial

    async def _run_one(self, trial: Trial) -> None:
        """Begin a trial in the recorder, run it, pay for it and record its result."""
        if why := self.early_end.reason or await self._reserve(trial):
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
        if self.settings.budget is not None:
            self.settings.budget.carry(self.settings.reservation(trial), state.paid)
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
        """The result as it counts; one that did not pass may stop the run."""
        has_error = result.status == "error"
        if has_error and self.settings.on_error == "skip":
            notes = (*result.notes, "left out because of its error")
            return replace(result, status="skipped", notes=notes)
        if result.passed or self.early_end.cut_reason or self.early_end.own_reason:
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
            self._hook_calls.add(call)
            call.add_done_callback(self._forget)

    def _forget(self, call: "asyncio.Future[None]") -> None:
        """Forget a hook call that succeeded; with one for each trial they would pile up."""
        if not call.cancelled() and call.exception() is None:
            self._hook_calls.discard(call)

    async def _reserve(self, trial: Trial) -> str:
        """Set money aside for a trial; why not, if there is not enough."""
        if self.settings.budget is None:
            return ""
        why = await self.settings.budget.begin(self.settings.reservation(trial))
        if not why and (why := self.early_end.reason):  # the run was stopped while this one waited
            self._release(trial)
        return why

    def _release(self, trial: Trial) -> None:
        if self.settings.budget is not None:
            self.settings.budget.release(self.settings.reservation(trial))


async def _complete_case(hooks: Hooks, result: CaseResult) -> None:
    hooks.case_completed(result)


def _part_of(ids: Iterable[str], shard: str) -> set[str]:
    """The cases of a shard, such as `2/4`. By name, since the order of cases may differ elsewhere."""
    part, parts = map(int, shard.split("/"))
    return {*sorted(ids)[part - 1 :: parts]}
