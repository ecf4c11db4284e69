"""Many cases, played and measured: the story of an evaluation."""

import asyncio
import inspect
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter, time
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric, MetricLike
from greenroom.errors import BadInput, MetricsHung, Refusal
from greenroom.ledger.ledger import Ledger
from greenroom.metrics import as_metric
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import UNSEEN, CaseResult, broken, concluded, skipped
from greenroom.simulation.fence import (
    blind_spots,
    enclosed_executor,
    not_held,
    strays,
)
from greenroom.simulation.stage import check_fence, check_opaque, simulate
from greenroom.simulation.watchdog import sweep, vigil
from greenroom.suite.collecting import Collecting
from greenroom.suite.equipping import as_config, equipped
from greenroom.suite.measuring import METRIC_SECONDS, Measuring, forgive
from greenroom.suite.references import as_evalset, load_agent
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig

Cases = EvalSet | Case | Iterable[Case] | str | Path
OnError = Literal["collect", "stop", "skip"]
OnCase = Callable[[Case], None]
OnResult = Callable[[CaseResult], None]

CONCURRENCY = 4
_NO_MOCKS: Mapping[str, Any] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an evaluation is run."""

    measuring: Measuring
    allow_tools: Collection[Any] = ()
    allow_opaque: bool = False
    concurrency: int = CONCURRENCY
    on_error: OnError = "collect"
    fail_fast: bool = False
    keep_ledgers: bool = True
    on_case_start: OnCase | None = None
    on_case_complete: OnResult | None = None

    def __post_init__(self) -> None:
        if self.on_error not in get_args(OnError):
            known = ", ".join(get_args(OnError))
            raise BadInput(f"on_error={self.on_error!r} is none of {known}.")


async def evaluate(
    agent: Any,
    cases: Cases,
    *,
    trials: int | None = None,
    metrics: Iterable[MetricLike] = (),
    config: "EvalConfig | str | Path | None" = None,
    mocks: Mapping[str, Any] = _NO_MOCKS,
    allow_tools: Collection[Any] = (),
    concurrency: int = CONCURRENCY,
    on_error: OnError = "collect",
    fail_fast: bool = False,
    keep_ledgers: bool = True,
    seconds_per_metric: float = METRIC_SECONDS,
    cache: AnswerCache | str | Path | None = None,
    allow_unfenced: bool = False,
    allow_opaque: bool = False,
    on_case_start: OnCase | None = None,
    on_case_complete: OnResult | None = None,
) -> Report:
    """Rehearse `agent` on every case and report what came of it, in the order of the cases.

    Each case is played `trials` times, or as often as its set says. `metrics` and the criteria of
    `config` are added to each case's own, `mocks` answer where a case has none. `allow_tools` names
    tools whose real bodies may run, inside the fence. `on_error="stop"` ends the run at the first
    error, "skip" leaves broken cases out of the gate but shows them; `fail_fast` ends it at the first
    case that did not pass. `cache` is a folder where judges' answers are kept, not to be paid for
    twice. `allow_unfenced` goes on where the fence cannot hold, `allow_opaque` with an agent whose
    tools run where no gate can see them; the report says so.
    """
    config = as_config(config)
    evalset = equipped(as_evalset(cases), mocks, config)
    if trials is not None:
        evalset = replace(evalset, trials=trials)
    settings = Settings(
        measuring=Measuring(
            metrics=_beside([as_metric(given) for given in metrics], evalset),
            expectations=evalset.usual is None,
            seconds_per_metric=seconds_per_metric,
            cache=AnswerCache(cache) if isinstance(cache, str | Path) else cache,
        ),
        allow_tools=allow_tools,
        allow_opaque=allow_opaque,
        concurrency=concurrency,
        on_error=on_error,
        fail_fast=fail_fast or (config is not None and config.fail_fast),
        keep_ledgers=keep_ledgers,
        on_case_start=on_case_start,
        on_case_complete=on_case_complete,
    )
    for case in evalset:
        for given in case.metrics:
            as_metric(given)
    forgive(settings.measuring.metrics)
    backend = await _backend(agent, allow_opaque)
    return await _Run(backend, evalset, settings, notes=_fence_notes(allow_unfenced)).report()


async def _backend(agent: Any, allow_opaque: bool) -> Backend | None:
    """What plays the agent of the run; None leaves it to the cases."""
    if isinstance(agent, str):
        agent = await load_agent(agent)
    if agent is None:
        return None
    backend = backend_for(agent)
    check_opaque(backend, allow_opaque)
    return backend


def _beside(given: list[Metric], evalset: EvalSet) -> list[Metric]:
    """The run's metrics and those of the set; on equal names the run's win."""
    names = {metric.name for metric in given}
    own = map(as_metric, (*evalset.metrics, *(evalset.usual or ())))
    return [*given, *(metric for metric in own if metric.name not in names)]


def _unseen(results: Sequence[CaseResult]) -> list[str]:
    """What was said of single cases because nobody saw all their calls, once for the report."""
    return sorted({note for result in results for note in result.notes if note in UNSEEN.values()})


def _fence_notes(allowed: bool) -> list[str]:
    if not allowed:
        check_fence()
    reasons = not_held(asyncio.get_running_loop())
    notes = [f"the fence was not held: {reason}" for reason in reasons]
    return [*notes, *(f"the fence cannot see connections of {name}" for name in blind_spots())]


@dataclass(slots=True)
class _Run:
    """One evaluation under way: what is due, and what is done."""

    agent: Any
    evalset: EvalSet
    settings: Settings
    done: dict[int, CaseResult] = field(default_factory=dict[int, CaseResult])
    stopped: str = ""
    notes: list[str] = field(default_factory=list[str])

    async def report(self) -> Report:
        """What came of it, with a note of whatever a reader should know."""
        at, begun, before = time(), perf_counter(), len(strays())
        with Collecting(), vigil():
            results = await self.results()
        refused = [f"the fence refused a thread outside any case: {s}" for s in strays()[before:]]
        return Report(
            results,
            self.evalset.name or self.evalset.id,
            perf_counter() - begun,
            [*self.notes, *_unseen(results), *refused],
            id=new_report_id(),
            evalset_id=self.evalset.id,
            at=at,
        )

    async def results(self) -> list[CaseResult]:
        """Every trial of every case, at most `concurrency` under way at once."""
        trials = range(1, self.evalset.trials + 1)
        plays = [(case, trial) for case in self.evalset.cases for trial in trials]
        due = iter(enumerate(plays))
        width = max(1, min(self.settings.concurrency, len(plays)))
        workers = [asyncio.ensure_future(self._work(due)) for _ in range(width)]
        try:
            await asyncio.gather(*workers)
        finally:
            for worker in workers:
                worker.cancel()
            await asyncio.gather(*workers, return_exceptions=True)
        return [self.done[index] for index in range(len(plays))]

    async def _work(self, due: Iterable[tuple[int, tuple[Case, int]]]) -> None:
        for index, (case, trial) in due:
            if self.stopped:
                result = skipped(case, self.stopped)
            else:
                result = await self._case(case)
                self._consider(result)
            self.done[index] = result if trial == 1 else replace(result, trial=trial)
            self._tell(self.settings.on_case_complete, self.done[index])

    async def _case(self, case: Case) -> CaseResult:
        self._tell(self.settings.on_case_start, case)
        result = await play_case(self.agent, case, self.settings)
        if result.status == "error" and self.settings.on_error == "skip":
            return replace(result, status="skipped", notes=("left out because of its error",))
        return result

    def _tell(self, hook: Callable[[Any], None] | None, what: Case | CaseResult) -> None:
        """Call a hook; one that raises is reported and harms nothing."""
        if hook is None:
            return
        name = getattr(hook, "__name__", hook)
        try:
            returned = cast(object, hook(what))
        except Exception as error:  # noqa: BLE001 - somebody else's code, kept from the results
            self._note(f"the hook {name!r} raised {error!r}")
        else:
            if inspect.iscoroutine(returned):
                returned.close()
                self._note(f"the hook {name!r} is async and was not awaited; make it a function")

    def _note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    def _consider(self, result: CaseResult) -> None:
        if result.status == "error" and self.settings.on_error == "stop":
            self.stopped = f"not run: case {result.case_id!r} had an error before"
        elif self.settings.fail_fast and not result.passed and result.status != "skipped":
            self.stopped = f"not run: case {result.case_id!r} did not pass"


async def play_case(agent: Any, case: Case, settings: Settings) -> CaseResult:
    """Simulate one case and measure it; whatever breaks becomes its error."""
    try:
        ledger = await simulate(
            case,
            agent,
            allow_tools=settings.allow_tools,
            allow_unfenced=True,
            allow_opaque=settings.allow_opaque,
        )
    except Exception as error:  # noqa: BLE001 - the sanctioned place: a case that cannot be played
        return broken(case, error)
    judging = Ledger()
    try:
        scores = await settings.measuring.outcomes(case, ledger, judging)
    except (Refusal, MetricsHung, BadInput) as error:
        return replace(broken(case, error), ledger=ledger if settings.keep_ledgers else None)
    return concluded(case, ledger, scores, judging=judging, keep_ledger=settings.keep_ledgers)


def rehearse(agent: Any, cases: Cases, **options: Any) -> Report:
    """`evaluate` for code that is not async; takes the same options."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return _run(agent, cases, options)
    return _in_thread(lambda: _run(agent, cases, options))


def _run(agent: Any, cases: Cases, options: dict[str, Any]) -> Report:
    async def main() -> Report:
        asyncio.get_running_loop().set_default_executor(enclosed_executor())
        try:
            return await evaluate(agent, cases, **options)
        finally:
            # What swallows its cancellation would keep the loop, and the caller, waiting forever.
            await sweep(asyncio.all_tasks() - {asyncio.current_task()})  # pyright: ignore[reportArgumentType]

    return asyncio.run(main())


def _in_thread(work: Callable[[], Report]) -> Report:
    """Run `work` beside a loop that is already running in this thread, as in a notebook."""
    box: list[Report | BaseException] = []

    def target() -> None:
        try:
            box.append(work())
        except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
            box.append(error)

    thread = threading.Thread(target=target, name="greenroom-rehearse")
    thread.start()
    thread.join()
    if isinstance(box[0], BaseException):
        raise box[0]
    return box[0]
