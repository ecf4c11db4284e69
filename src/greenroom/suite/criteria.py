"""What is wrong with the metrics of a run: all of it at once, and where it stands."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike
from greenroom.cases.places import at
from greenroom.cases.problems import Problem, listed
from greenroom.errors import BadFile, BadInput, BadMetric
from greenroom.ledger.plain import Json, is_object
from greenroom.metrics import as_metric

Placed = Iterable[tuple[str, MetricLike]]
"""Metrics, each with its place."""

_SHOWN = 20


def check_metrics(given: Iterable[MetricLike], evalset: EvalSet) -> None:
    """Refuse metrics of a run, its set and its cases that cannot be measured; all are named."""
    bad = [(place, metric) for place, metric in _all(given, evalset) if problem_with(metric)]
    if len(bad) == 1:
        as_metric(bad[0][1])  # alone it needs no place, and says itself what it is
    if bad:
        found = list(_problems(bad))
        raise BadMetric(f"{len(found)} metrics cannot be measured:\n{_first(found)}")


def _all(given: Iterable[MetricLike], evalset: EvalSet) -> Iterator[tuple[str, MetricLike]]:
    yield from _placed("metrics", given)
    yield from _placed("metrics of the set", (*evalset.metrics, *(evalset.usual or ())))
    for case in evalset:
        if case.metrics:
            yield from _placed(f"case {case.id!r}, metrics", case.metrics)


def _placed(place: str, metrics: Iterable[MetricLike]) -> Iterator[tuple[str, MetricLike]]:
    return ((f"{place}[{i}]", metric) for i, metric in enumerate(metrics))


def problem_with(metric: MetricLike) -> str | None:
    """Why there is no such metric, or not with these options; None if it can be measured."""
    try:
        as_metric(metric)
    except BadInput as error:
        return str(error)
    return None


def _problems(metrics: Placed) -> Iterator[Problem]:
    for place, metric in metrics:
        if told := problem_with(metric):
            yield Problem(place, told)


# In files


def check_config(path: str | Path, unread: BadFile | None = None) -> None:
    """Refuse a config whose criteria cannot be measured, each with its line.

    `unread` is why the file cannot be read, if it cannot: that is told with it.
    """
    _check_file(path, unread, _config_criteria)


def check_evalset(path: str | Path, evalset: EvalSet | None, unread: BadFile | None = None) -> None:
    """The same for the file of a set; `evalset` is what was read from it."""
    if evalset is not None and not any(problem_with(one) for _, one in _all((), evalset)):
        return
    from greenroom.cases.files.criteria import criteria_in

    def asked(data: Json) -> Placed:
        # A criterion of the file may have given way to one of a config beside it.
        known = None if evalset is None else [metric for _, metric in _all((), evalset)]
        return [(place, one) for place, one in criteria_in(data) if known is None or one in known]

    _check_file(path, unread, asked)


def _config_criteria(data: Json) -> Placed:
    """The criteria of a config that can be read, whatever may be wrong with others."""
    from greenroom.cases.config import EvalConfig
    from greenroom.cases.files.criteria import criteria_in

    if is_object(data) and is_object(by_name := data.get("criteria")):
        for name, given in by_name.items():
            with suppress(BadInput):
                yield at("criteria", name), EvalConfig(criteria={name: given}).criteria[0]  # pyright: ignore[reportArgumentType]
    else:
        yield from criteria_in(data)


def _check_file(
    path: str | Path, unread: BadFile | None, criteria: Callable[[Json], Placed]
) -> None:
    from greenroom.cases.files.documents import parsed

    earlier: Sequence[Problem] = () if unread is None else unread.problems
    if unread is not None and not any(problem.where for problem in earlier):
        raise unread  # it is no file of this kind, or no text at all
    document = parsed(Path(path))
    known = {problem.where for problem in earlier}
    found = [one for one in _problems(criteria(document.data)) if one.where not in known]
    if found:
        told = sorted([*earlier, *document.located(found)], key=lambda one: one.line or 0)
        count = "1 problem" if len(told) == 1 else f"{len(told)} problems"
        raise BadFile(f"{path} has {count}:\n{_first(told)}", told)
    if unread is not None:
        raise unread


def _first(problems: Sequence[Problem]) -> str:
    """The problems, one a line; of very many the first, and how many more there are."""
    more = f"\n- and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
    return f"{listed(problems[:_SHOWN])}{more}"
