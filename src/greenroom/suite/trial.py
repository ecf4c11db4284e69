"""One trial of one case: simulated, then measured; whatever breaks becomes its error."""

from collections.abc import Callable, Collection, Hashable
from dataclasses import replace
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Any, Literal, Protocol

from msgspec import Struct, field, structs

from greenroom.backends.backend import DRIFTED, Backend
from greenroom.cases.case import Case
from greenroom.errors import BadInput, InDoubt, MetricsHung, Refusal
from greenroom.ledger.events import Event, Noted, RunResumed
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import is_object
from greenroom.ledger.questions import ended, started
from greenroom.models.model import Model
from greenroom.results.result import CaseResult
from greenroom.results.trial_verdict import broken, concluded, unmeasured
from greenroom.simulation.conversation import simulate
from greenroom.simulation.gate import BeforeLive
from greenroom.simulation.trial_context import backend_of
from greenroom.store.failpoints import failpoint
from greenroom.suite.budget import Budget
from greenroom.suite.chance import would_fail_again
from greenroom.suite.hooks import HOOKS, Hooks
from greenroom.suite.inputs.sources import as_middleware, as_model_given, as_resources
from greenroom.suite.measurement import Measurement
from greenroom.suite.options import Values
from greenroom.suite.storage.resume import before_calls, reason_for_doubt, up_to_last_pause
from greenroom.world.call_context import stored_as
from greenroom.world.rates import Rates, read_rates
from greenroom.world.resources import Factories

if TYPE_CHECKING:
    from greenroom.suite.recordings import RecordedTrial, Tape
    from greenroom.world.middleware.stack import MiddlewareStack

OnError = Literal["collect", "stop", "skip"]
OnEvent = Callable[[Event], None]
FindBackend = Callable[[], Backend | None]
"""Finds the backend of a trial when it is called."""


class Settings(Struct, frozen=True, kw_only=True):
    """The settings of an evaluation's trials: the options they need, and what measures them."""

    measuring: Measurement
    allow_tools: Collection[object]
    allow_opaque: bool
    model: Model | None
    resources: Factories
    omit_questions: bool
    middleware: "MiddlewareStack | None"
    concurrency: int | None
    """How many trials run at once; None is the executor's default."""
    on_error: OnError
    fail_fast: bool
    keep_ledgers: bool
    seconds_per_case: float | None
    budget: Budget | None
    rates: Rates
    """How often models may be asked, by all trials together."""
    hooks: Hooks
    tape: "Tape | None"
    """The tape, if the run is recorded or replayed; each trial is sent to a worker with its part of it."""

    @classmethod
    def of(cls, options: Values, measuring: Measurement) -> "Settings":
        """The settings that these options make, in the parent and in its workers."""
        values = {name: options[name] for name in cls.__struct_fields__ if name in options}
        budget = options["budget"]
        if budget is not None and not isinstance(budget, Budget):
            budget = Budget(budget, options["unknown_prices"])
        middleware = as_middleware(options["middleware"])
        measuring = structs.replace(measuring, middleware=middleware)
        plugins = [*options["plugins"], *(() if middleware is None else middleware.plugins)]
        values |= {
            "measuring": measuring,
            "budget": budget,
            "model": as_model_given(options["model"]),
            "resources": as_resources(options["resources"]),
            "middleware": middleware,
            "hooks": Hooks(plugins=plugins, **{name: options[name] for name in HOOKS}),
            "tape": None,
            "rates": read_rates(options["rate"]) or {},
        }
        if options["record"] is not None or options["replay"] is not None:
            from greenroom.suite.recordings import tape_of  # loaded where it is used

            # A judge that answers from a cache would not be recorded, or not be asked as it was.
            values["measuring"] = structs.replace(measuring, cache=None)
            values |= {"tape": tape_of(options), "keep_ledgers": True}
        return cls(**values)

    def seconds_for(self, case: Case) -> float:
        """How long a conversation of this case may take: by its own limit, or by a lower one of the run."""
        return min(case.stop.max_seconds, self.seconds_per_case or inf)

    def model_for(self, case: Case) -> Model | None:
        """The model that replaces the agent's models; a case's own comes first."""
        return self.model if case.model is None else as_model_given(case.model)

    def backend_of(self, case: Case, agent: Any) -> Backend | None:
        """The backend of a trial of this case; None if there is none, which the trial itself will report."""
        try:
            return backend_of(case, agent, self.model_for(case))
        except BadInput:
            return None

    def reservation(self, trial: "Trial") -> Hashable:
        """The name under which the budget keeps what is set aside for a trial of this evaluation."""
        return id(self), trial.position


