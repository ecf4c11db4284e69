"""An evaluation before its first case: everything found, checked and put together."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.backends.answered import with_model
from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.models.model import Model
from greenroom.simulation.trial_context import check_fence, check_opaque
from greenroom.store.runs import Plan
from greenroom.suite.adaptive import MAX_TRIALS, Adaptive
from greenroom.suite.cancel import Cancel
from greenroom.suite.criteria import as_config, check_metrics, equipped, limited
from greenroom.suite.expected_names import check_expected
from greenroom.suite.identity import identity_of, plan_of
from greenroom.suite.measurement import Measurement, reset_breakers
from greenroom.suite.options import Options, Values, complete, usual_workers
from greenroom.suite.recorder import open_recorder
from greenroom.suite.references import load_agent
from greenroom.suite.run import ActiveRun
from greenroom.suite.sources import as_evalset
from greenroom.suite.suspects import Suspects, suspects_for
from greenroom.suite.trial import Settings
from greenroom.suite.watch import fence_gaps

if TYPE_CHECKING:
    from greenroom.suite.workers.pool import Pool

Cases = EvalSet | Case | Iterable[Case] | str | Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """An evaluation that is checked and put together, and has begun nothing."""

    options: Values
    evalset: EvalSet
    settings: Settings
    backend: Backend | None
    plan: Plan
    notes: list[str]
    pool: "Pool | None"
    adaptive: Adaptive | None
    suspects: Suspects | None


async def prepare(agent: Any, cases: Cases, options: Options) -> ActiveRun:
    """An evaluation that is ready to begin; whatever is wrong with it is raised now."""
    ready = await checked(agent, cases, options)
    # Last, because from here on there is something to close.
    recorder = await open_recorder(ready.options, ready.plan, ready.evalset, ready.notes)
    ready.settings.hooks.run_started(ready.plan)
    return ActiveRun(
        ready.backend,
        ready.evalset,
        ready.settings,
        recorder,
        ready.options["cancel"],
        ready.notes,
        ready.pool,
        ready.adaptive,
        ready.suspects,
    )


async def checked(agent: Any, cases: Cases, options: Options) -> Prepared:
    """The same before anything of it begins, also to know what it would take."""
    given: Values = complete(options)
    found, config = as_evalset(cases), as_config(given["config"])
    # Metrics may ask whether the run is to stop, so the token is there before them.
    given = {**limited(given, config), "cancel": given["cancel"] or Cancel()}
    evalset = equipped(found, given["mocks"], config)
    if (trials := given["trials"]) is not None:
        evalset = replace(evalset, trials=MAX_TRIALS if trials == "auto" else trials)
    check_metrics(given["metrics"], evalset)
    settings = Settings.of(given, Measurement.of(given, evalset))
    if config is not None and config.fail_fast:
        settings = replace(settings, fail_fast=True)
    suspects = suspects_for(evalset, given, fail_fast=settings.fail_fast)
    for case in evalset:
        reset_breakers(case.metrics)
    reset_breakers(settings.measuring.metrics)
    backend = await backend_of(agent, settings.allow_opaque, settings.model)
    pool = _pool(agent, cases, found, evalset, backend, settings, given)
    # In worker processes it is their fence that counts, and they report on it themselves.
    if pool is None and not given["allow_unfenced"]:
        check_fence()
    notes = [*(fence_gaps() if pool is None else []), *check_expected(backend, evalset)]
    if settings.tape is not None:
        notes += settings.tape.notes
    if given["check"] != "off":
        from greenroom.suite.contracts import (
            check_cases,
        )  # the checks are loaded when they are used

        notes += check_cases(backend, evalset, given["check"])
    adaptive = Adaptive(evalset.cases, given["min_pass_rate"]) if trials == "auto" else None
    plan = replace(
        plan_of(evalset, agent, backend, settings.measuring.metrics),
        adaptive=adaptive is not None,
        confirm=0 if suspects is None else suspects.most,
        against=None if suspects is None else suspects.baseline.id,
    )
    return Prepared(
        options=given,
        evalset=evalset,
        settings=settings,
        backend=backend,
        plan=plan,
        notes=notes,
        pool=pool,
        adaptive=adaptive,
        suspects=suspects,
    )


async def backend_of(agent: Any, allow_opaque: bool, model: Model | None = None) -> Backend | None:
    """The backend of an agent, or of the one that a reference names; None leaves it to the cases.

    `model` answers in place of its own.
    """
    if isinstance(agent, str):
        agent = await load_agent(agent)
    if agent is None:
        return None
    backend = backend_for(agent)
    check_opaque(backend, allow_opaque)
    return backend if model is None else with_model(backend, model)


def _pool(
    agent: Any,
    cases: Cases,
    found: EvalSet,
    evalset: EvalSet,
    backend: Backend | None,
    settings: Settings,
    options: Values,
) -> "Pool | None":
    """The worker processes; BadInput if they could not find what they need."""
    workers = options["workers"]
    if workers is None and options["fence"] == "process":
        return None
    # Loaded only where it is used.
    from greenroom.suite.workers.closed_in import closed_in
    from greenroom.suite.workers.pool import Pool
    from greenroom.suite.workers.references import Workers, briefing

    asked = workers if isinstance(workers, Workers) else Workers(count=workers or usual_workers())
    identity = identity_of(backend, evalset, settings.measuring.metrics)
    brief = briefing(asked, agent, cases, found, options)
    return Pool(asked.count, brief, identity, backend, settings, closed_in(options, evalset))
