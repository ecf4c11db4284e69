"""Metrics by name: what a config or an eval-set file may ask for.

Ours come in through the same entry points as a plug-in's. They are read when a name is first asked
for, never at import.
"""

import inspect
from collections.abc import Callable
from difflib import get_close_matches
from functools import cache
from typing import TYPE_CHECKING, Any, cast

from greenroom.cases.criteria import Criterion
from greenroom.errors import BadMetric, MissingExtra
from greenroom.metrics.metric import metric
from greenroom.metrics.parameters import KNOWN

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "greenroom.metrics"
_SHOWN = 5


def criterion_names() -> list[str]:
    """Every name a criterion may have here, with what is installed."""
    return sorted(_points())


def metric_named(criterion: Criterion | str) -> Any:
    """The metric a criterion asks for, or a function or object that can become one."""
    asked = Criterion(criterion) if isinstance(criterion, str) else criterion
    options = dict(asked.options)
    if asked.threshold is not None:
        options["threshold"] = asked.threshold
    found = load_metric(asked.name)
    if not _is_factory(found):
        return _with_threshold(found, options, asked.name)
    return _made(found, options, asked.name)


def load_metric(name: str) -> Callable[..., Any]:
    """What is registered under `name`: a factory, or a metric itself."""
    points = _points().get(name)
    if points is None:
        near = get_close_matches(name, _points(), _SHOWN, 0.5)
        meant = f"Did you mean {' or '.join(near)}?" if near else f"Known: {criterion_names()}."
        raise BadMetric(f"there is no metric {name!r}. {meant}")
    if len(points) > 1:
        raise BadMetric(_claimed(name, points))
    try:
        return points[0].load()
    except ImportError as error:
        raise MissingExtra(f"the metric {name!r} cannot be loaded: {error}.") from error


@cache
def _points() -> "dict[str, list[EntryPoint]]":
    """What each name stands for: several things if packages disagree, and then nothing is chosen."""
    from importlib.metadata import entry_points  # slow to load, and only names need it

    found: dict[str, dict[str, EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, {}).setdefault(point.value, point)
    return {name: list(by_value.values()) for name, by_value in found.items()}


def _claimed(name: str, points: "list[EntryPoint]") -> str:
    claims = [f"{p.dist.name if p.dist else 'a package'} ({p.value})" for p in points]
    return (
        f"the metric {name!r} is claimed by {' and '.join(sorted(claims))}. Uninstall all but one, "
        f"or import the one you mean and pass it itself."
    )


def forget() -> None:
    """Look again at what is installed when the next name is asked for."""
    _points.cache_clear()


def _is_factory(found: Any) -> bool:
    """Whether it has to be called to give a metric.

    A function is a metric itself if a run fills all that it must be given, unless it says that it
    returns one: `def quick(seconds: float) -> Quick` is told the seconds by the author.
    """
    if isinstance(found, type):
        return True
    if hasattr(found, "measure") or hasattr(found, "evaluate"):
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
    return hasattr(hint, "measure") or hasattr(hint, "evaluate")


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