class Trial(Struct, frozen=True):
    """One trial of a case: which repeat it is, and the position of its result in the report."""

    position: int
    case: Case
    number: int = 1


class PartialTrial(Protocol):
    """A trial that was in progress when its process ended, as far as it was recorded."""

    ledger: Ledger
    judging: Ledger


class TrialState(Struct, eq=False):
    """A trial in progress: the part that an earlier process ran, and its observers."""

    trial: Trial
    ledger: Ledger | None = None
    """The beginning of the conversation, if an earlier process was interrupted in it."""
    judging: Ledger = field(default_factory=Ledger)
    """The ledger of what metrics have asked models so far."""
    on_event: OnEvent | None = None
    on_judging: OnEvent | None = None
    on_restart: Callable[[Ledger, Ledger], None] | None = None
    """Called with the parts of both ledgers that still count when a part of the trial runs again."""
    before_live: BeforeLive | None = None
    """Makes sure that the call of a real tool is on disk before its body begins."""
    paid: float = 0.0
    """What the part that an earlier process ran has cost, in USD."""
    notes: list[str] = field(default_factory=list[str])
    """Notes for the report on how it was run."""
    drifted_at: float = inf
    """The event at which it was last found to differ from the recorded trial."""
    doubt: str = ""
    """Why it cannot run again: a real tool may have acted in the interrupted part."""
    recorded: "RecordedTrial | None" = None
    """The trial whose answers are repeated, in a replay."""
    run_id: str = ""
    """The run of the store that it belongs to, if there is one."""
    now: float | None = None
    """The time on its clock, if the trial is recorded or replayed."""

    def resume(
        self, cut: PartialTrial, backend: Backend | None, not_begun: Collection[str] = ()
    ) -> str:
        """Begin where an earlier process was interrupted; the reason if some of its work is repeated.

        `not_begun` are calls of real tools that were recorded, but never allowed to act.
        """
        case, first = self.trial.case, started(cut.ledger)
        if first is None or backend is None:
            return ""
        if ended(cut.ledger) is not None:
            self.ledger, self.judging = cut.ledger, cut.judging
            return ""
        is_changed = first.digest != backend.digest
        if is_changed or backend.resumes == "no":
            self.doubt = reason_for_doubt(case, cut.ledger, 0, not_begun)
            if is_changed:
                return (
                    "run from its beginning, because the agent has changed since the interruption"
                )
            return f"run from its beginning: the {backend.name!r} backend cannot resume an agent"
        known = before_calls(cut.ledger, not_begun)
        self.ledger = known if backend.resumes != "checkpoint" else up_to_last_pause(known)
        self.doubt = reason_for_doubt(case, cut.ledger, len(self.ledger), not_begun)
        lost = len(known) - len(self.ledger)
        return f"resumed at its last pause; {lost} events after it are run again" if lost else ""

    def go_back(self, ledger: Ledger) -> bool:
        """Begin again where the agent left the recorded path; False if it did not leave it."""
        if self.ledger is None or self.on_restart is None:
            return False
        last = next((e for e in reversed(ledger.events) if _ends_search(e)), None)
        if not isinstance(last, Noted):
            return False
        noted = last.data if is_object(last.data) else {}
        seq = noted.get("seq")
        # Each restart must be further back, or a note of other origin could cause an endless loop.
        if type(seq) is not int or not 0 < seq < self.drifted_at:
            return False
        self.drifted_at = seq
        self.doubt = reason_for_doubt(self.trial.case, ledger, seq)
        self.ledger = Ledger(ledger.events[:seq])
        # A run that resumes after another interruption must find the same doubt.
        if not self.doubt:
            self.on_restart(self.ledger, self.judging)
        self.notes.append(f"{noted.get('told')}; from there on it was run again")
        return True


def _ends_search(event: Event) -> bool:
    """Whether an event says that the agent left the recorded path, or precedes any event that could."""
    return isinstance(event, RunResumed) or (isinstance(event, Noted) and event.name == DRIFTED)


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
        scores = await measuring.outcomes(case, ledger, state.judging, on_event, number, judges)
    except (Refusal, MetricsHung, BadInput) as error:
        names = measuring.names(case)
        return unmeasured(case, ledger, error, names, judging=state.judging, keep_ledger=keeps)
    result = concluded(case, ledger, scores, judging=state.judging, keep_ledger=keeps)
    if would_fail_again(result, agent, case, ledger, measuring.metrics):
        return replace(result, fixed=True)
    return result


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
