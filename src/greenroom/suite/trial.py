"""One trial of one case: simulated, then measured; whatever breaks becomes its error."""

from collections.abc import Callable, Collection, Hashable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, get_args

from greenroom.errors import BadInput, InDoubt, MetricsHung, Refusal
from greenroom.ledger.choices import choice_problem
from greenroom.ledger.events import Event
from greenroom.ledger.records import fill
from greenroom.results.result import CaseResult, broken, concluded, unmeasured
from greenroom.simulation.conversation import simulate
from greenroom.store.failpoints import failpoint
from greenroom.suite.budget import Budget
from greenroom.suite.chance import would_fail_again
from greenroom.suite.hooks import Hooks
from greenroom.suite.measurement import Measurement
from greenroom.suite.resume import went_back
from greenroom.suite.trial_state import Trial, TrialState

OnError = Literal["collect", "stop", "skip"]
CONCURRENCY = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How an evaluation is run."""

    measuring: Measurement
    allow_tools: Collection[Any] = ()
    allow_opaque: bool = False
    concurrency: int = CONCURRENCY
    on_error: OnError = "collect"
    fail_fast: bool = False
    keep_ledgers: bool = True
    budget: Budget | None = None
    hooks: Hooks = field(default_factory=Hooks)
    is_heard: bool = field(init=False)
    """Whether anybody but the recorder hears of the events."""

    def reservation(self, play: Trial) -> Hashable:
        """Under which name the budget keeps what is set aside for a trial of this evaluation."""
        return id(self), play.position

    def __post_init__(self) -> None:
        if told := choice_problem(self.on_error, get_args(OnError)):
            raise BadInput(f"on_error={told}")
        is_heard = self.budget is not None or "on_event" in self.hooks.listeners
        object.__setattr__(self, "is_heard", is_heard)


async def run_trial(agent: Any, take: TrialState, settings: Settings) -> CaseResult:
    """Simulate one case and measure it."""
    result = await _played(agent, take, settings)
    if "on_metric_complete" in settings.hooks.listeners:
        for name, outcome in result.scores.items():
            settings.hooks.metric_completed(take.play.case, name, outcome)
    return result


async def _played(agent: Any, take: TrialState, settings: Settings) -> CaseResult:
    case, measuring = take.play.case, settings.measuring
    try:
        while True:
            if take.doubt:
                raise InDoubt(take.doubt)
            ledger = await simulate(
                case,
                agent,
                ledger=take.ledger,
                allow_tools=settings.allow_tools,
                allow_unfenced=True,
                allow_opaque=settings.allow_opaque,
                on_event=heard_by(take.on_event, take, settings),
                before_live=take.before_live,
            )
            if take.ledger is None or not went_back(take, ledger):
                break
    except Exception as error:  # noqa: BLE001 - the sanctioned place: a case that cannot be played
        return broken(case, error, metrics=measuring.names(case))
    failpoint("trial.played")
    is_kept = settings.keep_ledgers
    try:
        scores = measuring.at_once(case, ledger)
        if scores is None:
            judging = take.judging if measuring.may_ask(case) else None
            heard = heard_by(take.on_judging, take, settings)
            scores = await measuring.outcomes(case, ledger, judging, heard, take.play.trial)
    except (Refusal, MetricsHung, BadInput) as error:
        names = measuring.names(case)
        return unmeasured(case, ledger, error, names, judging=take.judged, keep_ledger=is_kept)
    result = concluded(case, ledger, scores, judging=take.judged, keep_ledger=is_kept)
    if result.status == "failed" and would_fail_again(
        result, agent, case, ledger, measuring.metrics
    ):
        fill(result, "fixed", True)
    return result


def heard_by(
    written: Callable[[Event], None] | None, take: TrialState, settings: Settings
) -> Callable[[Event], None] | None:
    """Everybody who wants to hear of the events of a take; None if nobody does."""
    if not settings.is_heard:
        return written
    listeners: list[Callable[[Event], None]] = []
    if written is not None:
        listeners.append(written)
    if settings.budget is not None:
        listeners.append(partial(settings.budget.hear, settings.reservation(take.play)))
    if "on_event" in settings.hooks.listeners:
        listeners.append(partial(settings.hooks.happened, take.play.case))
    if len(listeners) == 1:
        return listeners[0]

    def hear(event: Event) -> None:
        for ear in listeners:
            ear(event)

    return hear
