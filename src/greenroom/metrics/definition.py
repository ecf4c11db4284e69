"""What can be used as a metric, and what it may return.

A metric is an object with `name` and `measure`, a function whose parameters are filled by name (see
`parameters`), or an object with `evaluate(...)`. It may be sync or async.
"""

import inspect
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import fields, replace
from functools import partial
from math import isfinite
from numbers import Real
from typing import Any, Protocol, cast, overload

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.criteria import Criterion
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured, python_value
from greenroom.errors import BadMetric, BadValue
from greenroom.ledger.events import Unseen
from greenroom.ledger.ledger import Ledger
from greenroom.ledger.plain import plain, short_repr
from greenroom.metrics.builtin import BuiltIn, checked_threshold, is_number
from greenroom.metrics.needs import NOTHING, Needs, checked_needs
from greenroom.metrics.parameters import Run, WantedParameters, filled, wants_of
from greenroom.world.world import World

Function = Callable[..., object]


class Evaluator(Protocol):
    """An object that measures by `evaluate(...)`, whose parameters are filled by name."""

    @property
    def evaluate(self) -> Function: ...


OUTCOMES = (Score, NotApplicable, Unmeasured)
_EXPECTED = "return a bool, a number from 0 to 1, a Score, NotApplicable or Unmeasured"
_SIMPLE = frozenset((type(None), bool, str))


def as_outcome(returned: object, name: str, threshold: float | None = None) -> Outcome:
    """A metric's return value as an outcome; an invalid one is unmeasured, with the reason."""
    if isinstance(returned, OUTCOMES):
        if type(returned) not in OUTCOMES:
            returned = _without_subclass(returned)
        return _checked_score(returned, name) if isinstance(returned, Score) else returned
    returned = python_value(returned)
    if isinstance(returned, bool):
        return Score(returned, threshold=threshold, name=name)
    if isinstance(returned, Real):
        value = float(returned) + 0.0  # -0.0 is 0
        if isfinite(value) and 0 <= value <= 1:
            return Score(value, threshold=threshold, name=name)
        return Unmeasured(
            f"the metric returned {value!r}, which is not a number from 0 to 1; scale it, and keep the "
            f"raw number in Score(..., measured=...)"
        )
    if returned is None:
        return Unmeasured(f"the metric returned None (a forgotten return?); {_EXPECTED}")
    kind = type(returned).__name__
    return Unmeasured(f"the metric returned {short_repr(returned)} of type {kind}; {_EXPECTED}")


def _without_subclass(outcome: Outcome) -> Outcome:
    """The outcome without what a subclass adds, which reports and stores have no place for."""
    kind = next(kind for kind in type(outcome).__mro__ if kind in OUTCOMES)
    return kind(**{one.name: getattr(outcome, one.name) for one in fields(kind)})


def _checked_score(score: Score, name: str) -> Outcome:
    """The score, if it is valid in a report: `passed` is a bool, `threshold` a number, the details JSON."""
    if score.passed is not True and score.passed is not False:  # pyright: ignore[reportUnnecessaryComparison]
        return Unmeasured(f"the metric's Score has passed={short_repr(score.passed)}; give a bool")
    if score.threshold is not None and not is_number(score.threshold):
        return Unmeasured(
            f"the metric's Score has threshold={short_repr(score.threshold)}; give a number, or leave it out"
        )
    try:
        if type(score.measured) not in _SIMPLE:
            plain(score.measured, "Score.measured")
        if score.details is not None:
            plain(score.details, "Score.details")
    except BadValue as error:
        return Unmeasured(str(error))
    return score if score.name else replace(score, name=name)


class Critical(Struct, frozen=True):
    """Wraps a metric to make it critical: measured first, and if it fails, the rest are not measured."""

    inner: Metric
    critical = True

    @property
    def name(self) -> str:
        """The name of the metric inside."""
        return self.inner.name

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome | Awaitable[Outcome]:
        """The outcome of the metric inside."""
        return self.inner.measure(case, ledger, world)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as when a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)


def is_critical(metric: Metric) -> bool:
    """Whether a metric is declared critical."""
    return bool(getattr(metric, "critical", False))


def falls_short(outcome: Outcome) -> bool:
    """Whether an outcome is a failed score, or unmeasured."""
    if isinstance(outcome, Score):
        return not outcome.passed
    return not isinstance(outcome, NotApplicable)


class FunctionMetric(Struct, frozen=True):
    """A function whose parameters are filled by name. It can still be called like one."""

    function: Callable[..., Any]
    name: str
    threshold: float | None = None
    wants: WantedParameters = ()
    critical: bool = False
    declared: Needs | None = None

    @property
    def needs(self) -> Needs:
        """What it declares to need; the needs of its parameters are checked when they are filled."""
        return NOTHING if self.declared is None else self.declared

    def measure(self, case: Case, ledger: Ledger, world: World) -> Outcome | Awaitable[Outcome]:
        """The function's outcome for this trial."""
        run = Run(case, ledger, world, self.name)
        given = filled(self.wants, run, declared=self.declared is not None)
        if isinstance(given, NotApplicable | Unmeasured):
            return given
        returned = self.function(**given)
        if inspect.isawaitable(returned):
            return self._awaited(returned, run)
        return self._outcome(returned, run)

    async def _awaited(self, returned: Awaitable[object], run: Run) -> Outcome:
        return self._outcome(await returned, run)

    def _outcome(self, returned: object, run: Run) -> Outcome:
        """The return value as an outcome, with what the function noted."""
        outcome = as_outcome(returned, self.name, self.threshold)
        if not run.noted or not isinstance(outcome, Score):
            return outcome
        return replace(outcome, evidence=(*outcome.evidence, *run.noted))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def __wrapped__(self) -> Callable[..., Any]:
        return self.function

    def __repr__(self) -> str:
        threshold = "" if self.threshold is None else f", threshold={self.threshold:g}"
        return f"metric({self.name}{threshold})"


