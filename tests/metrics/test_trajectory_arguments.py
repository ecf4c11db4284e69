"""How the arguments of expected calls are compared with those that were made."""

from datetime import date
from enum import Enum
from typing import Any

import pytest

from greenroom import Case, Expect, Unmeasured, call, rehearse, score
from greenroom.agents import Agent
from greenroom.agents import tool as agent_tool
from greenroom.errors import BadQuery
from greenroom.ledger import Ledger
from greenroom.ledger.arguments import args_match, value_fits
from greenroom.metrics import called, tool_trajectory_avg_score
from greenroom.models import Scripted
from metrics.runs import run, tool, user


def passed(outcome: Any) -> bool:
    return outcome.passed


async def fits(wanted: Any, made: dict[str, Any], **options: Any) -> bool:
    case = Case("c", says="Hi", expect=Expect(tools=[wanted]))
    ledger = run(user("Hi"), tool("f", **made))
    (found,) = (await score(ledger, [tool_trajectory_avg_score(**options)], case)).values()
    return passed(found)


@pytest.mark.parametrize(
    "args, made, passes",
    [
        ("exact", {"a": 1}, True),
        ("exact", {"a": 1, "b": 2}, False),
        ("exact", {}, False),
        ("exact", {"a": True}, False),
        ("exact", {"a": 1.0}, True),
        ("exact", {"a": "1"}, False),
        ("subset", {"a": 1, "b": 2}, True),
        ("subset", {"b": 2}, False),
        ("superset", {}, True),
        ("superset", {"a": 1}, True),
        ("superset", {"a": 1, "b": 2}, False),
        ("superset", {"a": 2}, False),
        ("ignore", {"b": 9}, True),
    ],
)
async def test_arguments_are_compared_as_asked(args, made, passes):
    assert await fits(call("f", a=1), made, args=args) is passes


@pytest.mark.parametrize(
    "rule, made, passes",
    [
        ("ignore", {"city": "Rome"}, True),
        (["city"], {"city": "Paris", "at": 3}, True),
        (["city"], {"city": "Rome", "at": 1}, False),
        (["time.start"], {"time": {"start": 1, "end": 9}}, True),
        (["time.start"], {"time": {"start": 2, "end": 2}}, False),
        (["nowhere"], {"nowhere": 1}, False),
        (["nowhere"], {}, True),
        (lambda args: args["city"].startswith("P"), {"city": "Prague"}, True),
        (lambda args: args["city"].startswith("P"), {"city": "Rome"}, False),
        (lambda args, wanted: args["city"] == wanted["city"].upper(), {"city": "PARIS"}, True),
        (lambda args, wanted: args["city"] == wanted["city"].upper(), {"city": "Paris"}, False),
    ],
)
async def test_one_tool_can_have_a_rule_of_its_own(rule, made, passes):
    wanted = call("f", city="Paris", at=1, time={"start": 1, "end": 2})
    assert await fits(wanted, made, tool_args={"f": rule, "g": "exact"}) is passes


@pytest.mark.parametrize(
    "ignored, passes",
    [
        (["at"], True),
        ({"f": ["at"]}, True),
        ({"g": ["at"]}, False),
        (["where.zone"], False),
        ([], False),
    ],
)
async def test_some_arguments_can_be_left_out(ignored, passes):
    assert await fits(call("f", a=1, at=10), {"a": 1, "at": 11}, ignore_args=ignored) is passes


async def test_an_argument_deep_inside_can_be_left_out():
    wanted, made = call("f", q={"at": 1, "id": 2}), {"q": {"at": 9, "id": 2}}
    assert await fits(wanted, made, ignore_args=["q.at"])
    assert not await fits(wanted, {"q": {"at": 9, "id": 3}}, ignore_args=["q.at"])


async def test_numbers_may_differ_by_the_tolerance():
    wanted = call("f", x=1.0, deep=[{"y": 2}])
    made = {"x": 1.0000001, "deep": [{"y": 2.0000001}]}
    assert await fits(wanted, made, tolerance=1e-6)
    assert not await fits(wanted, made)
    assert not await fits(call("f", x=1), {"x": True}, tolerance=5)
    assert not await fits(call("f", x="1"), {"x": "2"}, tolerance=5)


@pytest.mark.parametrize(
    "wanted, made, passes",
    [
        ({"$regex": "^Par"}, "Paris", True),
        ({"$regex": "^Par"}, "Rome", False),
        ({"$gt": 3}, 4, True),
        ({"$gt": 3}, 3, False),
        ({"$near": [3.14, 0.01]}, 3.141, True),
        ({"$near": [3.14, 0.01]}, 3.2, False),
        ({"$near": [1, 0.5]}, True, False),
        ({"$in": ["a", "b"]}, "b", True),
        ({"$eq": {"$gt": 3}}, {"$gt": 3}, True),
        ({"day": {"$lte": 3}, "to": ["x"]}, {"day": 2, "to": ["x"]}, True),
        ({"day": {"$lte": 3}}, {"day": 2, "more": 1}, False),
        ([{"$gt": 1}, 2], [5, 2], True),
        ([{"$gt": 1}, 2], [5, 2, 3], False),
        ((1, 2), [1, 2], True),
        ({}, {}, True),
        ({}, {"a": 1}, False),
        (None, None, True),
        (None, False, False),
        (date(2024, 5, 1), "2024-05-01", True),
        (lambda v: v > 3, 4, True),
        (lambda v: v > 3, 3, False),
    ],
)
async def test_a_query_or_a_function_may_stand_in_an_expected_argument(wanted, made, passes):
    assert await fits(call("f", v=wanted), {"v": made}) is passes
    case = Case("c", says="Hi", expect=Expect(tools=[call("f", v=wanted)]))
    (implied,) = (await score(run(user("Hi"), tool("f", v=made)), case=case)).values()
    assert passed(implied) is passes


