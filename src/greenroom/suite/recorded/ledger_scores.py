"""One ledger, fresh or loaded from disk, measured by itself."""

from collections.abc import Iterable
from copy import copy
from pathlib import Path

from greenroom.cases.case import Case
from greenroom.cases.parts import MetricLike
from greenroom.cases.scores import Outcome
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.scores import measure_trial, metrics_for, recorded_case
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.simulation.fence import Opening, lent_executor
from greenroom.suite.measurement import cut_in_time, only_looking
from greenroom.suite.options import METRIC_ATTEMPTS, METRIC_SECONDS, check
from greenroom.world.answers import CachedWorld
from greenroom.world.live import LiveWorld
from greenroom.world.world import Around, World


async def score(
    ledger: Ledger | str | Path,
    metrics: Iterable[MetricLike] = (),
    case: Case | None = None,
    *,
    world: World | None = None,
    expectations: bool = True,
    seconds_per_metric: float = METRIC_SECONDS,
    metric_attempts: int = METRIC_ATTEMPTS,
) -> dict[str, Outcome]:
    """Measure the ledger of a trial, fresh or loaded from disk, by `metrics`, the case's own and its expectations.

    Without `case` the one recorded in the ledger is meant. On equal names the case's metric wins.
    `expectations=False` leaves what the case expects to the metrics that ask for it.
    A trial that broke is not measured: each metric is `Unmeasured`, and says what broke.
    Critical metrics go first: once one falls short, the rest is `NotApplicable` and no judge is paid.
    A metric that raises, returns an invalid outcome, or is not done after `seconds_per_metric` (because it
    waits, blocks or swallows its cancellation) is `Unmeasured`; one that meets a rate limit, a time-out
    or a lost connection is first tried `metric_attempts` times. Metrics only look: one that calls
    a tool, connects or starts a process is refused, and that refusal is raised. Judges ask their
    models through `world`, which writes into its own ledger.
    """
    check(
        {
            "metrics": metrics,
            "seconds_per_metric": seconds_per_metric,
            "metric_attempts": metric_attempts,
        }
    )
    asked = _with_a_way_out(LiveWorld(Ledger()) if world is None else world)
    with lent_executor(), only_looking("score"):
        run = ledger if isinstance(ledger, Ledger) else Ledger.load(ledger)
        if asked.ledger is run:
            raise BadMetric(
                "score(world=...) writes into the ledger that is scored, so the judges' calls would "
                "count as the agent's. Give a world with its own ledger."
            )
        measured = recorded_case(run) if case is None else case
        named = metrics_for(measured, metrics, expectations)
        return await measure_trial(
            run,
            measured,
            named,
            asked,
            cut_in_time(),
            seconds_per_metric,
            attempts=metric_attempts,
        )


class _Asking(Around):
    """A world whose models may be reached from inside the fence."""

    async def call_model(
        self, request: ModelRequest, body: ModelBody, on_delta: OnDelta | None = None
    ) -> ModelReply:
        """Ask in the world inside, with the fence open for this call."""
        with Opening():
            return await self.inner.call_model(request, body, on_delta)


def _with_a_way_out(world: World) -> World:
    if not isinstance(world, CachedWorld):
        return _Asking(world)
    # Judges check whether their world is a cache.
    cached = copy(world)
    cached.inner = _Asking(world.inner)
    return cached
