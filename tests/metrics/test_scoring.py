"""`score` measures a ledger, and only a measurement becomes a number."""

import asyncio
import math
import re
from typing import Any

import pytest

from greenroom import score
from greenroom.cases import Case, Expect, NotApplicable, Score, Turn, Unmeasured
from greenroom.errors import BadLedger, BadMetric, FenceBreach, Refusal, ToolRefused
from greenroom.ledger import Ledger, RunEnded, RunStarted, call
from greenroom.metrics import (
    called,
    contains,
    efficiency,
    forbidden_calls,
    metric,
    tool_name_match,
    tool_trajectory_avg_score,
)
from greenroom.world import LiveWorld
from metrics.runs import agent, changed, run, tool, user, weather

CASE = Case(
    "paris",
    says="Weather in Paris?",
    expect=Expect(tools=[call("get_weather", city="Paris")], contains="21"),
    metadata={"tier": "gold"},
)


@metric
def fine(response):
    return True


def broken(error: Exception) -> Any:
    @metric(name="broken")
    def raises(response):
        raise error

    return raises


def why(outcome: Any) -> str:
    """Why nothing was measured, without the folder and the line of this file."""
    assert isinstance(outcome, Unmeasured)
    return re.sub(r"\((?:.*/)?(test_scoring\.py):\d+\)", r"(\1)", outcome.why)


async def test_a_metric_that_raises_is_unmeasured_and_the_others_are_measured():
    found = await score(weather(), [broken(ValueError("no such key")), fine])
    assert why(found["broken"]) == "ValueError: no such key (test_scoring.py)"
    assert found["fine"] == Score(1.0, True, name="fine")


async def test_an_async_metric_that_raises_is_unmeasured():
    @metric
    async def fails(response):
        await asyncio.sleep(0)
        raise KeyError("order")

    assert why((await score(weather(), [fails]))["fails"]) == "KeyError: 'order' (test_scoring.py)"


async def test_an_error_without_a_message_is_called_by_its_name():
    found = await score(weather(), [broken(AssertionError())])
    assert why(found["broken"]) == "AssertionError (test_scoring.py)"


@pytest.mark.parametrize("refusal", [FenceBreach("no network"), ToolRefused("no mock")])
async def test_a_refusal_is_never_swallowed(refusal):
    with pytest.raises(Refusal, match=str(refusal)):
        await score(weather(), [broken(refusal)])


async def test_a_metric_that_hangs_is_cut():
    @metric
    async def hangs(response):
        await asyncio.Event().wait()

    found = await score(weather(), [hangs, fine], seconds_per_metric=0.5)
    assert found["hangs"] == Unmeasured("the metric did not finish within 0.5 s")
    assert found["fine"].passed  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_timeout_of_the_metrics_own_is_its_own():
    @metric
    async def slow(response):
        raise TimeoutError("the database was busy")

    found = await score(weather(), [slow])
    words = "failed after 3 attempts: TimeoutError: the database was busy (test_scoring.py)"
    assert why(found["slow"]) == words


async def test_a_cancellation_inside_a_metric_does_not_end_the_run():
    @metric
    async def awaits_cancelled(response):
        task = asyncio.create_task(asyncio.Event().wait())
        await asyncio.sleep(0)
        task.cancel()
        await task

    found = await score(weather(), [awaits_cancelled, fine])
    assert isinstance(found["awaits_cancelled"], Unmeasured)
    assert found["fine"].passed  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_cancellation_of_the_scoring_itself_goes_through():
    @metric
    async def hangs(response):
        await asyncio.Event().wait()

    task = asyncio.create_task(score(weather(), [hangs]))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def fails(value: object) -> bool:
    raise ValueError(f"cannot look at {value!r}")


@pytest.mark.parametrize(
    "expect",
    [
        Expect(tools=["look", call("refund", order=7)], contains=["Done", "Bye"]),
        Expect(tools=["look", call("refund", order=fails)], response="Done."),
        Expect(tools=[], contains="Done", state={"session": {"step": fails}}),
        Expect(contains="Done", response="Done."),
    ],
)
@pytest.mark.parametrize("unseen", [(), ("tools",)])
@pytest.mark.parametrize("words", ["Done.", " "])
async def test_expectations_are_measured_alike_alone_and_beside_a_metric(expect, unseen, words):
    case = Case("c", says="Hi", expect=expect)
    began = [RunStarted(run_id="r", opaque=unseen)]
    made = [*tool("look"), *tool("refund", order=8), *changed(session={"step": 1})]
    ledger = Ledger([*began, *user("Hi"), *made, *agent(words)])
    alone, beside = await score(ledger, case=case), await score(ledger, [fine], case)
    assert alone.items() <= beside.items()
    assert list(beside) == [*alone, "fine"]


@pytest.mark.parametrize("others", [[], [fine]])
async def test_a_refusal_inside_an_expectation_is_never_swallowed(others):
    def acts(value: object) -> bool:
        raise ToolRefused("a tool was called")

    case = Case("c", says="Hi", expect=Expect(tools=[call("look", id=acts)]))
    with pytest.raises(ToolRefused):
        await score(run(user("Hi"), tool("look", id=7), agent("x")), others, case)


@pytest.mark.parametrize("others", [[], [fine]])
async def test_a_key_that_is_pressed_while_an_expectation_is_measured_goes_through(others):
    def pressed(value: object) -> bool:
        raise KeyboardInterrupt

    case = Case("c", says="Hi", expect=Expect(tools=[call("look", id=pressed)]))
    with pytest.raises(KeyboardInterrupt):
        await score(run(user("Hi"), tool("look", id=7), agent("x")), others, case)


