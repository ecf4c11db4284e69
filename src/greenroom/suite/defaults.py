"""What a run brings to the cases of a set: mocks, metrics, and a model for their users."""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from greenroom.cases.case import Case
from greenroom.cases.criteria import counted_as_adk
from greenroom.cases.evalset import EvalSet
from greenroom.cases.parts import Metric, MetricLike
from greenroom.errors import BadFile, BadMetric
from greenroom.metrics import as_metric
from greenroom.simulation.users import with_user_model
from greenroom.suite.criteria import check_config

if TYPE_CHECKING:
    from greenroom.cases.config import EvalConfig


def equipped(evalset: EvalSet, mocks: Mapping[str, Any], config: "EvalConfig | None") -> EvalSet:
    """The set whose cases have `mocks` for what they do not mock themselves, judged by `config`.

    Its criteria are added to the set's; on equal names they win.
    """
    if mocks:
        cases = [replace(case, mocks={**mocks, **case.mocks}) for case in evalset]
        evalset = replace(evalset, cases=cases)
    return evalset if config is None else _configured(evalset, config)


def _configured(evalset: EvalSet, config: "EvalConfig") -> EvalSet:
    criteria = config.criteria
    if config.shape == "agentflow" and _is_from_adk(evalset):
        # Both tools write such a config; beside a file of google-adk it is google-adk's.
        criteria = [counted_as_adk(criterion) for criterion in criteria]
    if evalset.usual is not None:
        # Another tool's config is the whole list of what counts.
        evalset = replace(evalset, usual=())
    names = {name for criterion in criteria for name in _names(criterion)}
    kept = [given for given in evalset.metrics if names.isdisjoint(_names(given))]
    cases: list[Case] = list(evalset)
    if (simulator := config.user_simulator) is not None:
        limit = simulator.max_allowed_invocations
        cases = [with_user_model(case, simulator.model or None, limit) for case in cases]
    return replace(evalset, cases=cases, metrics=[*kept, *criteria])


def _is_from_adk(evalset: EvalSet) -> bool:
    """Whether the cases come from files of google-adk, be it several of them or in a worker."""
    return evalset.shape.startswith("adk") or any(
        criterion.options.get("match_type") == "ADK" for criterion in evalset.usual or ()
    )


def all_metrics(given: Iterable[MetricLike], evalset: EvalSet) -> list[Metric]:
    """The run's metrics and those of the set; on equal names the run's win."""
    own = [as_metric(metric) for metric in given]
    names = {metric.name for metric in own}
    others = map(as_metric, (*evalset.metrics, *(evalset.usual or ())))
    return [*own, *(metric for metric in others if metric.name not in names)]


def _names(given: MetricLike) -> tuple[str, str]:
    """A metric by the name it was asked for with, and by its own."""
    bare = getattr(given, "name", str(given))
    try:
        return bare, as_metric(given).name
    except BadMetric:
        return bare, bare  # it lacks something, which the other may have


def as_config(given: "EvalConfig | str | Path | None") -> "EvalConfig | None":
    """A config as it is, or from its file; BadFile names every criterion that cannot be measured."""
    if not isinstance(given, str | Path):
        return given
    from greenroom.cases.config import read_config  # only those who keep one need its readers

    try:
        config = read_config(given)
    except BadFile as error:
        check_config(given, error)
        raise
    check_config(given)
    return config
