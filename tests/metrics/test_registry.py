"""Metrics asked for by name, as configs and files do."""

import pytest

from greenroom import Case, Expect, Score, score
from greenroom.cases import Criterion, case_data, case_from
from greenroom.errors import BadMetric
from greenroom.metrics import as_metric
from greenroom.metrics.registry import METRICS, criterion_names

from .runs import agent, run, user


def test_every_registered_name_leads_to_something():
    names = criterion_names()
    assert {"called", "contains", "exact", "judge", "state_is"} <= set(names)
    assert all(callable(METRICS.load(name)) for name in names)


def test_a_bare_name_is_the_metric_with_its_usual_options():
    assert repr(as_metric("exact")) == "exact()"


def test_a_list_fills_a_parameter_that_takes_any_number():
    found = as_metric(Criterion("contains", threshold=0.5, options={"texts": ["a", "b"]}))
    assert repr(found) == "contains('a', 'b', threshold=0.5)"


@pytest.mark.parametrize(
    "asked, told",
    [
        ("exactt", "Did you mean 'exact'"),
        (Criterion("cost_within"), "missing a required argument: 'usd'"),
        (Criterion("contains", options={"text": "a"}), "no option 'text'.*Did you mean 'texts'"),
        (Criterion("exact", threshold=0.5), "no option 'threshold'"),
        (
            Criterion("contains", threshold=7),
            "threshold=7; its scale is 0 to 1: give a number above 0, at most 1",
        ),
    ],
)
def test_a_criterion_that_cannot_be_made_says_what_to_write(asked, told):
    with pytest.raises(BadMetric, match=told):
        as_metric(asked)


@pytest.mark.parametrize(
    "asked, shown",
    [
        (Criterion("called", options={"tool": "pay", "at_most": 2}), "called('pay', at_most=2)"),
        (Criterion("tool_use", options={"tool": "pay"}), "called('pay')"),
        (
            Criterion("forbidden_calls", options={"tools": ["a", "b*"]}),
            "forbidden_calls('a', 'b*')",
        ),
        (Criterion("completed_within", options={"seconds": 3}), "completed_within(3)"),
        (Criterion("turn_within", options={"seconds": 3}), "turn_within(3)"),
        (Criterion("first_answer_within", options={"seconds": 3}), "first_answer_within(3)"),
        (Criterion("model_within", options={"seconds": 3}), "model_within(3)"),
        (Criterion("cost_within", options={"usd": 0.5}), "cost_within(0.5)"),
        (Criterion("tokens_within", options={"output": 9}), "tokens_within(output=9)"),
        (Criterion("turns_within", options={"at_most": 9}), "turns_within(at_most=9)"),
        (
            Criterion("event_count", options={"kind": "tool_call", "exactly": 1}),
            "event_count('tool_call', exactly=1)",
        ),
        (
            Criterion("state_is", options={"scope": "session", "key": "a", "value": [1]}),
            "state_is('session', 'a', [1])",
        ),
        (
            Criterion("state_matches", options={"query": {"session": {"a": 1}}, "turn": 1}),
            "state_matches({'session': {'a': 1}}, turn=1)",
        ),
        (
            Criterion("trajectory_match", threshold=0.8, options={"match_type": "in_order"}),
            "tool_trajectory_avg_score('IN_ORDER', threshold=0.8, name='tool_trajectory_avg_score')",
        ),
        (Criterion("tool_name_match"), "tool_name_match('EXACT', name='tool_name_match')"),
        (
            Criterion("node_sequence", options={"nodes": ["a"], "match_type": "SUBSET"}),
            "node_sequence(['a'], 'SUBSET', name='node_sequence')",
        ),
        (Criterion("efficiency", threshold=0.9), "efficiency(threshold=0.9, name='efficiency')"),
    ],
)
def test_a_criterion_is_reached_by_its_name_with_options_that_are_json(asked, shown):
    assert repr(as_metric(asked)) == shown


@pytest.mark.parametrize("asked", ["tool_trajectory_avg_score", "tool_name_match", "efficiency"])
@pytest.mark.parametrize("threshold", [5, 0, -0.1, 1.01, True])
def test_a_threshold_off_the_scale_is_refused_with_the_scale(asked, threshold):
    with pytest.raises(BadMetric, match="0 to 1"):
        as_metric(Criterion(asked, threshold=threshold))


def test_a_name_nearly_right_is_told_the_near_ones():
    with pytest.raises(BadMetric, match="Did you mean 'tool_trajectory_avg_score'"):
        as_metric("tool_trajectory_score")
    with pytest.raises(BadMetric, match=r"Known: .*called, .*efficiency"):
        as_metric("zzz")


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


async def test_a_reference_is_measured_by_likeness_unless_something_else_is_asked_for():
    case = Case("c", says="Hi", expect=Expect(reference="a good day to you all"))
    ledger = run(user("Hi"), agent("good day"))
    (usual,) = (await score(ledger, case=case)).values()
    assert isinstance(usual, Score)
    assert not usual.passed
    assert usual.threshold == 0.8
    easy = Criterion("response_match_score", threshold=0.3, options={"mode": "recall"})
    (asked,) = (await score(ledger, [easy], case)).values()
    assert isinstance(asked, Score)
    assert asked.passed


async def test_an_expected_way_is_measured_unless_something_else_is_asked_for():
    case = Case("c", says="Hi", expect=Expect(intermediate=["one moment"]))
    ledger = run(user("Hi"), agent("One moment, please."), agent("good day"))
    (usual,) = (await score(ledger, case=case)).values()
    assert isinstance(usual, Score)
    assert usual.name == "intermediate_responses"
    assert usual.passed
