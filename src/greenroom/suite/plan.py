"""An evaluation before its first case: everything found, checked and put together."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.simulation.checks import check_fence, check_opaque
from greenroom.suite.adaptive import MAX_TRIALS, Adaptive
from greenroom.suite.budget import Budget
from greenroom.suite.cancel import Cancel
from greenroom.suite.criteria import all_metrics, as_config, check_metrics, equipped
from greenroom.suite.hooks import HOOKS, Hooks
from greenroom.suite.identity import plan_of
from greenroom.suite.measurement import METRIC_SECONDS, Measurement, reset_breakers
from greenroom.suite.options import Options, check
from greenroom.suite.recorder import open_recorder
from greenroom.suite.references import as_evalset, load_agent
from greenroom.suite.run import ActiveRun
from greenroom.suite.suspects import suspects_for
from greenroom.suite.trial import CONCURRENCY, Settings
from greenroom.suite.watch import fence_gaps
from greenroom.world.answers import AnswerCache

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig
    from greenroom.suite.workers.pool import Pool

Cases = EvalSet | Case | Iterable[Case] | str | Path


async def prepare(agent: Any, cases: Cases, options: Options) -> ActiveRun:
    """An evaluation that is ready to begin; whatever is wrong with it is raised now."""
    check(options)
    found = as_evalset(cases)
    config = as_config(options.get("config"))
    evalset = _with_trials(equipped(found, options.get("mocks", {}), config), options)
    settings = _settings(evalset, config, options)
    suspects = suspects_for(evalset, options, fail_fast=settings.fail_fast)
    for case in evalset:
        reset_breakers(case.metrics)
    reset_breakers(settings.measuring.metrics)
    backend = await _backend(agent, settings.allow_opaque)
    pool = _pool(agent, cases, found, evalset, backend, settings, options)
    # In worker processes it is their fence that counts, and they report on it themselves.
    notes = [] if pool is not None else _fence_notes(options.get("allow_unfenced", False))
    adaptive, cancel = _adaptive(evalset, options), options.get("cancel") or Cancel()
    plan = replace(
        plan_of(evalset, agent, backend, settings.measuring.metrics),
        adaptive=adaptive is not None,
        confirm=0 if suspects is None else suspects.most,
        against=None if suspects is None else suspects.baseline.id,
    )
    # Last, because from here on there is something to close.
    recorder = await open_recorder(options, plan, evalset, notes)
    settings.hooks.run_started(plan)
    return ActiveRun(backend, evalset, settings, recorder, cancel, notes, pool, adaptive, suspects)


def _with_trials(evalset: EvalSet, options: Options) -> EvalSet:
    trials = options.get("trials")
    if trials is None:
        return evalset
    return replace(evalset, trials=MAX_TRIALS if trials == "auto" else trials)


def _adaptive(evalset: EvalSet, options: Options) -> Adaptive | None:
    if options.get("trials") != "auto":
        return None
    return Adaptive(evalset.cases, options.get("min_pass_rate", 1.0))


def _settings(evalset: EvalSet, config: "EvalConfig | None", options: Options) -> Settings:
    hooks: dict[str, Any] = {name: options.get(name) for name in HOOKS}
    given = list(options.get("metrics", ()))
    check_metrics(given, evalset)
    return Settings(
        measuring=Measurement(
            metrics=all_metrics(given, evalset),
            seconds_per_metric=options.get("seconds_per_metric", METRIC_SECONDS),
            cache=AnswerCache.of(options.get("cache")),
        ),
        allow_tools=options.get("allow_tools", ()),
        allow_opaque=options.get("allow_opaque", False),
        concurrency=_concurrency(options),
        on_error=options.get("on_error", "collect"),
        fail_fast=options.get("fail_fast", False) or (config is not None and config.fail_fast),
        keep_ledgers=options.get("keep_ledgers", True),
        budget=_budget(options),
        hooks=Hooks(plugins=tuple(options.get("plugins", ())), **hooks),
    )


def _concurrency(options: Options) -> int:
    """As many as are asked for; in worker processes one each, for there they are likely to block."""
    workers: Any = options.get("workers")
    count: int | None = getattr(workers, "count", workers)  # what is neither is refused later
    return options.get("concurrency", CONCURRENCY if count is None else count)


def _budget(options: Options) -> Budget | None:
    given = options.get("budget")
    if given is None or isinstance(given, Budget):
        return given
    return Budget(given, options.get("unknown_prices", "refuse"))


async def _backend(agent: Any, allow_opaque: bool) -> Backend | None:
    """The backend of the run's agent; None leaves it to the cases."""
    if isinstance(agent, str):
        agent = await load_agent(agent)
    if agent is None:
        return None
    backend = backend_for(agent)
    check_opaque(backend, allow_opaque)
    return backend


def _pool(
    agent: Any,
    cases: Cases,
    found: EvalSet,
    evalset: EvalSet,
    backend: Backend | None,
    settings: Settings,
    options: Options,
) -> "Pool | None":
    """The worker processes; BadInput if they could not find what they need."""
    workers = options.get("workers")
    if workers is None:
        return None
    # Loaded only where it is used.
    from greenroom.suite.identity import identity_of
    from greenroom.suite.workers.pool import Pool
    from greenroom.suite.workers.references import WorkerInputs, Workers, briefing

    given = WorkerInputs(
        agent=agent,
        cases=cases,
        evalset=found,
        metrics=list(options.get("metrics", ())),
        config=options.get("config"),
        mocks=options.get("mocks", {}),
        allow_unfenced=options.get("allow_unfenced", False),
    )
    asked = workers if isinstance(workers, Workers) else Workers(count=workers)
    identity = identity_of(backend, evalset, settings.measuring.metrics)
    return Pool(asked.count, briefing(asked, given, settings), identity, backend, settings)


def _fence_notes(allowed: bool) -> list[str]:
    if not allowed:
        check_fence()
    return fence_gaps()
