"""The eval sets among the values of a module or of a list: every set as it is, every case once."""

from collections.abc import Iterable
from dataclasses import replace
from types import ModuleType
from typing import Any, cast

from greenroom.cases.case import Case
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike


def named_in(module: ModuleType) -> list[tuple[str, Case | EvalSet]]:
    """The cases and sets of a module by their names in it; `many.0` is the first of a list."""
    found: list[tuple[str, Case | EvalSet]] = []
    for name, value in list(vars(module).items()):
        named: list[tuple[str, Any]] = [(name, value)]
        if isinstance(value, list | tuple):
            listed = cast("Iterable[Any]", value)
            named = [(f"{name}.{number}", item) for number, item in enumerate(listed)]
        if all(isinstance(item, Case | EvalSet) for _, item in named):
            found += named
    return found


def sets_in(named: Iterable[tuple[str, Case | EvalSet]], others: str) -> dict[str, EvalSet]:
    """The sets by their names, and under "" the cases in none of them, as a set with the id `others`.

    A case object that several sets have is run once for each way it is judged: a set leaves it to
    another one that has all of its metrics too.
    """
    sets: dict[str, EvalSet] = {}
    loose: dict[int, Case] = {}
    for name, one in named:
        if not isinstance(one, EvalSet):
            loose[id(one)] = one
        elif not any(one is known for known in sets.values()):
            sets[name] = one
    held = {id(case) for one in sets.values() for case in one}
    alone = [case for key, case in loose.items() if key not in held]
    kept = {name: _without_repeats(one, [*sets.values()]) for name, one in sets.items()}
    found = {"": EvalSet(others, alone), **kept}
    return {name: one for name, one in found.items() if len(one)}


def _without_repeats(evalset: EvalSet, sets: list[EvalSet]) -> EvalSet:
    """The set without the cases that it leaves to others, with as many trials as any of them asks for."""
    place = next(n for n, one in enumerate(sets) if one is evalset)
    left = {
        id(case)
        for n, other in enumerate(sets)
        if n != place and _covers(other, evalset) and (n < place or not _covers(evalset, other))
        for case in other
    }
    cases = [case for case in evalset if id(case) not in left]
    return replace(evalset, cases=cases, trials=max(one.trials for one in sets))


def _covers(one: EvalSet, other: EvalSet) -> bool:
    """Whether a set judges its cases by everything that the other one does."""
    own = _judged_by(one)
    return all(metric in own for metric in _judged_by(other))


def _judged_by(evalset: EvalSet) -> list[MetricLike]:
    return [*evalset.metrics, *(evalset.usual or ())]
