"""One trial of one case: simulated, then measured; whatever breaks becomes its error."""

from dataclasses import replace
from functools import partial

from greenroom.errors import BadInput, InDoubt, MetricsHung, Refusal
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken, concluded, unmeasured
from greenroom.simulation.conversation import simulate
from greenroom.store.failpoints import failpoint
from greenroom.suite.chance import would_fail_again
from greenroom.suite.settings import Settings
from greenroom.suite.trial_state import OnEvent, TrialState
from greenroom.world.call_context import stored_as


async def run_trial(agent: object, state: TrialState, settings: Settings) -> CaseResult:
    """Simulate one case and measure it."""
    case = state.trial.case
    with stored_as(state.run_id):
        try:
            ledger = await _simulated(agent, state, settings)
        except Exception as error:  # noqa: BLE001 - the one place where a case that cannot run is caught
            result = broken(case, error, metrics=settings.measuring.names(case))
        else:
            failpoint("trial.played")
            result = await _measured(agent, state, settings, ledger)
    return settings.hooks.metrics_completed(case, result)


async def _simulated(agent: object, state: TrialState, settings: Settings) -> Ledger:
    """The conversation of a trial; one that left the recorded path begins again from there."""
    case, number, recorded = state.trial.case, state.trial.number, state.recorded
    if case.seed is not None and number > 1:
        case = replace(case, seed=case.seed + number - 1)
    if case.now is None and state.now is not None:
        case = replace(case, now=state.now)
    while True:
        if state.doubt:
            raise InDoubt(state.doubt)
        ledger = await simulate(
            case,
            agent,
            ledger=state.ledger,
            allow_tools=settings.allow_tools,
            allow_unfenced=True,
            allow_opaque=settings.allow_opaque,
            on_event=observer(state.on_event, state, settings),
            before_live=state.before_live,
            trial=number,
            stream=settings.measuring.listens(case),
            resources=settings.resources,
            omit_questions=settings.omit_questions,
            middleware=settings.middleware or (),
            max_seconds=settings.seconds_per_case,
            recording=recorded.answers(state.ledger, state.trial.case) if recorded else None,
            model=settings.model_for(case),
        )
        if not state.go_back(ledger):
            return ledger


async def _measured(
    agent: object, state: TrialState, settings: Settings, ledger: Ledger
) -> CaseResult:
    """The verdict on a finished conversation."""
    case, measuring, keeps = state.trial.case, settings.measuring, settings.keep_ledgers
    try:
        on_event = observer(state.on_judging, state, settings)
        judges = None if state.recorded is None else state.recorded.judges
        number = state.trial.number
        scores = await measuring.outcomes(
            case, ledger, state.judging, on_event, number, judges, state.scores
        )
    except (Refusal, MetricsHung, BadInput) as error:
        names = measuring.names(case)
        return unmeasured(case, ledger, error, names, judging=state.judging, keep_ledger=keeps)
    result = concluded(case, ledger, scores, judging=state.judging, keep_ledger=keeps)
    is_fixed = result.status == "failed" and would_fail_again(result, agent, case, ledger, settings)
    return replace(result, fixed=True) if is_fixed else result


def observer(record: OnEvent | None, state: TrialState, settings: Settings) -> OnEvent | None:
    """Passes the events of a trial on to recorder, budget and hooks; None if there are none."""
    observers = [] if record is None else [record]
    if settings.budget is not None:
        observers.append(partial(settings.budget.add_event, settings.reservation(state.trial)))
    if "on_event" in settings.hooks.listeners:
        observers.append(partial(settings.hooks.happened, state.trial.case))
    if len(observers) < 2:
        return observers[0] if observers else None

    def observe(event: Event) -> None:
        for each in observers:
            each(event)

    return observe
