"""Measures a ledger with metrics: the one place where a metric's failure is caught."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from time import monotonic
from typing import TypeGuard

from greenroom.cases.case import Case
from greenroom.cases.copies import own_copy
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import (
    BadLedger,
    BadMetric,
)
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import as_object
from greenroom.ledger.questions import is_complete, started
from greenroom.metrics.builtin import BuiltIn
from greenroom.metrics.definition import (
    OUTCOMES,
    FunctionMetric,
    as_metric,
    as_outcome,
    falls_short,
    is_critical,
)
from greenroom.metrics.expectations import Expectation
from greenroom.metrics.expectations import expectations as expected_of
from greenroom.metrics.failures import may_pass, outcome_of, overdue
from greenroom.metrics.needs import needs_of, unseen_facts, without
from greenroom.metrics.parameters import CancelToken, surrounded
from greenroom.results.endings import NOT_OVER, breakage, unscored
from greenroom.world.world import World

_FIRST_PAUSE = 0.5
"""Seconds before a metric is tried again; twice as many each further time."""
LEFT_OUT = "not measured:"
"""Begins the reason of a metric that was left out because a critical one had failed."""

_CHECKED = (Expectation, FunctionMetric)
"""Metrics whose outcomes are checked where they are made."""
_OURS = (BuiltIn, *_CHECKED)
"""Metrics that leave the case as it is, or that make the copies themselves."""

Measure = Callable[[], object]
"""Call a metric. It returns an outcome, an awaitable of one or, if it is a plug-in's, anything."""

Limit = Callable[[str, Measure, float], Awaitable[object]]
"""Call the metric of this name and await it, for at most the given number of seconds.

The result is what the metric returned, or an outcome that says that it took too long.
"""


async def measure_trial(
    ledger: Ledger,
    case: Case,
    metrics: Mapping[str, Metric],
    world: World,
    limit: Limit,
    seconds_per_metric: float,
    *,
    attempts: int,
    cancel: CancelToken | None = None,
) -> dict[str, Outcome]:
    """Each metric's outcome by name; judges ask their models through `world`.

    A metric that raises, hangs or returns nonsense is `Unmeasured`; a refusal of the fence is
    raised. Critical metrics are measured first: once one of them fails, the rest are `NotApplicable`,
    and no judge is paid. `limit` enforces `seconds_per_metric`, within which a metric that hit a rate limit,
    a time-out or a lost connection is measured again, up to `attempts` times. `cancel` stops the run.
    """
    if not len(ledger):
        # "Never called" and "cost nothing" would be true of an empty ledger, and mean nothing.
        raise BadLedger("the ledger is empty: nothing happened that could be measured.")
    if (broke := breakage(ledger)) is not None:
        return unscored(metrics, broke.unmeasured)
    if not is_complete(ledger):
        # "Never called" and "cheap enough" are true of every trial that is cut early enough.
        return unscored(metrics, NOT_OVER)
    unseen, task = unseen_facts(ledger), asyncio.current_task()

    async def outcome(name: str, metric: Metric) -> Outcome:
        """A metric's outcome; a temporary failure is tried again while there is time left."""
        # A metric that changed the case would change what is measured after it.
        given = case if isinstance(metric, _OURS) else own_copy(case)
        measure: Measure = partial(metric.measure, given, ledger, world)
        if unseen and (missing := needs_of(metric, case) & unseen):
            measure = partial(_of_unseen_facts, metric, measure, without(missing))
        until, left, attempt = monotonic() + seconds_per_metric, seconds_per_metric, 1
        while True:
            try:
                if needs_guard(metric, case):
                    returned = await limit(name, measure, left)
                elif is_awaitable(returned := measure()):
                    returned = await _in_time(returned, left)
                if isinstance(metric, _CHECKED):
                    return returned  # pyright: ignore[reportReturnType]
                return as_outcome(returned, name)
            except BaseException as error:  # noqa: BLE001 - the one place: a broken metric is not a number
                pause = _FIRST_PAUSE * 2 ** (attempt - 1)
                if attempt == attempts or not may_pass(error) or monotonic() + pause >= until:
                    return outcome_of(error, attempt, task)
            await asyncio.sleep(pause)
            attempt, left = attempt + 1, max(until - monotonic(), 0.0)

    critical = [name for name, metric in metrics.items() if is_critical(metric)]
    found: dict[str, Outcome] = {}
    failed = ""
    with surrounded(cancel, found):
        for name in dict.fromkeys([*critical, *metrics]):
            found[name] = (
                NotApplicable(left_out(failed)) if failed else await outcome(name, metrics[name])
            )
            if name in critical and falls_short(found[name]):
                failed = name
    return {name: found[name] for name in metrics} if critical else found


