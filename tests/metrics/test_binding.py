"""A metric's parameters say what it measures, and are filled by name from one table."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Optional

import pytest
from msgspec.structs import replace

from greenroom import score
from greenroom.cases import Case, Expect, NotApplicable, Score, Turn, Unmeasured
from greenroom.errors import BadMetric
from greenroom.ledger import Ledger, Usage, call
from greenroom.metrics import as_metric, metric
from greenroom.metrics import parameters as table
from metrics.runs import agent, changed, replied, run, tool, user, weather

if TYPE_CHECKING:
    from somewhere_not_installed import Unreadable  # pyright: ignore[reportMissingImports]

ASKING = Case("asking", says="Hi", expect=Expect(response="It is 21.", tools=[call("look")]))


async def outcome(given: Any, ledger: Ledger | None = None, case: Case | None = None) -> Any:
    found = await score(weather() if ledger is None else ledger, [given], case or Case("c"))
    return found[as_metric(given).name]


async def test_every_name_of_the_table_can_be_asked_for():
    for name in table.KNOWN:
        asked: dict[str, Any] = {}
        exec(f"def asks({name}): return True", asked)
        assert (await outcome(asked["asks"], case=ASKING)) == Score(1.0, True, name="asks"), name


def test_every_name_of_the_table_is_documented():
    words = set((table.__doc__ or "").replace(",", " ").replace(";", " ").split())
    assert set(table.KNOWN) <= words


async def test_each_name_gives_what_it_says():
    ledger = run(
        user("Hi"),
        replied(0.25, Usage(3, 4)),
        tool("look", at="sky"),
        agent("Wait."),
        changed(session={"seen": 1}),
        agent("It is 21."),
        seconds=8.0,
    )
    case = Case("c", says="Hi", expect=ASKING.expect, metadata={"tier": "gold"})
    seen: dict[str, Any] = {}

    @metric
    def looks(
        response, responses, tool_calls, expected_tool_calls, reference, state, usage, cost,
        seconds, turns, messages, steps, events, context,
    ):  # fmt: skip
        seen.update(locals())
        return True

    await outcome(looks, ledger, case)
    assert (seen["response"], seen["responses"]) == ("It is 21.", ["Wait.", "It is 21."])
    assert [(c.tool, c.args) for c in seen["tool_calls"]] == [("look", {"at": "sky"})]
    assert (seen["expected_tool_calls"], seen["reference"]) == ([call("look")], "It is 21.")
    assert (seen["state"], seen["context"]) == ({"session": {"seen": 1}}, {"tier": "gold"})
    assert (seen["usage"], seen["cost"], seen["seconds"]) == (Usage(3, 4), 0.25, 8.0)
    assert (seen["turns"], [m.text for m in seen["messages"]]) == (1, ["Hi", "Wait.", "It is 21."])
    assert [step.type for step in seen["steps"]] == ["message", "tool", "message", "message"]
    assert len(seen["events"]) == len(ledger)


async def test_events_are_those_of_the_agents_side():
    of_the_agent = len(run(user("Hi"), agent("Hello")))
    ledger = run(user("Hi"), [replace(replied()[0], voice="user")], agent("Hello"))

    def counts(events):
        return len(events) == of_the_agent < len(ledger)

    assert (await outcome(counts, ledger)).passed


async def test_result_offers_the_whole_run_as_attributes():
    def affordable(result):
        return result.cost == 0.0 and result.turns == 1 and result.reference is None

    assert (await outcome(affordable)).passed


async def test_an_unknown_attribute_of_the_result_is_unmeasured():
    def misspelt(result):
        return result.respons == ""

    assert "a trial has no 'respons'; it has response" in (await outcome(misspelt)).why


def test_an_unknown_parameter_is_refused_at_definition_with_the_nearest_names_first():
    with pytest.raises(BadMetric, match=r"'respond'.*Use one of: response") as caught:

        @metric
        def typo(respond):
            return True

    assert all(name in str(caught.value) for name in table.KNOWN)


async def test_an_unknown_parameter_of_a_plain_function_is_refused_before_anything_is_measured():
    measured: list[str] = []

    def first(response):
        measured.append(response)
        return True

    def second(mood):
        return True

    with pytest.raises(BadMetric, match="'mood'"):
        await score(weather(), [first, second])
    assert measured == []


@pytest.mark.parametrize("source", ["*args", "**kwargs", "response, /"])
def test_what_cannot_be_filled_by_name_is_refused(source):
    made: dict[str, Any] = {}
    exec(f"def greedy({source}): return True", made)
    with pytest.raises(BadMetric, match="greedy"):
        as_metric(made["greedy"])


async def test_a_parameter_with_a_default_is_an_option_even_under_a_known_name():
    def quick(ledger, seconds=3.0):
        return seconds == 3.0

    assert (await outcome(quick)).passed


async def test_a_known_name_that_allows_none_is_bound_although_it_has_a_default():
    def with_none(reference=None):
        return reference == "It is 21."

    def annotated(reference: str | None = "stand-in"):
        return reference == "It is 21."

    assert (await outcome(with_none, case=ASKING)).passed
    assert (await outcome(annotated, case=ASKING)).passed


async def test_the_default_stands_in_for_what_is_missing():
    def annotated(reference: str | None = "stand-in"):
        return reference == "stand-in"

    assert (await outcome(annotated)).passed


async def test_an_option_can_be_set_with_partial():
    def short(response, words=50):
        return len(response.split()) <= words

    assert (await outcome(short)).passed
    assert not (await outcome(partial(short, words=2))).passed
    assert not (await outcome(metric(partial(metric(short), words=2), name="terse"))).passed


async def test_the_response_of_one_turn_is_not_given_beside_the_reference_of_another():
    @metric
    def same(output: str, expected_response: str) -> bool:
        return output == expected_response

    early = Case("a", turns=[Turn("Hi", Expect(reference="Hello.")), Turn("Bye")])
    ledger = run(user("Hi"), agent("Ha."), user("Bye"), agent("Hello."))
    found = (await score(ledger, [same], early))["same"]
    assert isinstance(found, NotApplicable)
    late = Case("a", turns=[Turn("Hi"), Turn("Bye", Expect(reference="Hello."))])
    assert (await score(ledger, [same], late))["same"].passed
    found = (await score(run(user("Hi"), agent("Hello.")), [same], late))["same"]
    assert isinstance(found, Unmeasured)
    assert found.why == "turn 2, which has the reference, was never reached"


@pytest.mark.parametrize("name", ["reference", "expected_response"])
async def test_a_reference_the_case_lacks_makes_a_metric_not_applicable(name):
    made: dict[str, Any] = {}
    exec(f"def compares(response, {name}): return True", made)
    assert isinstance(await outcome(made["compares"]), NotApplicable)


async def test_expected_calls_the_case_lacks_make_a_metric_not_applicable():
    def efficient(trajectory, expected):
        return len(trajectory) <= len(expected)

    assert isinstance(await outcome(efficient), NotApplicable)


async def test_trajectory_and_expected_can_be_compared_as_they_are():
    def efficient(trajectory: list, expected: list) -> bool:
        return len(trajectory) <= len(expected)

    allowed = Case("c", says="Hi", expect=Expect(tools=[call("get_weather", city="Paris")]))
    none_allowed = Case("c", says="Hi", expect=Expect(tools=[]))
    assert (await outcome(efficient, case=allowed)).passed
    assert not (await outcome(efficient, case=none_allowed)).passed


async def test_the_reference_is_that_of_the_last_turn_that_has_one():
    case = Case(
        "c", turns=[Turn("a", Expect(response="one")), Turn("b", Expect(response="two")), Turn("c")]
    )

    def is_two(reference):
        return reference == "two"

    assert (await outcome(is_two, case=case)).passed


@pytest.mark.parametrize("ledger", [run(user("Hi")), run(user("Hi"), agent("  \n"))])
async def test_without_a_response_a_metric_about_it_is_unmeasured(ledger):
    def polite(response):
        return True

    assert isinstance(await outcome(polite, ledger), Unmeasured)


async def test_an_unknown_price_leaves_a_metric_about_cost_unmeasured():
    def cheap(cost):
        return cost < 1

    found = await outcome(cheap, run(user("Hi"), replied(0.1), replied(None)))
    assert found == Unmeasured("the cost is unknown: no price for m-1")


async def test_unknown_tokens_leave_a_metric_about_usage_unmeasured():
    def small(usage):
        return usage.total < 100

    found = await outcome(small, run(user("Hi"), replied(usage=None)))
    assert found == Unmeasured("the usage is unknown: no token counts from m-1")


async def test_a_parameter_that_allows_none_gets_none():
    def modern(response: str | None, reference: str | None, cost: float | None):
        return (response, reference, cost) == (None, None, None)

    def older(response: Optional[str]):  # noqa: UP045
        return response is None

    def unreadable(response: str | None, ledger: Unreadable):
        return response is None

    silent = run(user("Hi"), replied(None))
    for function in (modern, older, unreadable):
        assert (await outcome(function, silent)).passed, function.__name__


def test_the_signature_is_read_once_however_often_a_function_is_given():
    def plain_function(response):
        return True

    before = table.wants_of.cache_info().misses
    for _ in range(100):
        as_metric(plain_function)
    assert table.wants_of.cache_info().misses == before + 1


async def test_what_a_metric_changes_is_a_copy():
    case = Case(
        "c",
        "Hi",
        expect=Expect(tools=[call("look", at={"$in": ["sky"]})], contains=["21"]),
        metrics=["contains"],
        metadata={"k": {"x": 1}},
        mocks={"look": {"a": [1]}},
    )
    same = repr(case)

    def changes(case, expected_tool_calls, context, result, expected):
        case.metrics.clear()
        case.metadata["k"]["x"] += 1
        case.mocks["look"]["a"].append(2)
        case.script[0].expect.contains.clear()
        result.case.metadata.clear()
        context["k"]["x"] = 9
        for wanted in (*expected_tool_calls, *expected):
            wanted.args["at"]["$in"].clear()
            wanted.args.clear()
        return True

    class Mine:
        name = "mine"

        def measure(self, case, ledger, world):
            case.metadata.clear()
            case.expect.tools.clear()
            return True

    await score(weather(), [metric(changes), Mine()], case=case)
    assert repr(case) == same


async def test_a_metric_cannot_change_what_another_one_found():
    def first(response):
        return Score(0.0, details={"parts": [1]})

    def overall(scores, ctx):
        scores["first"].details["parts"].append(2)
        scores["first"] = Score(1.0)
        ctx.scores.clear()
        return 1.0

    found = await score(weather(), [metric(first), metric(overall)])
    assert found["first"] == Score(0.0, details={"parts": [1]}, name="first")
    assert found["overall"].passed
