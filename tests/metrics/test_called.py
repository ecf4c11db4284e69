"""`called` counts the calls of a tool whose arguments match."""

import re
from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Unmeasured
from greenroom.errors import BadInput
from greenroom.ledger import Ledger, RunResumed, ToolCalled
from greenroom.metrics import called, forbidden_calls
from metrics.runs import (
    run,
    tool,
    user,
)

REFUNDS = run(
    user("Hi"), tool("refund", order=7, urgent=True), tool("refund", order=8), tool("mail")
)


async def outcome(metric: Any, ledger: Ledger, case: Case | None = None) -> Any:
    return (await score(ledger, [metric], case or Case("c")))[metric.name]


@pytest.mark.parametrize(
    "metric, count",
    [
        (called("refund"), 2),
        (called("refund", {"order": 7}), 1),
        (called("refund", {"order": 7, "urgent": True}, match="exact"), 1),
        (called("refund", {"order": 8}, match="exact"), 1),
        (called("refund", where=lambda args: args["order"] > 6), 2),
        (called("refund", {"urgent": True}, where=lambda args: args["order"] == 7), 1),
        (called("refund", at_least=2), 2),
        (called("refund", at_most=2), 2),
        (called("refund", at_least=1, at_most=2), 2),
        (called("refund", {"order": 9}, never=True), 0),
        (called("delete", never=True), 0),
        (called("delete", at_most=3), 0),
    ],
)
async def test_called_passes(metric, count):
    found = await outcome(metric, REFUNDS)
    assert (found.value, found.passed, found.measured) == (1.0, True, count)


@pytest.mark.parametrize(
    "metric, count, reason",
    [
        (called("delete"), 0, "delete was never called; expected at least 1; the agent called refund, mail"),
        (called("refund", {"order": 9}), 0, "refund was called, but never with {'order': 9}; expected at least 1"),
        (called("refund", {"order": 7}, match="exact"), 0, "never with exactly {'order': 7}"),
        (called("refund", {"urgent": 1}), 0, "never with {'urgent': 1}"),
        (called("refund", at_least=3), 2, "refund was called twice; expected at least 3"),
        (called("refund", at_most=1), 2, "refund was called twice; expected at most 1"),
        (called("refund", never=True), 2, "refund was called twice; expected none"),
        (called("refund", where=lambda args: False), 0, "never with arguments that pass the predicate"),
    ],
)  # fmt: skip
async def test_called_fails_and_says_why(metric, count, reason):
    found = await outcome(metric, REFUNDS)
    assert (found.value, found.passed, found.measured) == (0.0, False, count)
    assert reason in found.reason


async def test_called_shows_the_calls_it_looked_at():
    found = await outcome(called("refund", {"order": 9}), REFUNDS)
    assert found.evidence == ["refund(order=7, urgent=True)", "refund(order=8)"]


async def test_a_call_written_twice_after_a_cut_counts_once():
    one, two, three, four = (ToolCalled(call_id="same", tool="refund", args={}) for _ in range(4))
    cut = run([one, RunResumed(), two])
    assert (await outcome(called("refund"), cut)).measured == 1
    assert (await outcome(called("refund"), run([three, four]))).measured == 2


async def test_the_users_own_tools_do_not_count():
    reveal = ToolCalled(call_id="r", tool="reveal", args={}, voice="user")
    assert (await outcome(called("reveal", never=True), run(user("Hi"), [reveal]))).passed


async def test_a_predicate_that_raises_leaves_called_unmeasured():
    found = await outcome(called("mail", where=lambda args: args["to"] == "me"), REFUNDS)
    assert isinstance(found, Unmeasured)
    assert re.fullmatch(r"KeyError: 'to' \(.*test_called\.py:\d+\)", found.why)


async def test_an_async_predicate_is_unmeasured_and_not_always_true():
    async def never_true(args):
        return False

    found = await outcome(called("refund", where=never_true), REFUNDS)
    assert isinstance(found, Unmeasured)
    assert "async" in found.why


async def test_a_predicate_cannot_change_what_happened():
    ledger = run(user("Hi"), tool("pay", to={"name": "Ann"}))
    await outcome(called("pay", where=lambda args: args["to"].clear() is None), ledger)
    assert (await outcome(called("pay", {"to": {"name": "Ann"}}), ledger)).passed


@pytest.mark.parametrize(
    "make",
    [
        lambda: called(""),
        lambda: called(print),  # pyright: ignore[reportArgumentType]
        lambda: called("x", lambda args: True),  # pyright: ignore[reportArgumentType]
        lambda: called("x", match="fuzzy"),  # pyright: ignore[reportArgumentType]
        lambda: called("x", never=True, at_least=1),
        lambda: called("x", at_least=3, at_most=2),
        lambda: called("x", at_least=0),
        lambda: called("x", at_least=-1),
        lambda: called("x", at_least=True),
        lambda: called("x", {"when": object()}),
        lambda: called("x", name=" "),
    ],
)
def test_called_refuses_what_could_not_be_measured(make):
    with pytest.raises(BadInput):
        make()


@pytest.mark.parametrize(
    "tools, count",
    [
        (["delete_account"], 0),
        (["mail"], 1),
        (["re*"], 2),
        (["re*", "mail", "*"], 3),
        (["RE*"], 0),
        (["refun?"], 2),
    ],
)
async def test_no_forbidden_tool_may_be_called(tools, count):
    for metric in (forbidden_calls(*tools), forbidden_calls(tools=tools)):
        found = await outcome(metric, REFUNDS)
        assert (found.value, found.passed, found.measured) == (float(not count), not count, count)


async def test_forbidden_calls_are_shown():
    found = await outcome(forbidden_calls("mail", "delete_*"), REFUNDS)
    assert found.reason == "forbidden: mail()"


@pytest.mark.parametrize("tools", [[], [""], [3], "mail"])
def test_forbidding_nothing_is_refused(tools):
    with pytest.raises(BadInput):
        forbidden_calls(tools=tools)
