"""Metrics by name: what a config or an eval-set file may ask for."""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, cast

from greenroom.cases.criteria import Criterion
from greenroom.errors import BadMetric
from greenroom.metrics.metric import metric
from greenroom.metrics.parameters import KNOWN
from greenroom.plugins import Plugins


def _measures(found: object) -> bool:
    return hasattr(found, "measure") or hasattr(found, "evaluate")


def _accept(found: Any, _name: str) -> Callable[..., Any] | None:
    return found if callable(found) or _measures(found) else None


METRICS = Plugins(
    "greenroom.metrics",
    "metric",
    accept=_accept,
    wanted="a metric, a class of metrics, or a function that measures or makes one",
    unknown=BadMetric,
)


def criterion_names() -> list[str]:
    """Every name a criterion may have here, with what is installed."""
    return METRICS.names()


def metric_named(criterion: Criterion | str) -> Any:
    """The metric a criterion asks for, or a function or object that can become one."""
    asked = Criterion(criterion) if isinstance(criterion, str) else criterion
    options = dict(asked.options)
    if asked.threshold is not None:
        options["threshold"] = asked.threshold
    found = METRICS.load(asked.name)
    if not _is_factory(found):
        return _with_threshold(found, options, asked.name)
    return _made(found, options, asked.name)


def _is_factory(found: Any) -> bool:
    """Whether it has to be called to give a metric.

    A function is a metric itself if a run fills all that it must be given, unless it says that it
    returns one: `def quick(seconds: float) -> Quick` is told the seconds by the author.
    """
    if isinstance(found, type):
        return True
    if _measures(found):
        return False
    if _gives_metric(found):
        return True
    parameters = inspect.signature(found).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return not needed or not all(name in KNOWN for name in needed)


def _gives_metric(found: Callable[..., Any]) -> bool:
    """Whether a function is annotated to return an object that measures."""
    try:
        hint = inspect.signature(found, eval_str=True).return_annotation
    except Exception:  # noqa: BLE001 - annotations are the author's and may name what is not there
        return False
    return _measures(hint)


def _with_threshold(found: Any, options: dict[str, Any], name: str) -> Any:
    threshold = options.pop("threshold", None)
    if options:
        raise BadMetric(f"metric {name!r} has no option {min(options)!r}, but a threshold only.")
    return found if threshold is None else metric(found, name=name, threshold=threshold)


def _made(factory: Callable[..., Any], options: dict[str, Any], name: str) -> Any:
    """What the factory makes of the options; a list fills a parameter that takes any number."""
    known = inspect.signature(factory).parameters
    several: list[Any] = []
    for option in list(options):
        if option not in known:
            near = get_close_matches(option, known, 1)
            meant = f" Did you mean {near[0]!r}?" if near else ""
            raise BadMetric(
                f"metric {name!r} has no option {option!r}; it takes {', '.join(known)}.{meant}"
            )
        if known[option].kind is inspect.Parameter.VAR_POSITIONAL:
            value = options.pop(option)
            several = cast("list[Any]", value) if isinstance(value, list) else [value]
    try:
        inspect.signature(factory).bind(*several, **options)
    except TypeError as error:
        raise BadMetric(f"metric {name!r}: {error}; give it as an option.") from error
    return factory(*several, **options)