async def test_a_metric_object_of_ones_own_that_returns_nonsense_is_unmeasured():
    class Mine:
        name = "mine"

        def measure(self, case, ledger, world):
            return math.nan

    assert isinstance((await score(weather(), [Mine()]))["mine"], Unmeasured)


async def test_a_metric_object_needs_a_name():
    class Nameless:
        def measure(self, case, ledger, world):
            return Score(1.0)

    with pytest.raises(BadMetric, match="no `name`"):
        await score(weather(), [Nameless()])


async def test_the_cases_own_metrics_and_expectations_are_measured_too():
    case = Case("c", says="Weather in Paris?", expect=CASE.expect, metrics=[contains("Paris")])
    found = await score(weather(), [fine], case)
    assert list(found) == ["expected_tools", "expected_contains", "contains('Paris')", "fine"]
    assert all(isinstance(o, Score) and o.passed for o in found.values())


async def test_on_equal_names_the_cases_metric_wins():
    case = Case("c", metrics=[contains("London", name="place")])
    found = await score(weather(), [contains("Paris", name="place")], case)
    assert [o.passed for o in found.values() if isinstance(o, Score)] == [False]


@pytest.mark.parametrize(
    "given, own", [([fine, fine], []), ([], [fine, fine]), ([called("a"), called("a")], [])]
)
async def test_two_metrics_of_one_name_are_refused(given, own):
    with pytest.raises(BadMetric, match="two metrics named"):
        await score(weather(), given, Case("c", metrics=own))


async def test_metrics_with_different_arguments_have_different_names():
    found = await score(
        weather(),
        [called("get_weather", {"city": "Paris"}), called("get_weather", {"city": "Oslo"})],
    )
    assert [o.passed for o in found.values() if isinstance(o, Score)] == [True, False]


async def test_without_a_case_the_recorded_one_is_meant():
    ledger = run(user("Weather in Paris?"), tool("look"), agent("It is 21."), case=CASE)

    @metric
    def gold(context):
        return context == {"tier": "gold"}

    found = await score(ledger, [gold])
    assert {n: o.passed for n, o in found.items() if isinstance(o, Score)} == {
        "expected_tools": False,
        "expected_contains": True,
        "gold": True,
    }


async def test_a_ledger_from_disk_is_scored_like_a_fresh_one(tmp_path):
    ledger = run(
        user("Weather in Paris?"),
        tool("get_weather", city="Paris"),
        agent("It is 21 degrees."),
        case=CASE,
    )
    ledger.save(tmp_path / "run.jsonl")
    metrics = [called("get_weather", {"city": "Paris"}), contains("21"), fine]
    fresh = await score(ledger, metrics, CASE)
    assert await score(tmp_path / "run.jsonl", metrics) == fresh
    assert await score(str(tmp_path / "run.jsonl"), metrics) == fresh
    assert await score(Ledger.load(tmp_path / "run.jsonl"), metrics) == fresh
    assert len(fresh) == 5


async def test_a_trace_without_a_case_is_scored_on_what_happened():
    @metric
    def close(response, reference):
        return True

    found = await score(run(user("Hi"), tool("look"), agent("Hello")), [called("look"), close])
    assert found["called('look')"].passed  # pyright: ignore[reportAttributeAccessIssue]
    assert isinstance(found["close"], NotApplicable)


async def test_an_empty_ledger_is_refused(tmp_path):
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(BadLedger, match="empty"):
        await score(tmp_path / "empty.jsonl", [called("refund", never=True)])


async def test_the_judges_calls_must_not_enter_the_ledger_that_is_scored():
    ledger = weather()
    with pytest.raises(BadMetric, match="its own ledger"):
        await score(ledger, [fine], world=LiveWorld(ledger))


async def test_nothing_to_measure_is_an_empty_answer():
    assert await score(weather(), [], Case("c", turns=[Turn("Hi")])) == {}


async def test_measuring_leaves_the_ledger_as_it_was():
    ledger = weather()
    before = ledger.dumps()

    @metric
    def meddles(tool_calls, state, messages, context):
        state["session"] = {"forged": True}
        tool_calls.clear()
        messages.clear()
        context["forged"] = True
        return True

    await score(ledger, [meddles], CASE)
    assert ledger.dumps() == before
    assert CASE.metadata == {"tier": "gold"}


OPAQUE = Ledger(
    [
        RunStarted(run_id="r", opaque=("tools",)),
        *user("Hi"),
        *agent("Done."),
        RunEnded(reason="completed"),
    ]
)


@pytest.mark.parametrize("metric", [tool_trajectory_avg_score(), tool_name_match(), efficiency()])
async def test_a_case_that_says_nothing_of_calls_asks_nothing_of_calls_nobody_saw(metric):
    case = Case("c", says="Hi", expect=Expect(contains="Done"))
    found = await score(OPAQUE, [metric], case)
    assert isinstance(found[metric.name], NotApplicable)
    assert isinstance(found["expected_contains"], Score)


@pytest.mark.parametrize(
    "metric, tools",
    [
        (tool_trajectory_avg_score(), []),
        (tool_trajectory_avg_score(), ["look"]),
        (called("look", never=True), None),
        (forbidden_calls("delete_*"), None),
    ],
)
async def test_what_is_asked_of_calls_nobody_saw_is_unmeasured(metric, tools):
    case = Case("c", says="Hi", expect=Expect(tools=tools, contains="Done"))
    assert isinstance((await score(OPAQUE, [metric], case))[metric.name], Unmeasured)
