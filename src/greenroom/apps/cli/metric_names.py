"""Metrics as they are typed at the command line."""

import json
import re
from collections.abc import Sequence
from typing import Any

from greenroom.cases.criteria import Criterion
from greenroom.cases.parts import MetricLike
from greenroom.errors import BadMetric
from greenroom.ledger.plain import is_object
from greenroom.metrics.registry import first_option
from greenroom.results.files import unique_keys
from greenroom.suite.inputs.judge_models import with_judge_models
from greenroom.suite.inputs.references import load_value
from greenroom.suite.option_types import as_number


def metrics_named(given: Sequence[str]) -> list[MetricLike]:
    """Metrics as they are typed: `safety_v1,turns_within`, `called={"tool": "lookup"}`, `called:lookup`.

    A colon is followed by the metric's first option, an equals sign by all of them.
    `metrics.py:polite` is a metric of your own.
    """
    found: list[MetricLike] = []
    for typed in given:
        _refuse_call(typed)
        name, has_options, options = typed.partition("=")
        if has_options and options.lstrip().startswith("{"):
            found.append(_with_options(name, options))
        else:
            found += [_short(one.strip()) for one in typed.split(",") if one.strip()]
    return found


def _refuse_call(typed: str) -> None:
    """`called("lookup")` is Python; a shell and a list separated by commas would tear it apart."""
    if python := re.match(r"\s*(\w+)\(", typed):
        name = python[1]
        raise BadMetric(
            f"--metrics {typed}: write its first option after a colon, {name}:VALUE, or several as "
            f"'{name}={{\"option\": 1}}'."
        )


def _with_options(name: str, options: str) -> MetricLike:
    try:
        data = json.loads(options, object_pairs_hook=unique_keys)
    except ValueError as error:
        raise BadMetric(
            f"--metrics {name}={options}: its options are not JSON: {error}."
        ) from error
    if not is_object(data):
        raise BadMetric(f"--metrics {name}={options}: give its options as a JSON object.")
    threshold: Any = data.pop("threshold", None)
    return with_judge_models(Criterion(name, threshold=threshold, options=data))


def _short(typed: str) -> MetricLike:
    name, colon, value = typed.partition(":")
    if not colon:
        return typed
    if name.endswith(".py"):
        return load_value(typed)
    option = first_option(name)
    read = value if option.annotation in (str, "str") else as_number(value)
    return Criterion(name, options={option.name: read})
