"""Case and ledger in, outcomes out: the one place where a metric's failure is caught."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from greenroom.cases.case import Case
from greenroom.cases.data import case_from
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadLedger, BadMetric, Refusal
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.origin import told
from greenroom.ledger.questions import started
from greenroom.metrics.builtin import BuiltIn
from greenroom.metrics.expectations import expectations as expected_of
from greenroom.metrics.facts import unseen_calls
from greenroom.metrics.metric import as_metric, falls_short, is_critical
from greenroom.metrics.outcomes import OUTCOMES, as_outcome
from greenroom.results.breakage import breakage, unscored
from greenroom.world.live import LiveWorld
from greenroom.world.world import World

Limit = Callable[[str, Callable[[], Any], float], Awaitable[Any]]
"""How a metric, known by name, is called and awaited for so many seconds at most.

What it comes to is the metric's return value, or the outcome of a metric that took longer.
"""


async def await_in_time(_: str, measure: Callable[[], Any], seconds: float) -> Any:
    """The limit that this room can hold by itself: only awaiting is cut."""
    found = measure()
    if not is_awaited(found):
        return found
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await found
    except TimeoutError:
        if limit.expired():
            return overdue(seconds)
        raise


def is_awaited(found: Any) -> bool:
    """Whether what a metric returned is still to be awaited."""
    if type(found) is Score or isinstance(found, OUTCOMES):
        return False
    return inspect.isawaitable(found)


def overdue(seconds: float) -> Unmeasured:
    """The outcome of a metric that took longer than it may."""
    return Unmeasured(f"the metric did not finish within {seconds:g} s")


async def score(
    ledger: Ledger | str | Path,
    metrics: Iterable[MetricLike] = (),
    case: Case | None = None,
    *,
    world: World | None = None,
    expectations: bool = True,
    seconds_per_metric: float = 60.0,
    limit: Limit = await_in_time,
) -> dict[str, Outcome]:
    """What `greenroom.score` promises, without its fence: each metric's outcome by name.

    A metric that raises, hangs or returns nonsense is `Unmeasured`; a refusal of the fence is
    raised. Critical metrics go first: once one falls short, the rest is `NotApplicable` and no judge
    is paid. `limit` is how a metric is cut after `seconds_per_metric`.
    """
    run = _opened(ledger)
    played = recorded_case(run) if case is None else case
    asked = LiveWorld(Ledger()) if world is None else _apart_from(run, world)
    measures = metrics_for(played, metrics, expectations)
    if (broke := breakage(run)) is not None:
        return unscored(measures, broke.unmeasured)
    critical = [name for name, metric in measures.items() if is_critical(metric)]
    unseen = unseen_calls(run)
    found: dict[str, Outcome] = {}
    missed = ""
    for name in dict.fromkeys((*critical, *measures)) if critical else measures:
        if missed:
            found[name] = NotApplicable(f"not measured: {missed!r}, which is critical, fell short")
            continue
        metric = measures[name]
        measure: Callable[[], Any] = partial(metric.measure, played, run, asked)
        if unseen is not None and _counts_calls(metric):
            measure = partial(_asked_of, metric, measure, unseen)
        try:
            guard = limit if needs_guard(metric, played) else await_in_time
            found[name] = as_outcome(await guard(name, measure, seconds_per_metric), name)
        except BaseException as error:  # noqa: BLE001 - the one place: a broken metric is no number
            found[name] = _broken(error)
        if name in critical and falls_short(found[name]):
            missed = name
    return {name: found[name] for name in measures} if critical else found


def _opened(ledger: Ledger | str | Path) -> Ledger:
    run = ledger if isinstance(ledger, Ledger) else Ledger.load(ledger)
    if not len(run):
        # "Never called" and "cost nothing" would hold of it, and mean nothing.
        raise BadLedger("the ledger is empty: nothing happened that could be measured.")
    return run


def _apart_from(run: Ledger, world: World) -> World:
    if world.ledger is run:
        raise BadMetric(
            "score(world=...) writes into the ledger that is scored, so the judges' calls would "
            "count as the agent's. Give a world with a ledger of its own."
        )
    return world


def recorded_case(ledger: Ledger) -> Case:
    """The case in the ledger's first event; a trace without one has a case that expects nothing."""
    first = started(ledger)
    if first is None or first.case is None:
        return Case("unrecorded")
    return case_from(first.case, "the recorded case", live=True)


def needs_guard(metric: Metric, case: Case) -> bool:
    """Whether a metric may block, run an author's code or ask a model when it measures `case`.

    A metric without a method `needs_guard(case)` does. One that says no is called in place, without
    a time limit and a fence of its own; the fence around all metrics of a case holds for it as well.
    """
    says: Callable[[Case], bool] | None = getattr(metric, "needs_guard", None)
    return says is None or says(case)


def metrics_for(
    case: Case, given: Iterable[MetricLike] = (), expectations: bool = True
) -> dict[str, Metric]:
    """What measures a run of `case`: its expectations, its own metrics, and those given."""
    implied = expected_of(case) if expectations and case.implied else {}
    if not case.metrics and not given:
        return implied
    asked = _by_name(case.metrics, f"case {case.id!r}")
    added = _by_name(given, "the run")
    found = _uncovered(implied, added | asked) | asked
    for name, metric in added.items():
        found.setdefault(name, metric)
    return found


def _uncovered(implied: dict[str, Metric], asked: dict[str, Metric]) -> dict[str, Metric]:
    """The expectations that no metric asked for looks at in its own way.

    Who asks for calls in any order does not want them in order as well.
    """
    covered = {field for metric in asked.values() for field in getattr(metric, "covers", ())}
    return {n: m for n, m in implied.items() if covered.isdisjoint(getattr(m, "covers", ()))}


def _by_name(given: Iterable[MetricLike], where: str) -> dict[str, Metric]:
    found: dict[str, Metric] = {}
    for item in given:
        metric = as_metric(item)
        name = metric.name
        if name in found:
            raise BadMetric(f"{where} has two metrics named {name!r}; give one of them a `name=`.")
        found[name] = metric
    return found


def _broken(error: BaseException) -> Unmeasured:
    """What a metric's failure comes to; what is not the metric's own is raised again."""
    if isinstance(error, Refusal):
        raise error
    if isinstance(error, asyncio.CancelledError):
        # Only a cancellation of this very task is meant for us; others leaked from the metric.
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
        return Unmeasured("CancelledError: something the metric awaited was cancelled")
    if isinstance(error, (Exception, SystemExit)):
        return Unmeasured(told(error))
    raise error


def _asked_of(
    metric: Metric, measure: Callable[[], Any], unseen: Unmeasured
) -> NotApplicable | Unmeasured:
    """What is said of a metric that counts calls nobody saw, unless the case asks nothing of it."""
    if not isinstance(metric, BuiltIn) or inspect.iscoroutinefunction(metric.measure):
        return unseen  # to ask others would be to measure
    found = measure()
    return found if isinstance(found, NotApplicable) else unseen


def _counts_calls(metric: Metric) -> bool:
    """Whether a metric looks at the tool calls, whose absence may mean that nobody saw them."""
    return "tools" in getattr(metric, "covers", ()) or getattr(metric, "counts_calls", False)
