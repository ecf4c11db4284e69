"""A run under way: what is due, what is done, and what made it stop."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import filterfalse, product
from time import perf_counter, time
from typing import TYPE_CHECKING

from greenroom.backends.backend import Backend
from greenroom.cases.evalset import EvalSet
from greenroom.errors import StoreFailed
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import UNSEEN, CaseResult, skipped
from greenroom.simulation.fence import strays
from greenroom.simulation.watchdog import cut_all
from greenroom.store.runs import Key
from greenroom.suite.adaptive import Adaptive
from greenroom.suite.blockers import overseen
from greenroom.suite.budget import Budget, cost_so_far
from greenroom.suite.cancel import Cancel
from greenroom.suite.fence_notes import refused
from greenroom.suite.hooks import Hooks
from greenroom.suite.recorder import Recorder
from greenroom.suite.result_queue import ResultQueue
from greenroom.suite.suspects import Suspects
from greenroom.suite.trial import Settings, run_trial
from greenroom.suite.trial_state import Trial, TrialState
from greenroom.world.threads import Expired

if TYPE_CHECKING:
    from greenroom.suite.workers.pool import Pool

_LEFT_OUT = "left out because of its error"


@dataclass(slots=True)
class ActiveRun:
    """One evaluation under way."""

    agent: Backend | None
    evalset: EvalSet
    settings: Settings
    recorder: Recorder
    cancel: Cancel
    notes: list[str] = field(default_factory=list[str])
    pool: "Pool | None" = None
    """Who plays in other processes; without one, this process plays."""
    adaptive: Adaptive | None = None
    """Who says which trials are worth their price; without one, all are."""
    suspects: Suspects | None = None
    """Who says which cases are played again because they passed in a baseline; without one, none is."""
    outlet: ResultQueue | None = None
    """Who takes the results one by one; without one, they are kept for the report."""
    done: dict[int, CaseResult] = field(default_factory=dict[int, CaseResult])
    stopped: str = ""
    undone: int = 0
    """How many trials that were due have no result of their own."""
    _stopped_others: bool = False
    _telling: list[asyncio.Future[None]] = field(default_factory=list[asyncio.Future[None]])
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)

    async def stream(self) -> AsyncGenerator[CaseResult]:
        """The results as they are done, which are not kept here."""
        self.outlet = ResultQueue()
        results = self.outlet.results(asyncio.ensure_future(self.report()))
        async with aclosing(results):
            async for result in results:
                yield result

    def _take(self, position: int, result: CaseResult) -> None:
        if self.outlet is not None:
            self.outlet.put(result)
        if self.outlet is None or self.adaptive is not None or self.suspects is not None:
            self.done[position] = result

    async def report(self) -> Report:
        """What came of it, with a note of whatever a reader should know."""
        at, begun, before = time(), perf_counter(), len(strays())
        try:
            await self.play()
        except BaseException:
            self.recorder.freeze()
            await self._put_away(begun, is_whole=False)
            raise
        places = sorted(self.done)
        again = [place for place in places if self.suspects and self.suspects.is_again(place)]
        results = [self.done[place] for place in places[: len(places) - len(again)]]
        confirmed = [self.done[place] for place in again]
        self.notes += [*_unseen(results), *refused(before), *self.settings.hooks.notes]
        if self.pool is not None:
            self.notes += [note for note in self.pool.notes if note not in self.notes]
        if self.settings.budget is not None:
            self.notes += self.settings.budget.notes
        is_whole = not (self.undone or self.recorder.failure)
        self.notes += await self._put_away(begun, is_whole=is_whole)
        report = replace(self._report(results, at, begun), confirmed=tuple(confirmed))
        report = self.settings.hooks.run_completed(report)
        if self.recorder.failure:
            raise StoreFailed(
                f"the run has stopped, because not everything could be written down: "
                f"{self.recorder.failure} Mend that, then go on with run {report.id!r}.",
                report,
            )
        return report

    def _report(self, results: Sequence[CaseResult], at: float, begun: float) -> Report:
        return Report(
            results,
            self.evalset.name or self.evalset.id,
            perf_counter() - begun,
            self.notes,
            id=self.recorder.run_id or new_report_id(),
            evalset_id=self.evalset.id,
            at=at,
            adaptive=self.adaptive is not None,
            against=None if self.suspects is None else self.suspects.baseline.id,
        )

    async def _put_away(self, begun: float, *, is_whole: bool) -> list[str]:
        return await self.recorder.close(
            finished=is_whole, notes=self.notes, seconds=perf_counter() - begun
        )

    async def play(self) -> None:
        """Every trial of every case that is due, at most `concurrency` under way at once."""
        plays = self._plays()
        due = list(filterfalse(self.recorder.is_done, plays))
        self.undone = 0 if self.adaptive else len(due)
        # Thousands of earlier results take their time; who does not depend on them need not wait.
        is_first = bool(self.adaptive or self.settings.budget or self.suspects)
        self.recorder.listen(self._cut)
        self.cancel.listen(self._cut)
        try:
            async with overseen(self.settings.hooks.note, self.cancel):
                if is_first:
                    self._take_earlier(plays)
                async with self._company(due):
                    await (self._by_rounds(self.adaptive) if self.adaptive else self._work_off(due))
                    if due and self.suspects is not None:
                        await self._confirm(self.suspects)
                if not due and self.suspects is not None:
                    await self._confirm_later(self.suspects)
                if not is_first:
                    self._take_earlier(plays)
                await self.recorder.flush()
                await asyncio.gather(*self._telling)
        finally:
            self.cancel.leave(self._cut)

    def _company(self, due: Sequence[Trial]) -> AbstractAsyncContextManager[object]:
        """The worker processes, while anything is due for them."""
        if self.pool is None or not due or self._stopped():
            return nullcontext()
        return self.pool.for_trials(len(due))

    def _plays(self) -> list[Trial]:
        pairs = product(self.evalset.cases, range(1, self.evalset.trials + 1))
        return [Trial(position, case, trial) for position, (case, trial) in enumerate(pairs)]

    def _take_earlier(self, plays: Sequence[Trial]) -> None:
        """Put the results of earlier processes in their places."""
        places: dict[Key, Trial] = {}
        if self.settings.budget is not None:
            self.settings.budget.go_on(*self.recorder.spent)
        for key, result in self.recorder.earlier():
            # Most runs have no earlier results, and need no places.
            places = places or {Key(play.case.id, play.trial): play for play in plays}
            is_again = self.suspects is not None and key.trial > self.evalset.trials
            play = self.suspects.place_of(key) if self.suspects and is_again else places[key]
            if self.settings.budget is not None:
                self.settings.budget.learn(result, cost_so_far(result))
            self._take(play.position, replace(result, asked=play.case))

    async def _by_rounds(self, adaptive: Adaptive) -> None:
        """Round after round, until it is decided."""
        while not self._stopped() and (due := adaptive.due()):
            fresh = [play for play in due if not self.recorder.is_done(play)]
            self.undone += len(fresh)
            await self._work_off(fresh)
            await self.recorder.flush()
            for play in due:
                adaptive.take(self.done[play.position])
        if self._stopped():
            self.undone += len(adaptive.due())  # there is more to do, should the run go on
        self.notes.append(str(adaptive.spending))

    async def _confirm(self, suspects: Suspects) -> None:
        """Play cases again that passed in the baseline and fail now, until it can be told."""
        await self.recorder.flush()
        if self.undone:
            return  # whoever is a suspect can only be told when every case was played
        suspects.begin([self.done[n] for n in sorted(self.done) if not suspects.is_again(n)])
        while not self._stopped() and (due := suspects.due()):
            fresh = [play for play in due if not self.recorder.is_done(play)]
            self.undone += len(fresh)
            await self._work_off(fresh)
            await self.recorder.flush()
            for play in due:
                suspects.take(self.done[play.position])
        if self._stopped():
            self.undone += len(suspects.due())  # there is more to do, should the run go on

    async def _confirm_later(self, suspects: Suspects) -> None:
        """The same for a run that was cut after every case had been played."""
        suspects.begin([self.done[n] for n in sorted(self.done) if not suspects.is_again(n)])
        async with self._company(suspects.due()):
            await self._confirm(suspects)

    async def _work_off(self, due: Sequence[Trial]) -> None:
        width = max(1, min(self.settings.concurrency, len(due)))
        waiting = iter(due)
        workers = [asyncio.ensure_future(self._work(waiting)) for _ in range(width)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)

    async def _work(self, waiting: Iterator[Trial]) -> None:
        """Play one trial after the other, and write down what came of each."""
        # What is done for every trial is done here: a coroutine for each step would cost more
        # than most of the steps.
        for play in waiting:
            if self.outlet is not None:
                await self.outlet.room()
            why = self._stopped()
            if not why and self.settings.budget is not None:
                why = await self._unaffordable(play, self.settings.budget)
            if why:
                self._leave_out(play, f"not run: {why}")
                continue
            take = self._begun(play)
            if take is None:
                continue
            try:
                result = await self._result(take)
            except BaseException as error:
                if not self._was_cut(error, play):
                    raise
                result = skipped(play.case, self._why_cut)
            waits = self._ended(take, result)
            if waits is not None:
                await waits
            if self.stopped and not self._why_cut:
                await self._stop_others()

    async def _stop_others(self) -> None:
        """Cut what is under way, once all that is finished is written down."""
        await self.recorder.flush()
        if not self._why_cut:
            self._stopped_others = True
            self._cut()

    @property
    def _why_cut(self) -> str:
        """Why trials under way were cut, if they were."""
        by_itself = self.stopped if self._stopped_others else ""
        return self.cancel.reason or self.recorder.failure or by_itself

    def _stopped(self) -> str:
        return self.stopped or self.cancel.reason or self.recorder.failure

    async def _unaffordable(self, play: Trial, budget: Budget) -> str:
        why = await budget.begin(self.settings.reservation(play))
        if not why and (why := self._stopped()):  # somebody stopped the run while this one waited
            budget.release(self.settings.reservation(play))
        return why

    def _begun(self, play: Trial) -> TrialState | None:
        take = self.recorder.take(play, self.agent)
        if self.recorder.failure:
            if self.settings.budget is not None:
                self.settings.budget.release(self.settings.reservation(play))
            self._leave_out(play, f"not run: {self.recorder.failure}")
            return None
        if "on_case_start" in self.settings.hooks.listeners:
            self.settings.hooks.case_started(play.case)
        if self.settings.budget is not None:
            self.settings.budget.carry(self.settings.reservation(play), take.paid)
        return take

    def _was_cut(self, error: BaseException, play: Trial) -> bool:
        """Whether a trial was cut by this run, not by whoever waits for it."""
        if self._why_cut and isinstance(error, asyncio.CancelledError | Expired):
            task = asyncio.current_task()
            if task is not None:
                task.uncancel()
                return True
        if self.settings.budget is not None:
            self.settings.budget.release(self.settings.reservation(play))
        return False

    def _ended(self, take: TrialState, result: CaseResult) -> Awaitable[None] | None:
        """Pay for a trial, and write down what came of it; what to wait for, if anything."""
        play = take.play
        if result.status != "passed":
            result = self._considered(result)
        if play.trial != 1:
            result = replace(result, trial=play.trial)
        if self.settings.budget is not None:
            self.settings.budget.settle(self.settings.reservation(play), result)
        if take.notes:
            self.notes += [f"case {play.case.id!r}: {note}" for note in take.notes]
        if self._why_cut:
            # What was cut is not what would have happened; it is played again when the run goes on.
            self._leave_out(play, f"not finished: {self._why_cut}")
            return None
        self.undone -= 1
        return self.recorder.keep(take, result, partial(self._complete, play.position))

    def _result(self, take: TrialState) -> Awaitable[CaseResult]:
        if self.pool is not None and not take.doubt:
            return self.pool.play(take)
        return run_trial(self.agent, take, self.settings)

    def _considered(self, result: CaseResult) -> CaseResult:
        """What counts of a trial that did not pass, which may stop the run."""
        if result.status == "error" and self.settings.on_error == "skip":
            return replace(result, status="skipped", notes=(*result.notes, _LEFT_OUT))
        if self._why_cut or self.stopped:
            return result
        if result.status == "error" and self.settings.on_error == "stop":
            self.stopped = f"case {result.case_id!r} had an error before"
        elif self.settings.fail_fast and result.status != "skipped":
            self.stopped = f"case {result.case_id!r} did not pass"
        return result

    def _leave_out(self, play: Trial, why: str) -> None:
        self._complete(play.position, _numbered(skipped(play.case, why), play))

    def _complete(self, position: int, result: CaseResult) -> None:
        self._take(position, result)
        hooks = self.settings.hooks
        if "on_case_complete" not in hooks.listeners:
            return
        if asyncio.current_task() is not None:
            hooks.case_completed(result)
        else:
            # A hook that hangs can only be cut in a task of its own.
            self._telling.append(asyncio.ensure_future(_told(hooks, result)))

    def _cut(self) -> None:
        """End what is under way; any thread, or a signal handler, may ask for it."""
        self.recorder.freeze()
        cut_all(self._loop, self.cancel)
        if self.pool is not None:
            self._loop.call_soon_threadsafe(self.pool.cut)


def _numbered(result: CaseResult, play: Trial) -> CaseResult:
    return result if play.trial == 1 else replace(result, trial=play.trial)


async def _told(hooks: Hooks, result: CaseResult) -> None:
    hooks.case_completed(result)


def _unseen(results: Sequence[CaseResult]) -> list[str]:
    """What was said of single cases because nobody saw all their calls, once for the report."""
    return sorted({note for result in results for note in result.notes if note in UNSEEN.values()})
