"""Options of metrics may come from files: a value of the wrong type is refused, and none counts as left out."""

import inspect
import re
from typing import Any

import pytest

from greenroom import Scripted
from greenroom.cases import Criterion
from greenroom.errors import BadMetric
from greenroom.metrics import as_metric
from greenroom.metrics.registry import METRICS, criterion_names

NEEDED: dict[str, dict[str, Any]] = {
    "called": {"tool": "pay"},
    "tool_use": {"tool": "pay"},
    "handed_over": {"to": "desk"},
    "event_count": {"kind": "tool_call"},
    "state_is": {"scope": "session", "key": "paid"},
    "contains": {"texts": ["a"]},
    "keywords": {"words": ["a"]},
}
"""What a metric with a switch or a function among its options cannot do without."""


def options(pattern: str) -> list[tuple[str, str]]:
    """Every option of every metric whose annotation has this pattern in it."""
    return [
        (name, option.name)
        for name in criterion_names()
        for option in inspect.signature(METRICS.load(name)).parameters.values()
        if re.search(pattern, inspect.formatannotation(option.annotation))
    ]


@pytest.mark.parametrize("given", ["no", "", 1, 0, [], None])
@pytest.mark.parametrize("name, option", options(r"\bbool\b"))
def test_a_switch_takes_true_and_false_only(name: str, option: str, given: object):
    with pytest.raises(BadMetric, match=option):
        as_metric(Criterion(name, options={**NEEDED.get(name, {}), option: given}))


@pytest.mark.parametrize("given", ["all", "", 1, 0, [], {}])
@pytest.mark.parametrize(
    "name, option",
    [one for one in options("Callable") if one[1] in ("where", "check")],
)
def test_what_is_no_function_cannot_choose_what_counts(name: str, option: str, given: object):
    with pytest.raises(BadMetric, match=f"{option}=.*give a function"):
        as_metric(Criterion(name, options={**NEEDED[name], option: given}))


@pytest.mark.parametrize("given", ["", 0, [], {}])
@pytest.mark.parametrize(
    "name", [name for name, option in options(r"Sequence\[str\]") if option == "evidence"]
)
def test_empty_evidence_is_refused_and_not_taken_for_the_usual_one(name: str, given: object):
    needed = {"rubrics": ["Is it kind?"]} if name.startswith("rubric") else {}
    asked = {"judge": {"name": "kind", "prompt": "Is it?"}, "llm_judge": {"rubric": "kind"}}
    options = {**needed, **asked.get(name, {}), "model": Scripted("x"), "evidence": given}
    if name == "jury":
        options = {"judges": [Scripted("x"), Scripted("y")], "prompt": "Is it?", "evidence": given}
    with pytest.raises(BadMetric, match="evidence="):
        METRICS.load(name)(**options)


@pytest.mark.parametrize("form", ["", 0, [], {}])
def test_an_empty_form_is_refused_and_not_taken_for_the_usual_one(form: object):
    with pytest.raises(BadMetric, match="form="):
        METRICS.load("llm_judge")(rubric="kind", model=Scripted("x"), form=form)
