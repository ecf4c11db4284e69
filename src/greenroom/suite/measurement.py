"""A finished trial, measured: inside the fence, in time, and with what the judges asked recorded."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, TypeVar

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import Outcome, Unmeasured
from greenroom.errors import (
    FenceBreach,
    GreenroomError,
    MetricRefused,
    MetricsHung,
    Refusal,
)
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.metrics import as_metric
from greenroom.metrics.failures import overdue
from greenroom.metrics.parameters import CancelToken
from greenroom.metrics.scores import (
    Limit,
    Measure,
    is_awaitable,
    is_critical,
    measure_trial,
    metrics_for,
)
from greenroom.simulation.fence import enclose
from greenroom.simulation.fenced_world import FencedWorld
from greenroom.simulation.hangs.limits import await_in_time, call_in_time
from greenroom.simulation.refusals import Refusals
from greenroom.suite.inputs.criteria import all_metrics
from greenroom.suite.options import METRIC_ATTEMPTS, METRIC_SECONDS, Values
from greenroom.world.answers import AnswerCache, CachedWorld, RememberingWorld
from greenroom.world.call_context import answered_by, guarded
from greenroom.world.threads import Overdue
from greenroom.world.world import World

if TYPE_CHECKING:
    from greenroom.world.middleware.stack import MiddlewareStack

T = TypeVar("T")
OnEvent = Callable[[Event], None]

_PATIENCE = 2.0
"""Seconds that stopping an overdue metric may take on a busy machine."""


class Measurement(Struct, frozen=True, kw_only=True):
    """The metrics of an evaluation, in addition to each case's own, and how long they may take."""

    metrics: Sequence[Metric] = ()
    seconds_per_metric: float = METRIC_SECONDS
    attempts: int = METRIC_ATTEMPTS
    cache: AnswerCache | None = None
    cancel: CancelToken | None = None
    captures: bool = True
    """Whether the questions to judges are recorded."""
    middleware: "MiddlewareStack | None" = None
    """The middleware of the run; some of it observes judges too."""

    @classmethod
    def of(cls, options: Values, evalset: EvalSet) -> "Measurement":
        """The measurement of a set's trials, by the options of its evaluation."""
        return cls(
            metrics=all_metrics(options["metrics"], evalset),
            seconds_per_metric=options["seconds_per_metric"] or METRIC_SECONDS,
            attempts=options["metric_attempts"],
            cache=AnswerCache.of(options["cache"]),
            cancel=options["cancel"],
            captures=not options["omit_questions"],
        )

    def seconds_for(self, count: int) -> float:
        """How long `count` metrics may take in total, each stopped at its own limit."""
        return (self.seconds_per_metric + _PATIENCE) * (1 + count)

    def names(self, case: Case) -> list[str]:
        """The names of all metrics of `case`, without those that cannot be used."""
        try:
            return list(metrics_for(case, self.metrics))
        except GreenroomError:
            return [metric.name for metric in self.metrics]

    def listens(self, case: Case) -> bool:
        """Whether a metric times the first words of replies, so that models are asked for their pieces."""
        for given in (*self.metrics, *case.metrics):
            try:
                metric = as_metric(given) if isinstance(given, str) else given
            except GreenroomError:
                continue  # the measurement will report it
            if getattr(metric, "listens", False):
                return True
        return False

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
        """Every metric's outcome; what models were asked for it goes into `judging`.

        Answers that `judging` holds from before an interruption are not asked for again, and metrics whose
        outcomes are `known` from an earlier attempt do not measure again. With `recorded`,
        the recording answers before the world is asked. Metrics may look, and ask models, but not act. Each
        that needs a guard has its own fence: the others still measure, whatever one of them tried.
        """
        world = FencedWorld(judging, Refusals(), on_event=on_event)
        world.captures = self.captures
        if self.middleware is not None:
            from greenroom.world.middleware.attachment import observe_judges  # most runs have none

            observe_judges(world, self.middleware, ledger)
        inner = world if recorded is None else recorded(world)
        asked: World = RememberingWorld(inner, f"{case.id}#{trial}")
        if self.cache is not None:
            asked = CachedWorld(asked, self.cache)
        looks: dict[str, Refused] = {}

        async def limit(metric: str, measure: Measure, seconds: float) -> object:
            try:
                with only_looking(case.id) as looks[metric]:
                    return await cut_in_time(case.id)(metric, measure, seconds)
            except Refusal as error:
                world.refusals.reset()
                return Unmeasured(str(error))

        with only_looking(case.id):
            every = metrics_for(case, self.metrics)
            # Whether others are left out is for a critical metric to say, so then all measure.
            kept = {} if any(map(is_critical, every.values())) else dict(known or {})
            metrics = {name: metric for name, metric in every.items() if name not in kept}
            world.deadline = monotonic() + self.seconds_for(len(metrics))
            found = await measure_trial(
                ledger,
                case,
                metrics,
                asked,
                limit,
                self.seconds_per_metric,
                attempts=self.attempts,
                cancel=self.cancel,
            )
        # Work that a metric left behind may have been refused while others were measured.
        for name, refused in looks.items():
            if not isinstance(found[name], Unmeasured) and (error := refused()) is not None:
                found[name] = Unmeasured(str(error))
        return {name: found[name] if name in found else kept[name] for name in every}


