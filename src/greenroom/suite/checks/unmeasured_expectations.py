"""Expectations of cases that no metric of the run looks at: a reader should not think they were met."""

from collections.abc import Iterable, Iterator

from greenroom.cases.case import EXPECTATIONS, Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric
from greenroom.metrics.builtin import BuiltIn
from greenroom.metrics.efficiency import Efficiency
from greenroom.metrics.response import Contains, Exact
from greenroom.metrics.scores import metrics_for
from greenroom.results.words import listed, number_of


def unheeded(evalset: EvalSet, metrics: Iterable[Metric]) -> list[str]:
    """A note for each kind of expectation that only a list of criteria without it leaves out.

    That list is another tool's config, or `implied: false`; otherwise what is expected is measured.
    """
    given = list(metrics)
    found: dict[str, list[str]] = {}
    for case in evalset:
        for name in () if case.implied else _left_out(case, given):
            found.setdefault(name, []).append(case.id)
    return [
        f"{number_of(len(ids), 'case')} expected `{name}`, which no metric of the run looks at: {listed(ids)}"
        for name, ids in found.items()
    ]


def _left_out(case: Case, metrics: list[Metric]) -> Iterator[str]:
    expected = [turn.expect for turn in case.script if turn.expect is not None]
    asked = [
        name for name in EXPECTATIONS if any(getattr(one, name) is not None for one in expected)
    ]
    if any("rubrics" in (part.extra or ()) for part in (case, *case.script)):
        asked.append("rubrics")
    if not asked:
        return
    seen: set[str] = set()
    for metric in metrics_for(case, metrics).values():
        metric = getattr(metric, "inner", metric)
        is_judge = hasattr(metric, "bench") or hasattr(metric, "judges")
        if is_judge or not isinstance(metric, BuiltIn):
            return  # it may look at anything
        seen.update(getattr(metric, "covers", ()), _looked_up(metric))
    yield from (name for name in asked if name not in seen)


def _looked_up(metric: BuiltIn) -> tuple[str, ...]:
    """The expectations that a metric looks at because its own arguments are empty."""
    match metric:
        case Contains(texts=()):
            return ("contains",)
        case Exact(text=None):
            return ("response", "reference")
        case Efficiency(calls=None):
            return ("tools",)
        case _:
            return ()
