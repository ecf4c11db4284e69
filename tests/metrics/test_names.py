"""Built-in metrics are named and shown as they were written."""

from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Score
from greenroom.ledger import ToolCalled
from greenroom.metrics import (
    called,
    completed_within,
    contains,
    cost_within,
    event_count,
    exact,
    matches,
    state_is,
)
from metrics.runs import (
    weather,
)


@pytest.mark.parametrize(
    "metric, shown",
    [
        (called("refund"), "called('refund')"),
        (called("refund", {"order": 7}, at_least=2), "called('refund', {'order': 7}, at_least=2)"),
        (called("refund", never=True), "called('refund', never=True)"),
        (event_count("tool_call", exactly=0), "event_count('tool_call', exactly=0)"),
        (event_count(ToolCalled, at_most=1), "event_count(ToolCalled, at_most=1)"),
        (state_is("session", "a.b", None), "state_is('session', 'a.b', None)"),
        (state_is("session", "a", where=callable), "state_is('session', 'a', where=callable)"),
        (exact(), "exact()"),
        (contains("a", "b", ignore_case=True), "contains('a', 'b', ignore_case=True)"),
        (matches(r"\d+"), r"matches('\\d+')"),
        (cost_within(0.05), "cost_within(0.05)"),
        (completed_within(3), "completed_within(3)"),
    ],
)
def test_a_metric_shows_itself_as_it_was_written_and_is_named_so(metric, shown):
    assert (repr(metric), metric.name) == (shown, shown)


def test_a_given_name_is_kept_and_shown():
    metric = called("refund", name="paid back")
    assert (metric.name, repr(metric)) == ("paid back", "called('refund', name='paid back')")


def test_a_long_metric_has_a_shorter_name():
    metric = exact("x" * 500)
    assert len(metric.name) == 80
    assert len(repr(metric)) > 500


async def test_every_score_carries_its_metrics_name():
    metrics: list[Any] = [
        called("get_weather"),
        contains("21"),
        cost_within(1),
        completed_within(9),
    ]
    found = await score(weather(), metrics)
    assert all(isinstance(o, Score) and o.name == name for name, o in found.items())
