"""Judges' models that a file names as `judges.py:name`, loaded like the author's other code."""

from collections.abc import Iterable
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

from greenroom.cases.criteria import Criterion
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import MetricLike
from greenroom.metrics import as_metric
from greenroom.models.scripted import Scripted
from greenroom.suite.inputs.references import load_value, split_reference

_OPTIONS = ("model", "judge_model")


def with_judge_models(
    given: MetricLike, folder: Path | None = None, *, imports: bool = True
) -> MetricLike:
    """The metric that a criterion asks for, if it names its judge's model as `judges.py:name`; else what was given.

    The file is looked for in `folder`, the folder of the config, then in the working directory. Without
    `imports` no code is run: a model that is never asked takes its place.
    """
    if not isinstance(given, Criterion):
        return given
    loaded = {
        option: load_value(_found(named, folder)) if imports else Scripted()
        for option in _OPTIONS
        if isinstance(named := given.options.get(option), str) and _is_reference(named)
    }
    if not loaded:
        return given
    options: dict[str, Any] = {**given.options, **loaded}
    return as_metric(replace(given, options=options))


def with_named_judges(evalset: EvalSet, folder: Path | None = None) -> EvalSet:
    """The set with every such model loaded; the same set if there is none."""

    def loaded(metrics: Iterable[MetricLike]) -> list[MetricLike]:
        return [with_judge_models(metric, folder) for metric in metrics]

    asked = chain(evalset.metrics, *(case.metrics for case in evalset if case.metrics))
    if not any(map(_names_a_model, asked)):
        return evalset
    cases = [replace(case, metrics=loaded(case.metrics)) for case in evalset]
    return replace(evalset, cases=cases, metrics=loaded(evalset.metrics))


def _names_a_model(metric: MetricLike) -> bool:
    if not isinstance(metric, Criterion):
        return False
    named = [metric.options.get(option) for option in _OPTIONS]
    return any(isinstance(name, str) and _is_reference(name) for name in named)


def _is_reference(name: str) -> bool:
    where, attr = split_reference(name)
    return bool(attr) and Path(where).suffix == ".py"


def _found(reference: str, folder: Path | None) -> str:
    """Where the file is: next to the config, else in the current folder."""
    where, _ = split_reference(reference)
    if folder is None or (Path(where).is_file() and not (folder / where).is_file()):
        return reference
    return str(folder / reference)
