"""Any function, sync or async, as a metric; the table of its parameters is in `parameters`."""

import inspect
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, cast, overload

from msgspec import Struct

from greenroom.cases.case import Case
from greenroom.cases.criteria import Criterion
from greenroom.cases.parts import Metric, MetricLike
from greenroom.cases.scores import NotApplicable, Outcome, Score, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger.ledger import Ledger
from greenroom.metrics.builtin import BuiltIn
from greenroom.metrics.outcomes import as_outcome, checked_threshold
from greenroom.metrics.parameters import Run, WantedParameters, filled, wants_of


class Critical(Struct, frozen=True):
    """Another metric, measured before those that are not critical."""

    inner: Metric
    critical = True

    @property
    def name(self) -> str:
        """The name of the metric inside."""
        return self.inner.name

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Any:
        """What the metric inside makes of this run."""
        return self.inner.measure(case, ledger, world)

    def __getattr__(self, name: str) -> Any:
        if name == "inner":  # not there yet, as when a copy is made
            raise AttributeError(name)
        return getattr(self.inner, name)


def is_critical(metric: Metric) -> bool:
    """Whether a metric says of itself that the others depend on it."""
    return bool(getattr(metric, "critical", False))


def falls_short(outcome: Outcome) -> bool:
    """Whether an outcome is a failure, or none at all where one was due."""
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

    def measure(self, case: Case, ledger: Ledger, world: Any) -> Outcome | Awaitable[Outcome]:
        """What the function makes of this run."""
        given = filled(self.wants, Run(case, ledger, world))
        if isinstance(given, NotApplicable | Unmeasured):
            return given
        returned = self.function(**given)
        if inspect.isawaitable(returned):
            return self._awaited(returned)
        return as_outcome(returned, self.name, self.threshold)

    async def _awaited(self, returned: Awaitable[Any]) -> Outcome:
        return as_outcome(await returned, self.name, self.threshold)

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
    function: Any, /, *, name: str | None = None, threshold: float | None = None
) -> FunctionMetric: ...
@overload
def metric(
    *, name: str | None = None, threshold: float | None = None
) -> Callable[[Any], FunctionMetric]: ...
def metric(
    function: Any = None, /, *, name: str | None = None, threshold: float | None = None
) -> FunctionMetric | Callable[[Any], FunctionMetric]:
    """Make a function a metric: `@metric`, or `@metric(name="tone", threshold=0.8)`.

    A bool or number it returns passes at `threshold` (0.5 without one); a Score says itself
    whether it passed.
    """
    if threshold is not None:
        checked_threshold(threshold, "@metric(...)")
    if function is None:
        return partial(_from_function, name=name, threshold=threshold)
    return _from_function(function, name, threshold)


def as_metric(given: MetricLike) -> Metric:
    """`given` as a metric.

    It may be one already, the name of one or a criterion, a function, or an object or class with
    `evaluate(...)`. Any of them may have an attribute `critical = True`.
    """
    if isinstance(given, BuiltIn):  # ours, with a name that was looked at
        return cast(Metric, given)
    if isinstance(given, str | Criterion):
        from greenroom.metrics.registry import metric_named

        is_critical = isinstance(given, Criterion) and given.critical
        given = metric_named(given)
        if is_critical:
            return Critical(as_metric(given))
    if isinstance(given, type):
        given = _instance(cast("type[Any]", given))
    if not hasattr(given, "measure"):
        return _from_function(given)
    name = getattr(given, "name", None)
    if not isinstance(name, str) or not name.strip():
        raise BadMetric(f"metric {given!r} has `measure` but no `name`; give it one.")
    return cast(Metric, given)


def _from_function(
    given: Any, name: str | None = None, threshold: float | None = None
) -> FunctionMetric:
    if isinstance(given, type):
        given = _instance(cast("type[Any]", given))
    called = _name(given, name)
    function = _function(given)
    if threshold is None:
        threshold = _own_threshold(given, called)
    return FunctionMetric(
        function, called, threshold, wants_of(function, called), _is_critical(given)
    )


def _instance(kind: type[Any]) -> Any:
    try:
        inspect.signature(kind).bind()
    except (TypeError, ValueError) as error:
        raise BadMetric(
            f"metric class {kind.__name__} cannot be made without arguments ({error}); "
            f"give an instance: {kind.__name__}(...)."
        ) from error
    return kind()


def _function(given: Any) -> Callable[..., Any]:
    if isinstance(given, FunctionMetric):
        return given.function
    evaluate = getattr(given, "evaluate", None)
    if callable(evaluate):
        return evaluate
    if inspect.isroutine(given) or isinstance(given, partial):
        return cast("Callable[..., Any]", given)
    if callable(given) and not hasattr(given, "measure"):
        # A bound method can be remembered; a callable object may not even be hashable.
        return given.__call__
    raise BadMetric(
        f"{given!r} is no function. Give one, or an object with `evaluate(...)`; metrics such as "
        f"called('tool') are finished as they are."
    )


def _name(given: Any, name: str | None) -> str:
    inner = _inner(given)
    found = name or getattr(inner, "name", None) or getattr(inner, "__name__", type(inner).__name__)
    if not isinstance(found, str) or not found.strip() or found == "<lambda>":
        raise BadMetric(
            f"metric {given!r} has the name {found!r}; give it one: metric(..., name='tone')."
        )
    return found


def _inner(given: Any) -> Any:
    return given.func if isinstance(given, partial) else given  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]


def _is_critical(given: Any) -> bool:
    """Whether a function or evaluator says of itself that the others depend on it."""
    return bool(getattr(given, "critical", getattr(_inner(given), "critical", False)))


def _own_threshold(evaluator: Any, name: str) -> float | None:
    """What an evaluator or an earlier @metric says itself."""
    found = getattr(evaluator, "threshold", None)
    return None if found is None else checked_threshold(found, f"metric {name!r}")
