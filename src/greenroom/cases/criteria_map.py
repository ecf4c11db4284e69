"""Criteria as a mapping by name: how the configs of AgentFlow and google-adk write them."""

from collections.abc import Mapping
from functools import partial
from typing import cast

from greenroom.cases.criteria import COUNTS, Criterion, is_adk_judge
from greenroom.cases.fields import Fields, ProblemList
from greenroom.cases.problems import at, shown, wrong
from greenroom.ledger.plain import Json, as_object, is_object, plain

_MATCH_TYPES = ("EXACT", "IN_ORDER", "ANY_ORDER")
_JUDGE = ("judge_model", "num_samples")
_JUDGE_OPTIONS = (*_JUDGE, "judge_model_config", "parallelism_limit")
_CRITERION = ("threshold", "judge_model_options", "match_type", "ignore_args")


def read_criteria_map(
    given: Mapping[str, Json], problems: ProblemList, *, settle: bool = False
) -> list[Criterion]:
    """The criteria of a mapping by name; what is wrong with any is remembered."""
    found = [
        problems.part(at("criteria", name), partial(_criterion, name, one), None)
        for name, one in given.items()
    ]
    if settle:
        problems.settle()
    return [criterion for criterion in found if criterion is not None]


def _criterion(name: str, given: Json) -> Criterion:
    """A criterion from a bare threshold, or from a mapping; judges may have their options in a separate mapping."""
    place = at("criteria", name)
    if not is_object(given):
        return Criterion(name, threshold=_threshold(given, place))
    # Options are not checked here: only the metric knows them.
    fields = Fields(given, place, (*_CRITERION, *given))
    threshold = fields.take("threshold")
    judge = fields.inner("judge_model_options", _JUDGE_OPTIONS)
    options: dict[str, Json] = {
        name: value for name in _JUDGE if (value := judge.take(name)) is not None
    }
    if rest := judge.rest():
        options["judge_model_options"] = rest
    judge.refuse_others()
    if fields.has("match_type"):
        options["match_type"] = fields.part(
            lambda: _match_type(fields.take("match_type"), place), ""
        )
    if isinstance(ignored := fields.take("ignore_args"), bool):
        options |= {"args": "ignore"} if ignored else {}
    elif ignored is not None:
        options["ignore_args"] = ignored
    for key, value in fields.rest().items():
        if key in options:
            fields.remember(at(place, key), "it is given twice, the other time for the judge")
        options[key] = value
    where = at(place, "threshold")
    checked = None
    if threshold is not None:
        checked = fields.problems.part(where, lambda: _threshold(threshold, where), None)
    critical = cast(bool, options.pop("critical", False))  # Criterion checks it
    fields.settle()
    return Criterion(name, threshold=checked, options=options, critical=critical)


def _threshold(value: Json, place: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise wrong(place, f"{shown(value)} should be a number, or a mapping with `threshold`")
    return value


def _match_type(given: Json, place: str) -> str:
    """The name of a match type; ADK also numbers its three."""
    if isinstance(given, int) and not isinstance(given, bool) and 0 <= given < len(_MATCH_TYPES):
        return _MATCH_TYPES[given]
    if isinstance(given, str):
        return given
    message = f"{shown(given)} should be a name, such as {', '.join(_MATCH_TYPES)}"
    raise wrong(at(place, "match_type"), message)


def mapped_criterion(criterion: Criterion, shape: str) -> Json:
    """The value of a criterion in such a map."""
    options: dict[str, Json] = as_object(plain(criterion.options))
    if shape == "adk":
        if is_adk_judge(criterion):
            options.setdefault(COUNTS, "greenroom")
        if not options and not criterion.critical and criterion.threshold is not None:
            return criterion.threshold
        judge = {name: options.pop(name) for name in _JUDGE if name in options}
        if options.get("args") == "ignore":
            options = {key: value for key, value in options.items() if key != "args"}
            options["ignore_args"] = True
        if judge:
            judge |= as_object(options.get("judge_model_options") or {})
            options["judge_model_options"] = judge
    threshold = {} if criterion.threshold is None else {"threshold": criterion.threshold}
    critical: dict[str, Json] = {"critical": True} if criterion.critical else {}
    return {**threshold, **critical, **options}
