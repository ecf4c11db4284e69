"""Metrics asked for by name, as configs and files do."""

import pytest

from greenroom import Case, Expect, Score, score
from greenroom.cases import Criterion, case_data, case_from
from greenroom.errors import BadMetric
from greenroom.metrics import as_metric
from greenroom.metrics.registry import criterion_names, load_metric

from .runs import agent, run, user


def test_every_registered_name_leads_to_something():
    names = criterion_names()
    assert {"called", "contains", "exact", "judge", "state_is"} <= set(names)
    assert all(callable(load_metric(name)) for name in names)


def test_a_bare_name_is_the_metric_with_its_usual_options():
    assert repr(as_metric("exact")) == "exact()"


def test_a_list_fills_a_parameter_that_takes_any_number():
    found = as_metric(Criterion("contains", threshold=0.5, options={"texts": ["a", "b"]}))
    assert repr(found) == "contains('a', 'b', threshold=0.5)"


@pytest.mark.parametrize(
    "asked, told",
    [
        ("exactt", "Did you mean exact?"),
        (Criterion("cost_within"), "missing a required argument: 'usd'"),
        (Criterion("contains", options={"text": "a"}), "no option 'text'.*Did you mean 'texts'"),
        (Criterion("exact", threshold=0.5), "no option 'threshold'"),
        (Criterion("contains", threshold=7), "threshold 7; give a number above 0, at most 1"),
    ],
)
def test_a_criterion_that_cannot_be_made_says_what_to_write(asked, told):
    with pytest.raises(BadMetric, match=told):
        as_metric(asked)


@pytest.mark.parametrize("wrong", ["", " ", 3])
def test_a_criterion_has_a_name(wrong):
    with pytest.raises(BadMetric, match="name a metric"):
        Criterion(wrong)


async def test_a_case_may_name_its_metrics_and_keeps_them_as_data():
    case = Case(
        "c", says="Hi", expect=Expect(reference="Good day"), metrics=["exact", Criterion("exact")]
    )
    data = case_data(case)
    assert data["metrics"] == ["exact", "exact"]
    assert case_from(data).metrics == [Criterion("exact"), Criterion("exact")]


async def test_a_named_metric_measures_like_any_other():
    case = Case("c", says="Hi", metrics=[Criterion("contains", options={"texts": ["day"]})])
    found = await score(run(user("Hi"), agent("Good day")), case=case)
    (outcome,) = found.values()
    assert isinstance(outcome, Score)
    assert outcome.passed
