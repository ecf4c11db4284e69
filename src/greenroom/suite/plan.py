"""An evaluation before its first case: everything found, checked and assembled."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, structs

from greenroom.backends.answered import with_model
from greenroom.backends.backend import Backend
from greenroom.backends.registry import backend_for
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.errors import BadInput
from greenroom.models.model import Model
from greenroom.models.prices import own_prices
from greenroom.results.report import MAX_TRIALS, PART
from greenroom.simulation.fence import opening_for
from greenroom.simulation.outside_trials import check_apart, outside_trials
from greenroom.simulation.trial_context import check_fence, check_opaque, make_sample
from greenroom.store.configuration import place_of, withheld
from greenroom.store.runs import Plan
from greenroom.suite.cancel import Cancel
from greenroom.suite.checks.tool_names import check_tool_names
from greenroom.suite.checks.unmeasured_expectations import unheeded
from greenroom.suite.collected import CollectedResults
from greenroom.suite.early_end import EarlyEnd
from greenroom.suite.executor import Executor, InThisProcess
from greenroom.suite.inputs.criteria import as_config, check_metrics, equipped, with_config
from greenroom.suite.inputs.references import load_agent
from greenroom.suite.inputs.sources import as_evalset
from greenroom.suite.lanes import Lanes
from greenroom.suite.measurement import Measurement, reset_breakers
from greenroom.suite.options import Options, Values, complete
from greenroom.suite.run import ActiveRun
from greenroom.suite.settings import Settings
from greenroom.suite.storage.identity import around_digests, identity_of, plan_of
from greenroom.suite.storage.recorder import open_recorder
from greenroom.suite.watch import fence_gaps

if TYPE_CHECKING:
    from greenroom.suite.adaptive import Adaptive
    from greenroom.suite.suspects import Suspects
    from greenroom.suite.workers.workplace import Workplace

Cases = EvalSet | Case | Iterable[Case | EvalSet] | str | Path


class Prepared(Struct, frozen=True, kw_only=True):
    """An evaluation that is checked and assembled, and has not started."""

    options: Values
    evalset: EvalSet
    settings: Settings
    backend: Backend | None
    plan: Plan
    notes: list[str]
    executor: Executor
    adaptive: "Adaptive | None"
    suspects: "Suspects | None"


async def prepare(agent: object, cases: Cases, options: Options) -> ActiveRun:
    """Check an evaluation and open its place and its recorder, so that it can start; any problem is raised now."""
    ready = await assemble(agent, cases, options)
    await ready.executor.connect()
    # Last, because from here on there is something to close.
    recorder = await open_recorder(ready.options, ready.plan, ready.evalset, ready.notes)
    ready.settings.hooks.run_started(ready.plan)
    settings, executor, notes = ready.settings, ready.executor, ready.notes
    early_end, results = EarlyEnd(ready.options["cancel"], recorder, executor), CollectedResults()
    lanes = Lanes(ready.backend, settings, recorder, early_end, executor, results, notes)
    return ActiveRun(
        evalset=ready.evalset,
        settings=settings,
        recorder=recorder,
        early_end=early_end,
        executor=executor,
        lanes=lanes,
        results=results,
        notes=notes,
        adaptive=ready.adaptive,
        suspects=ready.suspects,
        shard=ready.options["shard"],
    )


async def assemble(agent: object, cases: Cases, options: Options) -> Prepared:
    """Check and assemble an evaluation without starting it: for `prepare`, forecasts and dry runs.

    What it calls of the author's code is fenced in. Only what the options name may connect, as a program may
    before it begins the run; it must not call a tool either.
    """
    with outside_trials() as scope:
        try:
            return await _assembled(agent, cases, options)
        finally:
            check_apart(scope, "before the first trial")


async def _assembled(agent: object, cases: Cases, options: Options) -> Prepared:
    given: Values = complete(options)
    with opening_for(processes=True):
        found, config = as_evalset(cases), as_config(given["config"])
        # Metrics may ask whether the run should stop, so the token is made before them.
        given = {**with_config(given, config), "cancel": given["cancel"] or Cancel()}
        evalset = equipped(found, given["mocks"], config)
        own_prices()  # a wrong price in the project's file is an error now, not of every trial
        if (trials := given["trials"]) is not None:
            evalset = replace(evalset, trials=MAX_TRIALS if trials == "auto" else trials)
        check_metrics(given["metrics"], evalset)
        settings = Settings.of(given, Measurement.of(given, evalset))
        baseline = suspects = None
        if given["baseline"] is not None:
            from greenroom.suite.suspects import (  # loaded where it is used
                baseline_of,
                suspects_for,
            )

            baseline = baseline_of(evalset, given)
            suspects = suspects_for(baseline, evalset, given)
    reset_breakers(settings.measuring.metrics)
    reset_breakers(metric for case in evalset for metric in case.metrics)
    for case in evalset:
        if case.agent is not None:
            make_sample(case.agent)
    backend = await load_backend(agent, settings.allow_opaque, settings.model)
    executor = _executor(agent, cases, found, evalset, backend, settings, given)
    notes = [*_fence_notes(executor, given), *_doubts(backend, evalset, settings, given)]
    if evalset.part:
        notes.append(f"{PART}{evalset.part}")
    adaptive = None
    if trials == "auto":
        from greenroom.suite.adaptive import Adaptive  # loaded where it is used

        adaptive = Adaptive(evalset.cases, given["min_pass_rate"])
    return Prepared(
        options=given,
        evalset=evalset,
        settings=settings,
        backend=backend,
        plan=structs.replace(
            plan_of(evalset, agent, backend, settings.measuring.metrics),
            model=given["model"] if isinstance(given["model"], str) else "",
            around=around_digests(settings),
            adaptive=adaptive is not None,
            confirm=0 if suspects is None else suspects.most,
            against=None if baseline is None else baseline.id,
            fence="" if given["fence"] == "process" else given["fence"],
            called=given["resume_or_new"] or "",
            shards=_shards(given, is_adaptive=adaptive is not None or suspects is not None),
        ),
        notes=notes,
        executor=executor,
        adaptive=adaptive,
        suspects=suspects,
    )


def _fence_notes(executor: Executor, options: Values) -> list[str]:
    """Notes on what the fence cannot hold in this process; FenceNotHeld unless that is allowed."""
    if not isinstance(executor, InThisProcess):
        return []  # worker processes have fences of their own, and report on them
    if not options["allow_unfenced"]:
        check_fence()
    return fence_gaps()


def _doubts(
    backend: Backend | None, evalset: EvalSet, settings: Settings, options: Values
) -> list[str]:
    """Notes for the report on cases, tape and agent; an outright mistake is raised."""
    stack = settings.middleware
    approved = () if stack is None else stack.approved
    metrics = settings.measuring.metrics
    notes = check_tool_names(backend, evalset, settings.allow_tools, approved, metrics)
    notes += unheeded(evalset, metrics)
    if settings.tape is not None:
        notes += settings.tape.notes
    if options["check"] != "off":
        from greenroom.suite.checks.contracts import check_cases  # loaded where it is used

        notes += check_cases(backend, evalset, options["check"])
    return notes


def _shards(options: Values, *, is_adaptive: bool) -> int:
    """How many processes share the run; BadInput if they could not."""
    shard: str = options["shard"]
    if not shard:
        return 0
    if not options["resume_or_new"]:
        raise BadInput(
            f"shard={shard!r} needs a name that all shards of the run have: resume_or_new='nightly'."
        )
    if is_adaptive:
        raise BadInput(
            f"shard={shard!r}: how many trials a case needs is found out by one process; give trials= a "
            f"number, and confirm=0."
        )
    return int(shard.partition("/")[2])


async def load_backend(
    agent: object, allow_opaque: bool, model: Model | None = None
) -> Backend | None:
    """The backend of an agent, or of the one that a reference names; None leaves it to the cases.

    `model` replaces its own model.
    """
    if isinstance(agent, str):
        agent = await load_agent(agent)
    if agent is None:
        return None
    make_sample(agent)
    backend = backend_for(agent)
    check_opaque(backend, allow_opaque)
    return backend if model is None else with_model(backend, model)


def _executor(
    agent: object,
    cases: Cases,
    found: EvalSet,
    evalset: EvalSet,
    backend: Backend | None,
    settings: Settings,
    options: Values,
) -> Executor:
    """The executor of the trials; BadInput if worker processes could not find what they need."""
    workers, on = options["workers"], options["on"]
    if workers is None and on is None and options["fence"] == "process":
        return InThisProcess(backend, settings)
    # Loaded only where it is used.
    from greenroom.suite.workers.pool import Pool
    from greenroom.suite.workers.references import Workers, briefing

    asked = workers if isinstance(workers, Workers) else Workers(count=workers)
    identity = identity_of(backend, evalset, settings.measuring.metrics)
    brief = briefing(asked, agent, cases, found, options)
    place = _workplace(on, options, evalset, settings, brief)
    return Pool(place, asked.count, brief, identity, backend, settings)


def _workplace(
    on: Any, options: Values, evalset: EvalSet, settings: Settings, briefing: object
) -> "Workplace":
    """Where worker processes are started; BadInput names what would not be found there."""
    store = place_of(options["store"])
    if on is None:
        from greenroom.suite.workers.kernel_fence import closed_in
        from greenroom.suite.workers.local import ThisMachine

        return ThisMachine(closed_in(options, evalset), withheld(store))
    if options["fence"] != "process":
        raise BadInput(
            "fence='kernel' is for worker processes of this machine. On a cluster, let the network of its "
            "nodes be closed to all but the providers of models, and use fence='process'."
        )
    from greenroom.suite.workers.ray.cluster import Cluster
    from greenroom.suite.workers.ray.settings import Ray

    cluster = Cluster(Ray.of(on), settings.rates, store)
    cluster.pack(briefing)
    return cluster