async def in_time(work: Callable[[], Awaitable[T]], seconds: float, name: str) -> T:
    """The result of the work; MetricsHung after `seconds`, even if it blocks or ignores its cancellation."""
    try:
        return await await_in_time(work(), seconds, name)
    except Overdue:
        raise MetricsHung(f"the metrics were not done within {seconds:g} s.") from None


def cut_in_time(name: str = "") -> Limit:
    """The time limit of each metric of the case `name`: it is stopped, even if it blocks or ignores that."""
    part_of = f" of case {name!r}" if name else ""

    async def limit(metric: str, measure: Measure, seconds: float) -> object:
        began, who = monotonic(), f"the metric {metric!r}{part_of}"
        try:
            found = call_in_time(measure, seconds, who)
            if is_awaitable(found):
                found = await await_in_time(found, max(seconds - (monotonic() - began), 0.0), who)
        except Overdue:
            return overdue(seconds)
        return found

    return limit


Refused = Callable[[], Refusal | None]
"""Returns the first refusal so far, if there was one."""


@contextmanager
def only_looking(name: str) -> Generator[Refused]:
    """Fence metrics in. What one tries to do is refused here, even if it catches the refusal."""
    refusals = Refusals()

    def no_tools(_: object, tool: str) -> None:
        words = f"a metric called the tool {tool!r}; metrics only read the ledger."
        raise refusals.set(MetricRefused(words))

    def not_cleared(breach: object) -> None:
        words = f"while metrics were running, work of no case tried {breach}; it was refused."
        refusals.set(MetricRefused(words))

    with enclose(name) as scope, guarded(no_tools), answered_by(None):
        scope.body_guard = no_tools
        scope.on_stray = not_cleared

        def refused() -> Refusal | None:
            return refusals.refusal or (_acting(scope.breach) if scope.breach else None)

        try:
            yield refused
        except FenceBreach as breach:
            raise _acting(scope.breach or breach) from breach
    if (error := refused()) is not None:
        raise error


def reset_breakers(metrics: Iterable[MetricLike]) -> None:
    """Ask judges again that had stopped answering in an earlier run."""
    for metric in metrics:
        breaker = getattr(getattr(metric, "bench", None), "breaker", None)
        if breaker is not None:
            breaker.reset()
        reset_breakers(getattr(metric, "judges", ()))


def _acting(breach: object) -> MetricRefused:
    return MetricRefused(f"a metric tried to reach the outside: {breach}; metrics only look.")