async def test_an_argument_can_be_expected_not_to_be_given():
    wanted = call("f", a=1, b={"$exists": False})
    assert await fits(wanted, {"a": 1})
    assert not await fits(wanted, {"a": 1, "b": 2})


class Colour(Enum):
    RED = "red"


def test_what_the_author_wrote_is_compared_as_json():
    assert value_fits(Colour.RED, "red")
    assert value_fits({Colour.RED: 1}, {"red": 1})
    assert not value_fits(Colour.RED, "blue")


def test_the_ways_to_match_differ_in_what_may_be_missing_or_more():
    more, fewer = {"a": 1, "b": 2}, {"a": 1}
    assert args_match(fewer, more, "subset")
    assert not args_match(more, fewer, "subset")
    assert args_match(more, fewer, "superset")
    assert not args_match(fewer, more, "superset")


@pytest.mark.parametrize("wrong", [{"$regx": "a"}, {"a": {"$near": 3}}, [{"$size": "2"}]])
def test_an_operator_nobody_knows_is_refused_when_the_case_is_written(wrong):
    with pytest.raises(BadQuery, match=r"v of 'f'"):
        Expect(tools=[call("f", v=wrong)])


async def test_called_takes_operators_too():
    ledger = run(user("Hi"), tool("pay", usd=12, to={"name": "Ann"}))
    for args, passes in [({"usd": {"$gt": 10}}, True), ({"to": {"name": {"$regex": "^B"}}}, False)]:
        (found,) = (await score(ledger, [called("pay", args)], Case("c"))).values()
        assert passed(found) is passes
    with pytest.raises(BadQuery, match="usd"):
        called("pay", {"usd": {"$more": 10}})


async def test_a_predicate_cannot_change_what_happened():
    ledger = run(user("Hi"), tool("f", to={"name": "Ann"}))
    case = Case("c", says="Hi", expect=Expect(tools=["f"]))
    meddling = tool_trajectory_avg_score(tool_args={"f": lambda args: args["to"].clear() is None})
    await score(ledger, [meddling], case)
    found = await score(ledger, [called("f", {"to": {"name": "Ann"}})], Case("c"))
    assert passed(found.popitem()[1])


async def test_an_async_predicate_is_unmeasured_and_not_always_true():
    async def never(args):
        return False

    case = Case("c", says="Hi", expect=Expect(tools=["f"]))
    ledger: Ledger = run(user("Hi"), tool("f"))
    (found,) = (
        await score(ledger, [tool_trajectory_avg_score(tool_args={"f": never})], case)
    ).values()
    assert isinstance(found, Unmeasured)


def test_a_function_in_an_expected_argument_is_watched_like_other_code():
    @agent_tool
    def pay(usd: int) -> str:
        """Pay."""
        return ""

    def wait(value):
        while value:
            pass

    clerk = Agent("clerk", model=Scripted(call("pay", usd=3), "Paid."), tools=[pay])
    case = Case(
        "c", says="Pay 3", expect=Expect(tools=[call("pay", usd=wait)]), mocks={"pay": "ok"}
    )
    (result,) = rehearse(clerk, [case], seconds_per_metric=0.3).results
    assert (result.status, "within 0.3 s" in str(result.error)) == ("error", True)


async def test_scored_again_from_the_ledger_a_function_in_an_argument_is_unmeasured():
    case = Case("c", says="Hi", expect=Expect(tools=[call("f", n=lambda n: n > 3)]))
    ledger = run(user("Hi"), tool("f", n=4), case=case)
    found = await score(ledger, [tool_trajectory_avg_score()])
    assert [type(outcome) for outcome in found.values()] == [Unmeasured]
    again = await score(ledger, [tool_trajectory_avg_score()], case)
    assert passed(again.popitem()[1])


async def test_a_type_can_be_a_predicate():
    assert await fits("f", {"n": 1}, tool_args={"f": bool})
    assert not await fits("f", {}, tool_args={"f": bool})


async def test_arguments_are_equal_however_unicode_writes_their_letters() -> None:
    composed, decomposed = "Orl\u00e9ans", "Orle\u0301ans"
    assert await fits(call("f", city=composed), {"city": decomposed})
    assert await fits(call("f", city=decomposed), {"city": composed})
    assert await fits(call("f", places=[{"city": composed}]), {"places": [{"city": decomposed}]})
    assert await fits(call("f", **{composed: 1}), {decomposed: 1})
    assert not await fits(call("f", city=composed), {"city": "Orleans"})
