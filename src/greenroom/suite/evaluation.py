"""Many cases, played and measured: the story of an evaluation."""

import asyncio
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric, MetricLike
from greenroom.metrics import as_metric
from greenroom.results.report import Report
from greenroom.simulation.fence import blind_spots, enclosed_executor, not_held
from greenroom.simulation.stage import check_fence, check_opaque
from greenroom.simulation.watchdog import sweep
from greenroom.store.store import Store
from greenroom.suite.budget import Budget
from greenroom.suite.cancelling import Cancel
from greenroom.suite.equipping import as_config, equipped
from greenroom.suite.hooks import Hooks, OnCase, OnEvent, OnMetric, OnResult
from greenroom.suite.identity import plan_of
from greenroom.suite.measuring import METRIC_SECONDS, Measuring, forgive
from greenroom.suite.playing import CONCURRENCY, OnError, Settings
from greenroom.suite.recording import recording
from greenroom.suite.references import as_evalset, load_agent
from greenroom.suite.running import Running
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig

Cases = EvalSet | Case | Iterable[Case] | str | Path

_NO_MOCKS: Mapping[str, Any] = {}


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
    store: Store | str | Path | bool | None = None,
    resume: str | bool = False,
    accept_changes: bool = False,
    budget: float | Budget | None = None,
    cancel: Cancel | None = None,
    on_case_start: OnCase | None = None,
    on_case_complete: OnResult | None = None,
    on_metric_complete: OnMetric | None = None,
    on_event: OnEvent | None = None,
) -> Report:
    """Rehearse `agent` on every case and report what came of it, in the order of the cases.

    Each case is played `trials` times, or as often as its set says. `metrics` and the criteria of
    `config` are added to each case's own, `mocks` answer where a case has none. `allow_tools` names
    tools whose real bodies may run, inside the fence. `on_error="stop"` ends the run at the first
    error, "skip" leaves broken cases out of the gate but shows them; `fail_fast` ends it at the first
    case that did not pass. `cache` is a folder where judges' answers are kept, not to be paid for
    twice. `allow_unfenced` goes on where the fence cannot hold, `allow_opaque` with an agent whose
    tools run where no gate can see them; the report says so.

    Each finished trial is written to `store` (a folder; without one `$GREENROOM_STORE`, else
    `.greenroom`; False writes nothing). `resume` goes on with the run of that id, True with the
    latest unfinished one of this set: what is finished is not played again. `budget` is what the run
    may cost in USD: no case is begun that could take more than is left. `cancel` is a token that
    stops it from outside.
    """
    config = as_config(config)
    evalset = equipped(as_evalset(cases), mocks, config)
    if trials is not None:
        evalset = replace(evalset, trials=trials)
    settings = Settings(
        measuring=Measuring(
            metrics=_beside([as_metric(given) for given in metrics], evalset),
            seconds_per_metric=seconds_per_metric,
            cache=AnswerCache(cache) if isinstance(cache, str | Path) else cache,
        ),
        allow_tools=allow_tools,
        allow_opaque=allow_opaque,
        concurrency=concurrency,
        on_error=on_error,
        fail_fast=fail_fast or (config is not None and config.fail_fast),
        keep_ledgers=keep_ledgers,
        budget=Budget(budget) if isinstance(budget, int | float) else budget,
        hooks=Hooks(
            on_case_start=on_case_start,
            on_case_complete=on_case_complete,
            on_metric_complete=on_metric_complete,
            on_event=on_event,
        ),
    )
    _make_ready(evalset, settings)
    backend = await _backend(agent, allow_opaque)
    notes = _fence_notes(allow_unfenced)
    plan = plan_of(evalset, agent, backend, settings.measuring.metrics)
    recorder = await recording(store, plan, evalset, resume, accept_changes, notes)
    running = Running(backend, evalset, settings, recorder, cancel or Cancel(), notes)
    return await running.report()


def _make_ready(evalset: EvalSet, settings: Settings) -> None:
    """Find what is wrong with the metrics before the first case, and forgive what was before."""
    for case in evalset:
        for given in case.metrics:
            as_metric(given)
        forgive(case.metrics)
    forgive(settings.measuring.metrics)


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


def _fence_notes(allowed: bool) -> list[str]:
    if not allowed:
        check_fence()
    reasons = not_held(asyncio.get_running_loop())
    notes = [f"the fence was not held: {reason}" for reason in reasons]
    return [*notes, *(f"the fence cannot see connections of {name}" for name in blind_spots())]


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
