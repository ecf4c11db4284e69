"""A finished run, measured: inside the fence, in time, and with what the judges asked written down."""

from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Any, TypeVar

from greenroom.cases.case import Case
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import Outcome, Unmeasured
from greenroom.errors import FenceBreach, GreenroomError, MetricRefused, MetricsHung, Refusal
from greenroom.ledger.events import Event
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.records import record
from greenroom.metrics.scores import (
    Limit,
    is_awaited,
    met,
    metrics_for,
    only_compares,
    overdue,
    score,
)
from greenroom.simulation.fence import enclose
from greenroom.simulation.gate import FencedWorld, Refusals
from greenroom.simulation.limits import await_in_time, call_in_time
from greenroom.world.answers import AnswerCache, CachedWorld
from greenroom.world.bodies import answered_by, guarded
from greenroom.world.live import LiveWorld
from greenroom.world.replay import RememberingWorld
from greenroom.world.threads import Overdue
from greenroom.world.world import World

T = TypeVar("T")
OnEvent = Callable[[Event], None]
METRIC_SECONDS = 60.0

_PATIENCE = 2.0
"""Seconds beyond its limit that it may take to cut a metric, on a busy machine."""

_NOWHERE = LiveWorld(Ledger())
"""For measurements that ask nobody anything."""


@record(kw_only=True)
class Measurement:
    """What measures the runs of an evaluation, beside each case's own, and for how long."""

    metrics: Sequence[Metric] = ()
    seconds_per_metric: float = METRIC_SECONDS
    cache: AnswerCache | None = None

    def seconds_for(self, case: Case) -> float:
        """How long the metrics of a case may take, all together, each being cut at its own limit."""
        return (self.seconds_per_metric + _PATIENCE) * (1 + len(self.names(case)))

    def names(self, case: Case) -> list[str]:
        """The names of all that measures a run of `case`, as far as it can be used at all."""
        try:
            return list(metrics_for(case, self.metrics))
        except GreenroomError:
            return [metric.name for metric in self.metrics]

    def may_ask(self, case: Case) -> bool:
        """Whether measuring a run of `case` may ask models; what only compares does not."""
        return not only_compares(case, self.metrics)

    def at_once(self, case: Case, ledger: Ledger) -> dict[str, Outcome] | None:
        """The outcomes, if nothing but what the case expects measures it, and none of it may wait."""
        if self.metrics or case.metrics or not only_compares(case, ()):
            return None
        return met(case, ledger)

    def outcomes(
        self,
        case: Case,
        ledger: Ledger,
        judging: Ledger | None,
        on_event: OnEvent | None = None,
        trial: int = 1,
    ) -> Awaitable[dict[str, Outcome]]:
        """Every metric's outcome; what models were asked for it goes into `judging`.

        Answers that `judging` holds from before a cut are not asked for again. Without one, it is
        known that nobody may be asked.
        """
        if judging is None:
            return score(ledger, self.metrics, case, world=_NOWHERE)
        latch = Refusals()
        world = FencedWorld(judging, latch, on_event=on_event)
        world.deadline = monotonic() + self.seconds_for(case)
        return self._fenced(case, ledger, self._asked(world, f"{case.id}#{trial}"), latch)

    def _asked(self, world: FencedWorld, trial: str) -> World:
        """The world as metrics see it: with a memory, and with the cache if there is one."""
        remembering = RememberingWorld(world, trial)
        return remembering if self.cache is None else CachedWorld(remembering, self.cache)

    async def _fenced(
        self, case: Case, ledger: Ledger, world: World, latch: Refusals
    ) -> dict[str, Outcome]:
        """Score inside the fence: metrics may look, and ask models, but not act.

        Each stands in a fence of its own: the others measure, whatever one of them tried.
        """
        looks: dict[str, Refused] = {}
        cut = cut_in_time(case.id)

        async def limit(metric: str, measure: Callable[[], Any], seconds: float) -> Any:
            try:
                with only_looking(case.id) as looks[metric]:
                    return await cut(metric, measure, seconds)
            except Refusal as error:
                latch.reset()
                return Unmeasured(str(error))

        with only_looking(case.id):
            found = await score(
                ledger,
                self.metrics,
                case,
                world=world,
                seconds_per_metric=self.seconds_per_metric,
                limit=limit,
            )
        return {name: _late(outcome, looks.get(name)) for name, outcome in found.items()}


async def in_time(work: Callable[[], Awaitable[T]], seconds: float, name: str) -> T:
    """What comes of the work; MetricsHung after so long, even if it blocks or will not be cancelled."""
    try:
        return await await_in_time(work(), seconds, name)
    except Overdue:
        raise MetricsHung(f"the metrics were not done within {seconds:g} s.") from None


def cut_in_time(name: str = "") -> Limit:
    """The limit of each metric of a case so called: it is cut, also if it blocks or is stubborn."""
    part_of = f" of case {name!r}" if name else ""

    async def limit(metric: str, measure: Callable[[], Any], seconds: float) -> Any:
        began, who = monotonic(), f"the metric {metric!r}{part_of}"
        try:
            found = call_in_time(measure, seconds, who)
            if is_awaited(found):
                found = await await_in_time(found, max(seconds - (monotonic() - began), 0.0), who)
        except Overdue:
            return overdue(seconds)
        return found

    return limit


def _late(outcome: Outcome, refused: "Refused | None") -> Outcome:
    """The outcome of a metric, unless something it left behind was refused while others were measured."""
    error = None if refused is None or isinstance(outcome, Unmeasured) else refused()
    return outcome if error is None else Unmeasured(str(error))


Refused = Callable[[], Refusal | None]
"""What was refused so far, if anything was."""


@contextmanager
def only_looking(name: str) -> Generator[Refused]:
    """Fence metrics in. What one tries to do is refused here, whatever it made of that itself."""
    latch = Refusals()

    def no_tools(_: object, tool: str) -> None:
        words = f"a metric called the tool {tool!r}; metrics only read the ledger."
        raise latch.set(MetricRefused(words))

    def not_cleared(breach: object) -> None:
        words = f"while metrics were at work, work of no case tried {breach}; it was refused."
        latch.set(MetricRefused(words))

    with enclose(name) as enclosure, guarded(no_tools), answered_by(None):
        enclosure.body_guard = no_tools
        enclosure.on_stray = not_cleared

        def refused() -> Refusal | None:
            return latch.refusal or (_acting(enclosure.breach) if enclosure.breach else None)

        try:
            yield refused
        except FenceBreach as breach:
            raise _acting(enclosure.breach or breach) from breach
    if (error := refused()) is not None:
        raise error


def forgive(metrics: Iterable[MetricLike]) -> None:
    """A judge that was out of order in an earlier run is asked again in this one."""
    for metric in metrics:
        breaker = getattr(getattr(metric, "bench", None), "breaker", None)
        if breaker is not None:
            breaker.reset()
        forgive(getattr(metric, "judges", ()))


def _acting(breach: object) -> MetricRefused:
    return MetricRefused(f"a metric tried to reach the outside: {breach}; metrics only look.")