@overload
def metric(
    function: Function | Evaluator,
    /,
    *,
    name: str | None = None,
    threshold: float | None = None,
    needs: Iterable[Unseen] | None = None,
) -> FunctionMetric: ...
@overload
def metric(
    *,
    name: str | None = None,
    threshold: float | None = None,
    needs: Iterable[Unseen] | None = None,
) -> Callable[[Function | Evaluator], FunctionMetric]: ...
def metric(
    function: Function | Evaluator | None = None,
    /,
    *,
    name: str | None = None,
    threshold: float | None = None,
    needs: Iterable[Unseen] | None = None,
) -> FunctionMetric | Callable[[Function | Evaluator], FunctionMetric]:
    """Make a function a metric: `@metric`, or `@metric(name="tone", threshold=0.8)`.

    A bool or number it returns passes at `threshold` (0.5 without one); a Score says
    itself whether it passed. `needs` says what a metric that takes the `ledger`, `events` or `steps` reads in
    them, such as `["tools", "words"]`; without it, the metric is unmeasured if anything was not recorded.
    """
    if threshold is not None:
        checked_threshold(threshold, "@metric(...)")
    if function is None:
        return partial(_from_function, name=name, threshold=threshold, needs=needs)
    return _from_function(function, name, threshold, needs)


def as_metric(given: MetricLike) -> Metric:
    """`given` as a metric.

    It may be one already, the name of one or a criterion, a function, or an object or class with
    `evaluate(...)`. Any of them may have an attribute `critical = True`.
    """
    if isinstance(given, (BuiltIn, FunctionMetric)):  # it was checked when it was made
        return cast(Metric, given)
    if isinstance(given, str | Criterion):
        from greenroom.metrics.registry import metric_named

        made = as_metric(metric_named(given))
        return Critical(made) if isinstance(given, Criterion) and given.critical else made
    if isinstance(given, type):
        given = _instance(cast("type[object]", given))
    if not hasattr(given, "measure"):
        return _from_function(given)
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise BadMetric(f"metric {given!r} has `measure` but no `name`; give it one.")
    if (needs := getattr(given, "needs", None)) is not None:
        checked_needs(needs, f"metric {name!r}")
    _checked_critical(given, name)
    return cast(Metric, given)


def _checked_critical(given: object, name: str) -> bool:
    """Whether it is declared critical; BadMetric unless it says so with a bool."""
    critical = getattr(given, "critical", False)
    if isinstance(critical, bool):
        return critical
    raise BadMetric(f"metric {name!r} has critical={critical!r}; give True or False.")


def _from_function(
    given: object,
    name: str | None = None,
    threshold: float | None = None,
    needs: Iterable[Unseen] | None = None,
) -> FunctionMetric:
    if isinstance(given, type):
        given = _instance(cast("type[object]", given))
    inner = _inner(given)
    found = name or getattr(inner, "name", None) or getattr(inner, "__name__", type(inner).__name__)
    if not isinstance(found, str) or not found.strip() or found == "<lambda>":
        raise BadMetric(
            f"metric {given!r} has the name {found!r}, which is not valid; give it one: metric(..., name='tone')."
        )
    function, own = _function(given), getattr(given, "threshold", None)
    if threshold is None and own is not None:
        threshold = checked_threshold(own, f"metric {found!r}")
    critical = _checked_critical(given if hasattr(given, "critical") else inner, found)
    needed = needs if needs is not None else getattr(inner, "needs", None)
    return FunctionMetric(
        function,
        found,
        threshold,
        wants_of(function, found),
        critical,
        None if needed is None else checked_needs(needed, f"metric {found!r}"),
    )


def _inner(given: object) -> object:
    """The function inside a `partial`, or what was given."""
    return cast("partial[object]", given).func if isinstance(given, partial) else given


def _instance(kind: type[object]) -> object:
    try:
        inspect.signature(kind).bind()
    except (TypeError, ValueError) as error:
        raise BadMetric(
            f"metric class {kind.__name__} cannot be created without arguments ({error}); "
            f"give an instance: {kind.__name__}(...)."
        ) from error
    return kind()


def _function(given: object) -> Function:
    if isinstance(given, FunctionMetric):
        return given.function
    evaluate = getattr(given, "evaluate", None)
    if callable(evaluate):
        return evaluate
    if inspect.isroutine(given) or isinstance(given, partial):
        return cast(Function, given)
    if callable(given) and not hasattr(given, "measure"):
        # A bound method can be a key of a cache; a callable object may not even be hashable.
        return given.__call__
    raise BadMetric(
        f"{given!r} is not a function. Give one, or an object with `evaluate(...)`; use metrics such as "
        f"called('tool') without wrapping them."
    )