def left_out(critical: str) -> str:
    """Why a metric was not measured: the critical one of this name had failed."""
    return f"{LEFT_OUT} {critical!r}, which is critical, failed"


async def await_unguarded(_: str, measure: Measure, seconds: float) -> object:
    """The limit for metrics that need no guard: it stops what is awaited, not what blocks."""
    found = measure()
    return await _in_time(found, seconds) if is_awaitable(found) else found


async def _in_time(work: Awaitable[object], seconds: float) -> object:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            return await work
    except TimeoutError:
        if limit.expired():
            return overdue(seconds)
        raise


def is_awaitable(found: object) -> TypeGuard[Awaitable[object]]:
    """Whether a metric's return value must still be awaited."""
    if type(found) is Score or isinstance(found, OUTCOMES):
        return False
    return inspect.isawaitable(found)


def recorded_case(ledger: Ledger) -> Case:
    """The case in the ledger's first event; a trace without one has a case that expects nothing."""
    first = started(ledger)
    if first is None or first.case is None:
        return Case("unrecorded")
    from greenroom.cases.reader import case_from  # only a trial from a store or a trace is read

    return case_from(as_object(first.case), "the recorded case", live=True)


def needs_guard(metric: Metric, case: Case) -> bool:
    """Whether a metric may block, run user code or ask a model when it measures `case`.

    A metric without a method `needs_guard(case)` is assumed to. One that says no is called directly,
    without its own time limit or fence; the fence around all metrics of a case still holds.
    """
    says: Callable[[Case], bool] | None = getattr(metric, "needs_guard", None)
    return says is None or says(case)


def metrics_for(
    case: Case, given: Iterable[MetricLike] = (), expectations: bool = True
) -> dict[str, Metric]:
    """The metrics for a trial of `case`: its expectations, its own metrics, and those given.

    On equal names the case's own metric or expectation wins. An expectation is left out if a metric measures the
    same field in its own way: asking for calls in any order is not also asking for them in order.
    """
    implied = expected_of(case) if expectations and case.implied else {}
    if not case.metrics and not given:
        return implied
    added, asked = by_name(given, "the run"), by_name(case.metrics, f"case {case.id!r}")
    covered = {field for one in (added | asked).values() for field in getattr(one, "covers", ())}
    left = {n: m for n, m in implied.items() if covered.isdisjoint(getattr(m, "covers", ()))}
    found = left | asked
    for name, metric in added.items():
        found.setdefault(name, metric)
    return found


def by_name(given: Iterable[MetricLike], where: str) -> dict[str, Metric]:
    """Metrics by their names; BadMetric if two have the same."""
    found: dict[str, Metric] = {}
    for item in given:
        metric = as_metric(item)
        name = metric.name
        if name in found:
            raise BadMetric(f"{where} has two metrics named {name!r}; give one of them a `name=`.")
        found[name] = metric
    return found


def _of_unseen_facts(
    metric: Metric, measure: Measure, unseen: Unmeasured
) -> NotApplicable | Unmeasured:
    """The outcome of a metric whose needs were not recorded."""
    # Only a built-in metric that asks no model can be called just to learn whether it applies.
    if not isinstance(metric, BuiltIn) or inspect.iscoroutinefunction(metric.measure):
        return unseen
    found = measure()
    return found if isinstance(found, NotApplicable) else unseen
