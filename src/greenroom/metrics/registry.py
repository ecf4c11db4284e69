"""Metrics by name: what a config or an eval-set file may ask for."""

import inspect
from collections.abc import Callable
from contextlib import suppress
from typing import Any, cast

from greenroom.cases.criteria import Criterion
from greenroom.errors import BadMetric
from greenroom.ledger.choices import near
from greenroom.ledger.plain import Json
from greenroom.metrics.definition import metric
from greenroom.metrics.parameters import KNOWN
from greenroom.plugins import Plugins


def _measures(found: object) -> bool:
    return hasattr(found, "measure") or hasattr(found, "evaluate")


def _accept(found: object, _name: str) -> Callable[..., object] | None:
    return cast("Callable[..., object]", found) if callable(found) or _measures(found) else None


METRICS = Plugins(
    "greenroom.metrics",
    "metric",
    accept=_accept,
    wanted="a metric, a class of metrics, or a function that measures or makes one",
    unknown=BadMetric,
)


def criterion_names() -> list[str]:
    """Every name a criterion may have, given what is installed."""
    return METRICS.names()


def metric_named(criterion: Criterion | str) -> object:
    """The metric a criterion asks for, or a function or object that can become one."""
    asked = Criterion(criterion) if isinstance(criterion, str) else criterion
    options: dict[str, Any] = dict(asked.options)
    if asked.threshold is not None:
        options["threshold"] = asked.threshold
    found = METRICS.load(asked.name)
    if _is_factory(found):
        return _made(found, options, asked.name)
    threshold = options.pop("threshold", None)
    if options:
        first = min(options)
        why = f"metric {asked.name!r} has no option {first!r}, only a threshold."
        raise BadMetric(why, option=first)
    return found if threshold is None else metric(found, name=asked.name, threshold=threshold)


def first_option(name: str) -> inspect.Parameter:
    """The option that a bare value is meant for: in `called:lookup` it is the tool."""
    found = METRICS.load(name)
    options = list(inspect.signature(found).parameters.values()) if _is_factory(found) else []
    if not options:
        raise BadMetric(f"metric {name!r} has no options.")
    return options[0]


def _is_factory(found: Callable[..., object]) -> bool:
    """Whether it has to be called to get a metric.

    A function is a metric itself if a trial fills all its required parameters, unless it is annotated
    to return one: in `def quick(seconds: float) -> Quick` the seconds are an option.
    """
    if isinstance(found, type):
        return True
    if _measures(found):
        return False
    with suppress(Exception):  # annotations are user code, and may name what does not exist
        if _measures(inspect.signature(found, eval_str=True).return_annotation):
            return True
    parameters = inspect.signature(found).parameters.values()
    needed = [p.name for p in parameters if p.default is p.empty and p.kind is not p.VAR_POSITIONAL]
    return not needed or not all(name in KNOWN for name in needed)


def _made(factory: Callable[..., object], options: dict[str, Json], name: str) -> object:
    """The factory called with the options; a list fills a parameter that takes any number of values."""
    known = inspect.signature(factory).parameters
    several: list[object] = []
    for option in list(options):
        if option not in known:
            found = near(option, known)
            meant = f" Did you mean {found[0]!r}?" if found else ""
            takes = f"it takes {', '.join(known)}.{meant}"
            raise BadMetric(f"metric {name!r} has no option {option!r}; {takes}", option=option)
        if known[option].kind is inspect.Parameter.VAR_POSITIONAL:
            value = options.pop(option)
            several = cast("list[object]", value) if isinstance(value, list) else [value]
    try:
        inspect.signature(factory).bind(*several, **options)
    except TypeError as error:
        raise BadMetric(f"metric {name!r}: {error}; give it as an option.") from error
    return factory(*several, **options)
