"""A set through google-adk's own evaluation: its loop and its metrics, on a copy behind our gate.

Only code that uses it imports this file. It needs `google-adk[eval]`, of version 2 or newer.
"""

import asyncio
import inspect
import json
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, time
from typing import Any

from google.adk.apps import App
from google.adk.artifacts import BaseArtifactService
from google.adk.evaluation.base_eval_service import (
    EvaluateConfig,
    EvaluateRequest,
    InferenceConfig,
    InferenceRequest,
    InferenceResult,
    InferenceStatus,
)
from google.adk.evaluation.eval_config import EvalConfig, get_eval_metrics_from_config
from google.adk.evaluation.eval_metrics import EvalMetric, EvalMetricResult, EvalStatus
from google.adk.sessions import BaseSessionService
from msgspec import structs

from greenroom.backends.adk import AdkBackend
from greenroom.backends.adk.served import APP, ServedBackend
from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import Outcome, Unmeasured
from greenroom.errors import (
    AgentFailed,
    BadFile,
    BadInput,
    GreenroomError,
    MetricRefused,
    MetricsHung,
    MissingExtra,
)
from greenroom.ledger.functions import Anything
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.text_files import text_of
from greenroom.metrics import as_metric
from greenroom.models.model import Model
from greenroom.results.endings import breakage, unscored
from greenroom.results.report import Report, new_report_id
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken
from greenroom.simulation.trial_context import check_fence
from greenroom.suite.adk.sessions import Named, Place, TrialFiles, open_to
from greenroom.suite.adk.stand_ins import (
    CLASH,
    SET,
    Listener,
    OneCase,
    OurUser,
    check_judged,
    ours_beside,
    outcome_of,
    their_case,
)
from greenroom.suite.evaluation import Cases
from greenroom.suite.inputs.criteria import equipped
from greenroom.suite.inputs.references import load_agent
from greenroom.suite.inputs.sources import as_evalset
from greenroom.suite.measurement import Measurement, in_time, only_looking
from greenroom.suite.options import CONCURRENCY, METRIC_SECONDS, Options, complete
from greenroom.suite.settings import Settings
from greenroom.suite.trial import run_trial
from greenroom.suite.trial_state import OnEvent, Trial, TrialState
from greenroom.suite.watch import watched
from greenroom.world.world import World

Criteria = Mapping[str, Any] | EvalConfig | str | Path
"""`{"tool_trajectory_avg_score": 1.0}`, google-adk's own `EvalConfig`, or its `test_config.json`."""

_USUAL = {"tool_trajectory_avg_score": 1.0, "response_match_score": 0.8}
_NO_MOCKS: Mapping[str, Any] = {}


async def evaluate_in_adk(
    agent: Any,
    cases: Cases,
    criteria: Criteria = _USUAL,
    *,
    trials: int | None = None,
    metrics: Iterable[MetricLike] = (),
    mocks: Mapping[str, Anything] = _NO_MOCKS,
    model: Model | str | None = None,
    allow_tools: Collection[object] = (),
    judge_hosts: Collection[str] = (),
    concurrency: int = CONCURRENCY,
    seconds_per_metric: float = METRIC_SECONDS,
    session_service: BaseSessionService | None = None,
    artifact_service: BaseArtifactService | None = None,
    service_hosts: Collection[str] = (),
) -> Report:
    """Rehearse an agent of google-adk in its own `LocalEvalService`, and judge by its `criteria`.

    Mocks, `model`, gate and fence hold as they do in `evaluate`. What a case expects is judged by google-adk
    as far as the criteria look at it; the rest, the metrics of the case, and `metrics` are measured
    next to that. A metric of google-adk that could not run leaves the case unmeasured, where
    google-adk itself would let it pass. Its judges reach their models only at `judge_hosts`.

    A `session_service` gets a copy of every trial's session, event by event, under the app's name
    (the set's, for a bare agent) and an id of the trial's own, which is among the result's notes.
    The run uses its own session: a copy that fails is a note and changes no verdict. In an
    `artifact_service` each trial keeps its files, under the same names; if it breaks, so does the
    trial. Both run inside the fence, and reach only `service_hosts`.
    """
    given: Options = {
        "trials": trials,
        "metrics": metrics,
        "mocks": mocks,
        "model": model,
        "allow_tools": allow_tools,
        "concurrency": concurrency,
        "seconds_per_metric": seconds_per_metric,
    }
    options = complete(given)
    check_fence()
    named = Named(session_service, artifact_service, service_hosts)
    if isinstance(agent, str):
        agent = await load_agent(agent)
    if agent is not None:
        AdkBackend(agent)  # refuses what the tool gate cannot see, before anything runs
    config = _config(criteria)
    evalset = equipped(as_evalset(cases), mocks, None)
    if trials is not None:
        evalset = replace(evalset, trials=trials)
    ours = _ours((*options["metrics"], *evalset.metrics), config)
    settings = Settings.of(
        options, Measurement(metrics=ours, seconds_per_metric=seconds_per_metric)
    )
    name = evalset.name or evalset.id
    run = _Run(agent, _Theirs.opened(config, judge_hosts), settings, named, name)
    at, begun = time(), perf_counter()
    notes: list[str] = []
    async with watched(notes.append):
        results = await run.results(evalset)
    took = perf_counter() - begun
    return Report(results, name, took, notes, id=new_report_id(), evalset_id=evalset.id, at=at)


