"""The run of many: which trials are due, how they run side by side, and what ends them early."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable, Iterator, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import replace
from time import perf_counter, time
from typing import TYPE_CHECKING

from msgspec import Struct

from greenroom.cases.evalset import EvalSet
from greenroom.errors import RunFaulted, StoreFailed
from greenroom.metrics.definition import as_metric
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import CaseResult
from greenroom.simulation.fence import answerable, strays
from greenroom.simulation.outside_trials import outside_trials
from greenroom.suite.budget import cost_so_far
from greenroom.suite.collected import CollectedResults, ResultQueue
from greenroom.suite.early_end import EarlyEnd
from greenroom.suite.executor import Executor
from greenroom.suite.lanes import Lanes
from greenroom.suite.settings import Settings
from greenroom.suite.storage.identity import metric_digests
from greenroom.suite.storage.recorder import Recorder
from greenroom.suite.trial_state import Trial
from greenroom.suite.watch import closed, refusals_since, watched
from greenroom.world.pacer import keep_rates

if TYPE_CHECKING:
    from greenroom.suite.adaptive import Adaptive
    from greenroom.suite.suspects import Suspects

_LOG = logging.getLogger("greenroom")
_MOST_KEPT = 10_000
"""Results of a run with more trials stay in its store, if it has one: each takes about 2 kB."""


class ActiveRun(Struct):
    """One evaluation in progress."""

    evalset: EvalSet
    settings: Settings
    recorder: Recorder
    early_end: EarlyEnd
    executor: Executor
    lanes: Lanes
    results: CollectedResults
    notes: list[str]
    """The notes of the report."""
    adaptive: "Adaptive | None" = None
    """Decides which trials are worth their price; without it, all are due."""
    suspects: "Suspects | None" = None
    """Decides which cases run again because they passed in a baseline; without it, none does."""
    shard: str = ""
    """Which part of the cases is run here, such as `2/4`; empty for all of them."""

    async def stream(self) -> AsyncGenerator[CaseResult]:
        """The results as they are done; they are not kept here.

        RunFaulted at their end if the run has faults: there is no report that could show them. Other notes
        are logged.
        """
        self.results.queue = queue = ResultQueue()
        whole = asyncio.ensure_future(self.report())
        results = queue.results(whole)
        async with aclosing(results):
            async for result in results:
                yield result
        report = whole.result()
        if report.notes:
            from greenroom.ledger.redaction import without_secrets  # loaded where it is used

            for note in report.notes:
                _LOG.warning(without_secrets(note))
        if report.faults:
            raise RunFaulted(report.faults)

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
            finished=not (self.lanes.unfinished or self.recorder.failure),
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
        self.lanes.unfinished = 0 if self.adaptive else due
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
                        await self.lanes.run_all(self._due(), due)
                    await self.recorder.flush()
                    if due and self.suspects is not None:
                        await self._confirm(self.suspects)
                if not due and self.suspects is not None:
                    # An earlier process ran every case, and was interrupted after that.
                    async with self._open(len(self._suspected(self.suspects))):
                        await self._confirm(self.suspects)
                if not reads_first:
                    self._read_earlier()
                await self.recorder.flush()
                await asyncio.gather(*self.lanes.hook_calls)
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

    @asynccontextmanager
    async def _open(self, due: int) -> AsyncGenerator[None]:
        """Keep the executor open while any trial is due, and the fence up: between two trials, and beside workers."""
        if not due or self.early_end.reason:
            yield
            return
        run = answerable()
        with nullcontext() if run is None else run.held():
            async with self.executor.for_trials(due):
                yield

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

    async def _confirm(self, suspects: "Suspects") -> None:
        """Run cases again that passed in the baseline and fail now, until it is clear."""
        if self._suspected(suspects):
            await self._run_rounds(suspects)

    def _suspected(self, suspects: "Suspects") -> list[Trial]:
        """The trials that confirm or clear a suspect; known once every case has run."""
        if self.lanes.unfinished:
            return []
        in_order = sorted(self.results.kept.items())
        suspects.begin([result for place, result in in_order if not suspects.is_again(place)])
        return suspects.due()

    async def _run_rounds(self, rounds: "Adaptive | Suspects") -> None:
        """Round after round, until nothing is due."""
        while not self.early_end.reason and (due := rounds.due()):
            fresh = [trial for trial in due if not self.recorder.is_done(trial)]
            self.lanes.unfinished += len(fresh)
            await self.lanes.run_all(fresh, len(fresh))
            await self.recorder.flush()
            for trial in due:
                rounds.add(self.results.kept[trial.position])
        if self.early_end.reason:
            self.lanes.unfinished += len(rounds.due())  # there is more to do if the run is resumed


def _part_of(ids: Iterable[str], shard: str) -> set[str]:
    """The cases of a shard, such as `2/4`. By name, since the order of cases may differ elsewhere."""
    part, parts = map(int, shard.split("/"))
    return {*sorted(ids)[part - 1 :: parts]}
