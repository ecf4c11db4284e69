"""The settings of an evaluation's trials, made of its options once for all of them."""

from collections.abc import Collection, Hashable
from math import inf
from typing import TYPE_CHECKING, Any, Literal

from msgspec import Struct, structs

from greenroom.backends.backend import Backend
from greenroom.cases.case import Case
from greenroom.errors import BadInput
from greenroom.models.model import Model
from greenroom.simulation.trial_context import backend_of
from greenroom.suite.budget import Budget
from greenroom.suite.hooks import HOOKS, Hooks
from greenroom.suite.inputs.sources import as_middleware, as_model_given, as_resources
from greenroom.suite.measurement import Measurement
from greenroom.suite.options import Values
from greenroom.suite.trial_state import Trial
from greenroom.world.rates import Rates, read_rates
from greenroom.world.resources import Factories

if TYPE_CHECKING:
    from greenroom.suite.recordings import Tape
    from greenroom.world.middleware.stack import MiddlewareStack

OnError = Literal["collect", "stop", "skip"]


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

    def reservation(self, trial: Trial) -> Hashable:
        """The name under which the budget keeps what is set aside for a trial of this evaluation."""
        return id(self), trial.position
