"""A run measured by itself: the door to `score` for whoever has a ledger and some metrics."""

from collections.abc import Iterable
from copy import copy
from pathlib import Path

from greenroom.cases.case import Case
from greenroom.cases.parts import MetricLike
from greenroom.cases.scores import Outcome
from greenroom.ledger.ledger import Ledger
from greenroom.metrics import scores
from greenroom.models.model import ModelBody, ModelReply, ModelRequest, OnDelta
from greenroom.simulation.fence import Opening, lent_executor
from greenroom.suite.measurement import METRIC_SECONDS, cut_in_time, only_looking
from greenroom.world.answers import CachedWorld
from greenroom.world.around import Around
from greenroom.world.live import LiveWorld
from greenroom.world.world import World


async def score(
    ledger: Ledger | str | Path,
    metrics: Iterable[MetricLike] = (),
    case: Case | None = None,
    *,
    world: World | None = None,
    expectations: bool = True,
    seconds_per_metric: float = METRIC_SECONDS,
) -> dict[str, Outcome]:
    """Measure a run, fresh or loaded from disk, by `metrics`, the case's own and its expectations.

    Without `case` the one recorded in the ledger is meant. On equal names the case's metric wins.
    `expectations=False` leaves what the case expects to the metrics that ask for it.
    A run that broke is not measured: each metric is `Unmeasured`, and says what broke.
    Critical metrics go first: once one falls short, the rest is `NotApplicable` and no judge is paid.
    A metric that raises, returns nonsense, or is not done after `seconds_per_metric` (because it
    waits, blocks or swallows its cancellation) is `Unmeasured`. Metrics only look: one that calls
    a tool, connects or starts a process is refused, and that refusal is raised. Judges ask their
    models through `world`, which writes into a ledger of its own.
    """
    asked = _with_a_way_out(LiveWorld(Ledger()) if world is None else world)
    with lent_executor(), only_looking("score"):
        return await scores.score(
            ledger,
            metrics,
            case,
            world=asked,
            expectations=expectations,
            seconds_per_metric=seconds_per_metric,
            limit=cut_in_time(),
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
    # Judges know a cache when they see one.
    cached = copy(world)
    cached.inner = _Asking(world.inner)
    return cached
