"""`efficiency` takes 0.2 off for each call beyond those expected."""

from typing import Any

import pytest

from greenroom import Case, Expect, NotApplicable, Turn, score
from greenroom.errors import BadMetric
from greenroom.ledger import Ledger
from greenroom.metrics import efficiency
from metrics.runs import agent, run, tool, user


async def outcome(metric: Any, case: Case, ledger: Ledger) -> Any:
    return (await score(ledger, [metric], case))[metric.name]


@pytest.mark.parametrize(
    "made, value, passed",
    [(0, 1.0, True), (2, 1.0, True), (3, 0.8, True), (4, 0.6, True), (5, 0.4, False), (9, 0.0, False)],
)  # fmt: skip
async def test_each_extra_call_costs_a_fifth(made, value, passed):
    case = Case("c", says="Hi", expect=Expect(tools=["a", "b"]))
    found = await outcome(efficiency(), case, run(user("Hi"), *(tool("a") for _ in range(made))))
    assert (found.value, found.passed, found.measured) == (value, passed, max(0, made - 2))


async def test_only_turns_that_expect_calls_count_and_one_does_not_pay_for_another():
    case = Case(
        "c",
        turns=[Turn("1", Expect(tools=["a"])), Turn("2"), Turn("3", Expect(tools=["a", "b", "c"]))],
    )
    ledger = run(
        user("1"), tool("a"), tool("x"), agent("."),
        user("2"), tool("x"), tool("x"), tool("x"), agent("."),
        user("3"), agent("."),
    )  # fmt: skip
    found = await outcome(efficiency(), case, ledger)
    assert (found.value, found.reason) == (0.8, "calls: 2 made, 4 expected, 1 too many")


async def test_the_number_of_calls_can_be_given_for_the_whole_run():
    ledger = run(user("Hi"), tool("a"), tool("b"), user("Ho"), tool("c"))
    found = await outcome(efficiency(calls=1, penalty=0.5), Case("c"), ledger)
    assert (found.value, found.measured) == (0.0, 2)


async def test_without_an_expectation_it_does_not_apply():
    found = await outcome(efficiency(), Case("c", says="Hi"), run(user("Hi"), tool("a")))
    assert isinstance(found, NotApplicable)


async def test_it_stands_beside_the_comparison_of_the_calls():
    case = Case("c", says="Hi", expect=Expect(tools=["a"]))
    found = await score(run(user("Hi"), tool("a")), [efficiency()], case)
    assert list(found) == ["expected_tools", "efficiency"]


@pytest.mark.parametrize(
    "options",
    [{"calls": -1}, {"calls": True}, {"penalty": 0}, {"penalty": "1"}, {"threshold": 7}],
)
def test_options_that_make_no_sense_are_refused(options):
    with pytest.raises(BadMetric):
        efficiency(**options)
