"""Eval sets put together into one."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Literal, cast

from greenroom.cases.case import Case, Expect, Turn
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike, metric_name
from greenroom.errors import BadCase
from greenroom.ledger.choices import choice_problem

Deduplicate = bool | Literal["first", "last"]


def merge(
    first: EvalSet, *others: EvalSet, id: str = "merged", deduplicate: Deduplicate = False
) -> EvalSet:
    """The cases of all sets in one; its metadata says which sets, and how many cases were dropped.

    A case id that occurs twice is an error. `deduplicate=True` drops a case that is the same in
    both sets and refuses one that differs; "first" or "last" says which of two to keep.
    """
    if not isinstance(deduplicate, bool) and (
        message := choice_problem(deduplicate, ("first", "last"))
    ):
        raise BadCase(f"merge(...): deduplicate={message} Or give True or False.")
    sets = (first, *others)
    same_metrics = all(_judged_by(one) == _judged_by(first) for one in sets)
    kept: dict[str, tuple[Case, EvalSet]] = {}
    for one in sets:
        for case in one if same_metrics else _measured(one):
            _put(kept, case, one, deduplicate)
    return EvalSet(
        id,
        [case for case, _ in kept.values()],
        description=f"Merged from {len(sets)} eval set{'s' if others else ''}",
        metadata={
            "merged_from": [one.id for one in sets],
            "duplicates_dropped": sum(map(len, sets)) - len(kept),
        },
        metrics=first.metrics if same_metrics else (),
        usual=first.usual if same_metrics else None,
        # Fewer trials than a set asks for would prove less than it claims.
        trials=max(one.trials for one in sets),
    )


def _put(
    kept: dict[str, tuple[Case, EvalSet]], case: Case, one: EvalSet, deduplicate: Deduplicate
) -> None:
    if case.id not in kept or deduplicate == "last":
        kept[case.id] = (case, one)
        return
    held, other = kept[case.id]
    if deduplicate is False:
        raise BadCase(
            f"eval sets {other.id!r} and {one.id!r} both have a case {case.id!r}; rename one, or "
            f"deduplicate."
        )
    if deduplicate is True and not _is_same((held, held.implied), (case, case.implied)):
        raise BadCase(
            f"eval sets {other.id!r} and {one.id!r} have different cases {case.id!r}; rename one, "
            f"or say which to keep when duplicates are dropped: 'first' or 'last'."
        )


def _is_same(one: object, other: object) -> bool:
    """Whether two parts of cases are equal; a list and a tuple are, since readers and authors use both."""
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        left, right = cast("Sequence[object]", one), cast("Sequence[object]", other)
        return len(left) == len(right) and all(map(_is_same, left, right))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        known, found = cast("Mapping[Any, object]", one), cast("Mapping[Any, object]", other)
        return known.keys() == found.keys() and all(_is_same(known[k], found[k]) for k in known)
    if isinstance(one, Case | Turn | Expect) and type(one) is type(other):
        names = [field.name for field in fields(one) if field.compare]
        return all(_is_same(getattr(one, name), getattr(other, name)) for name in names)
    return one == other


def _judged_by(evalset: EvalSet) -> tuple[list[MetricLike], list[MetricLike] | None]:
    usual = evalset.usual
    return list(evalset.metrics), None if usual is None else list(usual)


def _measured(evalset: EvalSet) -> Iterable[Case]:
    """The cases with their set's metrics as their own, so that other sets' cases do not get them."""
    shared = (*evalset.metrics, *(evalset.usual or ()))
    return [measured_by(case, shared) for case in evalset]


def measured_by(case: Case, shared: Sequence[MetricLike]) -> Case:
    """The case with these metrics in addition to its own; if names are equal, its own are kept."""
    own = {metric_name(metric) for metric in case.metrics}
    more = [metric for metric in shared if metric_name(metric) not in own]
    return replace(case, metrics=[*case.metrics, *more]) if more else case