def _ours(given: Iterable[MetricLike], config: EvalConfig) -> list[Metric]:
    """The metrics that Greenroom measures; BadInput if one has the name of a criterion and would hide it."""
    metrics = [as_metric(one) for one in given]
    for metric in metrics:
        if metric.name in config.criteria:
            raise BadInput(f"{metric.name!r} {CLASH}")
    return metrics


@dataclass(frozen=True, slots=True)
class _Run:
    """The parts of one evaluation that all its cases share."""

    agent: Any
    theirs: "_Theirs"
    settings: Settings
    named: Named
    name: str

    async def results(self, evalset: EvalSet) -> list[CaseResult]:
        """Every trial of every case, at most `concurrency` at once."""
        gate = asyncio.Semaphore(self.settings.concurrency or CONCURRENCY)
        trials = range(1, evalset.trials + 1)
        tasks = [
            asyncio.ensure_future(self.run_trial(case, trial, gate))
            for case in evalset
            for trial in trials
        ]
        try:
            return await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()

    async def run_trial(self, case: Case, trial: int, gate: asyncio.Semaphore) -> CaseResult:
        """One trial of a case: run by the service, judged by the service and by us."""
        async with gate:
            try:
                check_judged(case, self.theirs.criteria)
                metrics = self.settings.measuring.metrics
                ours = ours_beside(case, metrics, self.theirs.criteria)
                place = self._place(case, trial)
                copy = self.named.copy_to(place)
                service = _Service(self.theirs, case, self.named, place)
                served = ServedBackend(case.agent or self.agent, service.run, copy)
                served.way_out = self.named.way_out
            except (GreenroomError, ValueError) as error:
                return replace(broken(case, error, metrics=self.theirs.criteria), trial=trial)
            judging = _Judging(
                metrics=ours,
                seconds_per_metric=self.settings.measuring.seconds_per_metric,
                service=service,
                served=served,
            )
            settings = structs.replace(self.settings, measuring=judging)
            take = TrialState(Trial(0, replace(case, agent=None), trial))
            async with copy or nullcontext():
                try:
                    result = await run_trial(served, take, settings)
                finally:
                    await served.close()
        copied = () if copy is None else copy.notes
        return replace(result, trial=trial, notes=(*result.notes, *service.notes, *copied))

    def _place(self, case: Case, trial: int) -> Place:
        agent = case.agent or self.agent
        app = agent.name if isinstance(agent, App) else self.name
        return Place.of_trial(app, case.id, trial)


@dataclass(frozen=True, slots=True)
class _Theirs:
    """google-adk's service and metrics, opened once."""

    service: Any
    registry: Any
    metrics: list[EvalMetric]
    criteria: Mapping[str, Any]
    hosts: Collection[str]

    @classmethod
    def opened(cls, config: EvalConfig, hosts: Collection[str]) -> "_Theirs":
        """The service for these criteria; MissingExtra if it cannot be imported."""
        try:
            from google.adk.evaluation import local_eval_service, metric_evaluator_registry
        except ImportError as error:
            raise MissingExtra(
                f"google-adk's evaluation cannot be opened: {error}. Install it with "
                f"pip install 'google-adk[eval]'."
            ) from error
        service = local_eval_service.LocalEvalService
        if "app" not in inspect.signature(service).parameters:
            raise MissingExtra(
                "this google-adk evaluates bare agents only, without the plug-in that watches them. "
                "Install version 2: pip install 'google-adk[eval]>=2.13'."
            )
        registry = metric_evaluator_registry.DEFAULT_METRIC_EVALUATOR_REGISTRY.fork()
        metric_evaluator_registry.register_custom_metrics_from_config(config, registry)
        metrics = get_eval_metrics_from_config(config)
        return cls(service, registry, metrics, config.criteria, hosts)


def _config(criteria: Criteria) -> EvalConfig:
    if isinstance(criteria, EvalConfig):
        return criteria
    try:
        if isinstance(criteria, str | Path):
            return EvalConfig.model_validate(json.loads(text_of(Path(criteria))))
        numbers = {n: float(one) if isinstance(one, int) else one for n, one in criteria.items()}
        return EvalConfig.model_validate({"criteria": numbers})
    except (BadFile, ValueError) as error:
        raise BadInput(
            f"{criteria!r} names no criteria of google-adk: {error}. Give names with thresholds, as "
            f"{_USUAL!r}, or the path of a test_config.json."
        ) from error


