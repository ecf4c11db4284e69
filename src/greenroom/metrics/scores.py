"""Case and ledger in, outcomes out: the one place where a metric's failure is caught."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

from greenroom.cases.case import Case
from greenroom.cases.data import case_from
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadLedger, BadMetric, Refusal
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.messages import ToolCall
from greenroom.ledger.origin import told
from greenroom.ledger.questions import started
from greenroom.metrics.builtin import BuiltIn
from greenroom.metrics.critical import falls_short, is_critical
from greenroom.metrics.expectations import Expectation
from greenroom.metrics.expectations import expectations as expected_of
from greenroom.metrics.facts import unseen_calls
from greenroom.metrics.metric import as_metric
from greenroom.metrics.outcomes import OUTCOMES, as_outcome
from greenroom.metrics.turns import turns_of
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
    """Measure a run, fresh or loaded from disk, by `metrics`, the case's own and its expectations.

    Without `case` the one recorded in the ledger is meant. On equal names the case's metric wins.
    `expectations=False` leaves what the case expects to the metrics that ask for it.
    A run that broke is not measured: each metric is `Unmeasured`, and says what broke.
    Critical metrics go first: once one falls short, the rest is `NotApplicable` and no judge is paid.
    A metric that raises, hangs or returns nonsense is `Unmeasured`; a refusal of the fence is
    raised. Judges ask their models through `world`, which writes into a ledger of its own. `limit`
    is how a metric is cut after `seconds_per_metric`.
    """
    run = _opened(ledger)
    played = recorded_case(run) if case is None else case
    asked = LiveWorld(Ledger()) if world is None else _apart_from(run, world)
    measures = metrics_for(played, metrics, expectations)
    if (broke := breakage(run)) is not None:
        return unscored(measures, broke.unmeasured)
    if _only_expected(measures) and only_compares(played, ()):
        return _met(measures, played, run)
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
        found[name] = await _measured(metric, measure, limit, seconds_per_metric)
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


def _only_expected(measures: Mapping[str, Metric]) -> TypeGuard[Mapping[str, Expectation]]:
    """Whether nobody asked for more than what the turns of the case expect."""
    for metric in measures.values():  # noqa: SIM110 - every run is asked, and `all` costs twice that
        if not isinstance(metric, Expectation):
            return False
    return True


def met(case: Case, ledger: Ledger) -> dict[str, Outcome] | None:
    """What `score` comes to without further metrics, if none of the expectations has to wait."""
    measures = expected_of(case) if case.implied else {}
    if (broke := breakage(ledger)) is not None:
        return unscored(measures, broke.unmeasured)
    return _met(measures, case, ledger) if _only_expected(measures) else None


def _met(measures: Mapping[str, Expectation], case: Case, ledger: Ledger) -> dict[str, Outcome]:
    """How far each expectation is met. None of them waits or is critical, so this is one pass."""
    turns = turns_of(case, ledger)
    found: dict[str, Outcome] = {}
    for name, metric in measures.items():
        unseen = unseen_calls(ledger) if metric.field == "tools" else None
        try:
            found[name] = metric.over(turns) if unseen is None else unseen
        except BaseException as error:  # noqa: BLE001 - the sanctioned place, as below
            found[name] = _broken(error)
    return found


def recorded_case(ledger: Ledger) -> Case:
    """The case in the ledger's first event; a trace without one has a case that expects nothing."""
    first = started(ledger)
    if first is None or first.case is None:
        return Case("unrecorded")
    return case_from(first.case, "the recorded case", live=True)


def only_compares(case: Case, metrics: Sequence[Metric]) -> bool:
    """Whether a run of `case` is measured by nothing but its texts and calls.

    Such a measurement neither blocks nor acts nor asks a model, so nobody needs to stand guard.
    Metrics of ours that are of this kind say so: `compares`.
    """
    if case.metrics or (metrics and not all(map(_compares, metrics))):
        return False
    for turn in case.script:
        expect = turn.expect
        if expect is None:
            continue
        if expect.state is not None or expect.intermediate:
            return False
        if expect.tools and not _of_texts(expect.tools):
            return False
    return True


def _compares(metric: Metric) -> bool:
    """Whether a metric is one of ours that only compares; a visitor's word is not taken for it."""
    is_ours = type(metric).__module__.startswith("greenroom.metrics.")
    return is_ours and bool(getattr(metric, "compares", False))


def _of_texts(tools: Sequence[ToolCall | str]) -> bool:
    """Whether expected calls hold plain values only: a query can be slow, and a function is code."""
    for wanted in tools:
        if isinstance(wanted, ToolCall):
            for value in wanted.args.values():
                if type(value) not in _PLAIN:
                    return False
    return True


_PLAIN = frozenset((str, int, float, bool, type(None)))


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


async def _measured(
    metric: Metric, measure: Callable[[], Any], limit: Limit, seconds: float
) -> Outcome:
    try:
        if isinstance(metric, BuiltIn) and _compares(metric):
            # It neither waits nor hangs, and builds its score of JSON.
            found = measure()
            return await found if is_awaited(found) else found
        found = await limit(metric.name, measure, seconds)
        # An expectation may be a function that hangs, but its scores are ours; a visitor's are
        # looked at first.
        return found if isinstance(metric, Expectation) else as_outcome(found, metric.name)
    except BaseException as error:  # noqa: BLE001 - the sanctioned place: a broken metric is no number
        return _broken(error)


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