class _Service:
    """google-adk's service for one run of one case."""

    def __init__(self, theirs: _Theirs, case: Case, named: Named, place: Place) -> None:
        self.notes: list[str] = []
        self.theirs = theirs
        self._case = case
        self._named = named
        self._place = place
        self._shelf = OneCase(their_case(case))
        self._listener = Listener(theirs.registry)
        self._made: Any = None

    async def run(self, served: ServedBackend[InferenceResult], app: App) -> InferenceResult:
        """Let the service run the agent through the whole conversation."""
        self._made = self.theirs.service(
            root_agent=app.root_agent,
            eval_sets_manager=self._shelf,
            metric_evaluator_registry=self._listener,
            session_service=served.sessions,
            artifact_service=self._files(served),
            user_simulator_provider=OurUser(served.prompter),
            app=app,
        )
        # Never live: live calls bypass every gate.
        config = InferenceConfig(parallelism=1, use_live=False)
        asked = InferenceRequest(app_name=APP, eval_set_id=SET, inference_config=config)
        (result,) = [one async for one in self._made.perform_inference(asked)]
        if result.status is InferenceStatus.FAILURE:
            raise AgentFailed(f"google-adk could not run the agent: {result.error_message}")
        return result

    def _files(self, served: ServedBackend[InferenceResult]) -> TrialFiles | None:
        named = self._named
        if named.artifacts is None:
            return None
        return TrialFiles(named.artifacts, self._place, named.hosts, served.broke)

    async def judge(self, played: InferenceResult | None) -> dict[str, Outcome]:
        """The service's outcome of each metric; none is left out."""
        if played is None:
            return self.all_unmeasured("the trial was stopped before its end")
        if self._case.user is not None:
            self._shelf.fit(len(played.inferences or ()), self._case)
        config = EvaluateConfig(eval_metrics=self.theirs.metrics, parallelism=1)
        asked = EvaluateRequest(inference_results=[played], evaluate_config=config)
        with only_looking(self._case.id), open_to(self.theirs.hosts):
            (result,) = [one async for one in self._made.evaluate(asked)]
        return self._outcomes(result.overall_eval_metric_results)

    def _outcomes(self, results: Iterable[EvalMetricResult]) -> dict[str, Outcome]:
        found: dict[str, Outcome] = self.all_unmeasured("google-adk left it out")
        for one in results:
            if one.eval_status is EvalStatus.INFORMATIONAL:
                if one.score is not None:
                    self.notes.append(f"google-adk counted {one.metric_name} = {one.score:g}")
            elif one.metric_name in found:
                heard = self._listener.heard.get(one.metric_name, "")
                found[one.metric_name] = outcome_of(one, heard)
        return found

    def all_unmeasured(self, why: str) -> dict[str, Outcome]:
        """Every metric that was asked for, broken for this reason."""
        return {name: Unmeasured(why) for name in self.theirs.criteria}


class _Judging(Measurement, frozen=True, kw_only=True):
    """Our metrics and google-adk's, for one run."""

    service: _Service
    served: ServedBackend[InferenceResult]

    def names(self, case: Case) -> list[str]:
        """The names of all metrics, ours and google-adk's."""
        return [*Measurement.names(self, _without_own(case)), *self.service.theirs.criteria]

    async def outcomes(
        self,
        case: Case,
        ledger: Ledger,
        judging: Ledger,
        on_event: OnEvent | None = None,
        trial: int = 1,
        recorded: Callable[[World], World] | None = None,
        known: Mapping[str, Outcome] | None = None,
    ) -> dict[str, Outcome]:
        """Every metric's outcome; no two have the same name."""
        case = _without_own(case)
        own = await Measurement.outcomes(
            self, case, ledger, judging, on_event, trial, recorded, known
        )
        if (broke := breakage(ledger)) is not None:
            return own | unscored(self.service.theirs.criteria, broke.unmeasured)
        return own | await self._by_theirs()

    async def _by_theirs(self) -> dict[str, Outcome]:
        seconds = self.seconds_per_metric * (1 + len(self.service.theirs.criteria))

        async def judged() -> dict[str, Outcome]:
            return await self.service.judge(await self.served.over())

        try:
            return await in_time(judged, seconds, "google-adk's evaluation")
        except MetricsHung as error:
            return self.service.all_unmeasured(str(error))
        except MetricRefused as error:
            return self.service.all_unmeasured(
                f"{error} The hosts of judges' models are named by judge_hosts=[...]."
            )
        except Exception as error:  # noqa: BLE001 - their service may raise anything
            return self.service.all_unmeasured(f"google-adk could not judge the run: {error!r}")


def _without_own(case: Case) -> Case:
    """The case without its own metrics, which are among those of the run already."""
    return replace(case, metrics=(), implied=False)
