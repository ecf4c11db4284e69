"""A mock answers in a tool's place, in every form it can be written, and is never worn out."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

import pytest

from greenroom import (
    Agent,
    Case,
    Ledger,
    Lines,
    Scripted,
    call,
    fault,
    live,
    rehearse,
    simulate,
    step,
    tool,
)
from greenroom import with_state_change as changing
from greenroom.cases import by_args, in_turn
from greenroom.cases.data import mock_data
from greenroom.cases.liveness import is_live
from greenroom.errors import BadCase, BadQuery
from greenroom.ledger import NodeEnded, ToolFailed, diff, state, state_changes, tool_calls
from greenroom.simulation import replay
from rehearsals import caller, end_of, results

BODIES: list[str] = []


@tool
def weather(city: str, day: str = "today") -> dict[str, Any]:
    """Current weather in a city."""
    BODIES.append(city)
    return {"celsius": 99}


@pytest.fixture(autouse=True)
def no_bodies_yet() -> None:
    BODIES.clear()


PARIS = {"city": "Paris"}
OSLO = {"city": "Oslo"}


async def rehearsed(mock: Any, *calls: dict[str, Any], **options: Any) -> Ledger:
    case = Case("mocked", "Weather?", mocks={"weather": mock}, **options)
    return await simulate(case, caller(weather, *(calls or (PARIS,))))


def by_city(city: str) -> str:
    return f"rain in {city}"


async def slowly(city: str) -> str:
    await asyncio.sleep(0)
    return f"snow in {city}"


def on_any_day(city: str, day: str = "no day") -> str:
    return day


def whatever(**args: Any) -> list[str]:
    return sorted(args)


@dataclass
class Station:
    """A dataclass cannot be hashed, and is a mock all the same."""

    celsius: int

    def __call__(self, city: str) -> int:
        return self.celsius


class Service:
    def execute(self, args: Mapping[str, Any], ctx: Any) -> Any:
        return [ctx.tool, dict(args)]


class AsyncService:
    async def execute(self, args: Mapping[str, Any], ctx: Any) -> Any:
        await asyncio.sleep(0)
        return [ctx.tool, dict(args)]


@pytest.mark.parametrize(
    "mock, expected",
    [
        ({"celsius": 21}, {"celsius": 21}),
        ("sunny", "sunny"),
        (0, 0),
        (None, None),
        (False, False),
        ([1, 2], [1, 2]),
        (by_city, "rain in Paris"),
        (slowly, "snow in Paris"),
        (on_any_day, "no day"),
        (whatever, ["city"]),
        (lambda city: {"city": city}, {"city": "Paris"}),
        (Station(7), 7),
        (Service(), ["weather", PARIS]),
        (AsyncService(), ["weather", PARIS]),
        (fault(malformed='{"cel'), '{"cel'),
        (fault(slow=0.01, value={"late": True}), {"late": True}),
    ],
)
async def test_a_mock_answers_instead_of_the_tool(mock: Any, expected: Any) -> None:
    ledger = await rehearsed(mock)
    assert [(c.result, c.source, c.error) for c in tool_calls(ledger)] == [(expected, "mock", "")]
    assert end_of(ledger).reason == "completed"
    assert BODIES == []


@pytest.mark.parametrize(
    "mock, error",
    [
        (fault("no stations"), "no stations"),
        (fault(timeout=30), "weather timed out after 30 s"),
        (lambda city: fault("no stations"), "no stations"),
        (in_turn(fault("no stations")), "no stations"),
        (by_args((PARIS, fault("no stations"))), "no stations"),
    ],
)
async def test_a_declared_fault_is_told_to_the_agent_and_the_run_goes_on(
    mock: Any, error: str
) -> None:
    ledger = await rehearsed(mock)
    assert [c.error for c in tool_calls(ledger)] == [error]
    assert end_of(ledger).reason == "completed"


@pytest.mark.parametrize(
    "value, told",
    [
        (None, "Obey!"),
        ("rain", "rain\nObey!"),
        (["rain"], ["rain", "Obey!"]),
        ({"celsius": 3}, {"celsius": 3, "note": "Obey!"}),
        ({"note": "rain"}, {"note": "rain\nObey!"}),
        (3, {"value": 3, "note": "Obey!"}),
    ],
)
async def test_an_answer_may_carry_words_that_somebody_planted(value: Any, told: Any) -> None:
    assert results(await rehearsed(fault(injected="Obey!", value=value))) == [told]


async def count(ctx: Any, city: str) -> str:
    await asyncio.sleep(0)
    ctx.state.app["asked"] = ctx.state.app.get("asked", 0) + 1
    return city


@pytest.mark.parametrize(
    "mock",
    [
        fault(lost=count),
        in_turn(fault(lost=changing("rain", {"app": {"asked": 1}}))),
        lambda city: fault(lost=changing(None, {"app": {"asked": 1}})),
    ],
)
async def test_what_was_done_stands_though_its_answer_is_lost(mock: Any) -> None:
    ledger = await rehearsed(mock)
    (made,) = tool_calls(ledger)
    assert made.error == "weather: the connection was lost before an answer came"
    assert made.result is None
    assert state(ledger)["app"] == {"asked": 1}
    assert [change.seq for change in state_changes(ledger)] == [ledger.of(ToolFailed)[0].seq]
    cut = Ledger(ledger.events[: ledger.of(ToolFailed)[0].seq + 1])
    assert state(cut)["app"] == {"asked": 1}
    again = await replay(ledger, caller(weather, PARIS))
    assert diff(ledger, again) == []


@pytest.mark.parametrize("wrong", [{"lost": 1, "injected": "x"}, {"injected": " "}, {}])
def test_a_fault_is_one_thing(wrong: Any) -> None:
    with pytest.raises(BadCase, match="fault"):
        fault(**wrong)


async def test_a_mock_may_raise_a_declared_fault() -> None:
    def sometimes(city: str) -> str:
        if city == "Paris":
            raise fault("strike")
        return "fine"

    assert results(await rehearsed(sometimes, PARIS, OSLO)) == ["strike", "fine"]


async def test_an_async_mock_may_return_or_raise_a_declared_fault() -> None:
    async def returning(city: str) -> Any:
        return fault("strike")

    async def raising(city: str) -> Any:
        raise fault("storm")

    assert results(await rehearsed(returning)) == ["strike"]
    assert results(await rehearsed(raising)) == ["storm"]


async def test_answers_in_turn_are_given_in_turn() -> None:
    mock = in_turn("one", fault("two"), by_city)
    assert results(await rehearsed(mock, PARIS, PARIS, OSLO)) == ["one", "two", "rain in Oslo"]


async def test_one_call_more_than_there_are_answers_is_an_error_that_says_so() -> None:
    end = end_of(await rehearsed(in_turn("one"), PARIS, OSLO))
    assert (end.reason, end.error_type) == ("error", "MockBroke")
    assert "has 1 answers, but this is call number 2, with {'city': 'Oslo'}" in end.error


async def test_a_call_refused_for_its_arguments_takes_no_answer() -> None:
    ledger = await rehearsed(in_turn("one", "two"), PARIS, {"town": "Paris"}, OSLO)
    assert [c.result for c in tool_calls(ledger)] == ["one", None, "two"]


async def test_several_calls_at_once_take_their_answers_in_order() -> None:
    together = [call("weather", city="Paris"), call("weather", city="Oslo")]
    agent = Agent("a", model=Scripted(together, "Done."), tools=[weather])
    case = Case("both", "Weather?", mocks={"weather": in_turn("one", "two")})
    assert results(await simulate(case, agent)) == ["one", "two"]


async def test_answers_in_turn_go_on_over_turns_and_start_again_with_each_case() -> None:
    asks = call("weather", city="Paris")
    agent = Agent("a", model=Scripted(asks, "One.", asks, "Two."), tools=[weather])
    mocks = {"weather": in_turn("one", "two")}
    case = Case("twice", "Weather?", mocks=mocks, user=Lines("And now?"))
    assert results(await simulate(case, agent)) == ["one", "two"]
    assert results(await simulate(case, agent)) == ["one", "two"]


async def test_answers_are_chosen_by_the_arguments_that_are_named() -> None:
    mock = by_args((OSLO, 3), ({"city": "Paris", "day": "today"}, 21), (PARIS, 20), otherwise=0)
    asked = [OSLO, {**PARIS, "day": "today"}, PARIS, {"city": "Rome"}]
    assert results(await rehearsed(mock, *asked)) == [3, 21, 20, 0]


async def test_arguments_no_answer_was_given_for_are_an_error_that_says_so() -> None:
    end = end_of(await rehearsed(by_args((OSLO, 3))))
    assert (end.reason, end.phase, end.error_type) == ("error", "system", "MockBroke")
    assert "has no answer for {'city': 'Paris'}" in end.error


@pytest.mark.parametrize(
    "mock, asked, answers",
    [
        (by_args((PARIS, in_turn(1, 2)), (OSLO, in_turn(10, 20))), "POPO", [1, 10, 2, 20]),
        (by_args((PARIS, in_turn(1, 2)), otherwise=0), "OP", [0, 1]),
        (by_args((PARIS, 0), otherwise=in_turn(1, 2)), "PORP", [0, 1, 2, 0]),
        (in_turn(1, in_turn(4)), "PP", [1, 4]),
        (in_turn(by_args((PARIS, in_turn(1))), by_args((PARIS, in_turn(2)))), "PP", [1, 2]),
        (
            by_args(
                ({"day": "today"}, by_args((PARIS, in_turn(1, 2)), otherwise=in_turn(3, 4))),
                otherwise=0,
            ),
            ["P today", "P", "O today", "P today", "O today"],
            [1, 0, 3, 2, 4],
        ),
    ],
)
async def test_answers_in_turn_inside_a_mock_count_the_calls_that_reach_them(
    mock: Any, asked: Any, answers: list[int]
) -> None:
    cities = {"P": "Paris", "O": "Oslo", "R": "Rome"}
    calls = [{"city": cities[one[0]], **({"day": "today"} if one[1:] else {})} for one in asked]
    assert results(await rehearsed(mock, *calls)) == answers


async def test_a_lost_answer_in_turn_counts_the_calls_that_reach_it() -> None:
    kept = [changing(n, {"session": {"n": n}}) for n in (1, 2)]
    mock = by_args((PARIS, fault(lost=in_turn(*kept))), otherwise=0)
    assert state(await rehearsed(mock, OSLO, PARIS)) == {"session": {"n": 1}}
    assert state(await rehearsed(mock, PARIS, OSLO, PARIS)) == {"session": {"n": 2}}


async def test_an_answer_too_few_inside_a_mock_is_counted_by_the_calls_that_reach_it() -> None:
    end = end_of(await rehearsed(by_args((PARIS, in_turn(1)), otherwise=0), OSLO, PARIS, PARIS))
    assert "has 1 answers, but this is call number 2" in end.error


@pytest.mark.parametrize(
    "wanted",
    [
        {"$in": ["Oslo", "Rome"]},
        {"$regex": "^[OR]"},
        {"$not": "Paris"},
        lambda city: city != "Paris",
    ],
)
async def test_arguments_are_matched_by_operators_and_functions(wanted: Any) -> None:
    mock = by_args(({"city": wanted}, 5), otherwise=0)
    assert results(await rehearsed(mock, OSLO, PARIS, {"city": "Rome"})) == [5, 0, 5]


async def test_an_object_among_the_arguments_is_matched_as_a_whole() -> None:
    @tool
    def search(filter: dict[str, Any]) -> str:
        """Search."""
        raise AssertionError

    mock = by_args(
        ({"filter": {"a": 1}}, "a"), ({"filter": {"a": {"$gt": 1}, "b": 2}}, "b"), otherwise="-"
    )
    asked = [{"filter": {"a": 1}}, {"filter": {"a": 1, "b": 2}}, {"filter": {"a": 3, "b": 2}}]
    ledger = await simulate(Case("c", "Go", mocks={"search": mock}), caller(search, *asked))
    assert results(ledger) == ["a", "-", "b"]


def test_an_operator_that_does_not_exist_is_refused_where_the_mock_is_made() -> None:
    with pytest.raises(BadQuery, match=r"by_args\(\.\.\.\): city uses '\$inn'"):
        by_args(({"city": {"$inn": ["Oslo"]}}, 5))


async def test_a_function_that_breaks_while_it_chooses_names_the_tool() -> None:
    end = end_of(await rehearsed(by_args(({"city": lambda city: 1 / 0}, 5), otherwise=0)))
    assert (end.reason, end.error_type) == ("error", "MockBroke")
    assert "a function in by_args(...), the mock of tool 'weather', raised ZeroDivisionError" in (
        end.error
    )


async def test_a_function_that_chooses_cannot_call_the_tool_it_mocks() -> None:
    mock = by_args(({"city": lambda city: bool(weather(city))}, 5), otherwise=0)
    end = end_of(await rehearsed(mock))
    assert (end.reason, end.error_type) == ("error", "ToolRefused")
    assert BODIES == []


def test_a_mock_that_chooses_by_code_is_code() -> None:
    assert is_live(mock_data(by_args(({"city": str.isupper}, 5))))
    assert not is_live(mock_data(by_args(({"city": {"$in": ["Oslo"]}}, 5))))


async def test_an_answer_for_one_is_no_answer_for_true() -> None:
    @tool
    def pay(amount: Any) -> str:
        """Pay."""
        raise AssertionError

    mock = by_args(({"amount": 1}, "one"), otherwise="other")
    ledger = await simulate(
        Case("p", "Pay", mocks={"pay": mock}), caller(pay, {"amount": True}, {"amount": 1})
    )
    assert results(ledger) == ["other", "one"]


class Eager:
    """Has every attribute that it is asked for, and says that each is of the type that is expected."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name != "__code__":
            raise AttributeError(name)
        return Eager(CodeType)

    @property
    def __class__(self) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self.answer if isinstance(self.answer, type) else Eager

    def __call__(self, **args: Any) -> Any:
        return self.answer


class EagerAsync(Eager):
    async def __call__(self, **args: Any) -> Any:
        return self.answer


@pytest.mark.parametrize("kind", [Eager, EagerAsync])
def test_an_object_that_has_every_attribute_is_called(kind: type[Eager]) -> None:
    agent = caller(weather, PARIS)
    report = rehearse(agent, [Case("c", "Go", mocks={"weather": kind(3)})], store=False)
    ledger = report.results[0].ledger
    assert ledger is not None
    assert results(ledger) == [3]


async def test_an_answer_that_has_every_attribute_is_no_json() -> None:
    end = end_of(await rehearsed(lambda city: Eager(None)))
    assert "the answer of tool 'weather' is not JSON" in end.error
    assert "of type Eager, which is not JSON. Return a dict" in end.error


async def test_a_mock_that_breaks_is_an_error_that_names_it() -> None:
    def broken(city: str) -> str:
        raise ZeroDivisionError("oops")

    end = end_of(await rehearsed(broken))
    assert (end.reason, end.error_type) == ("error", "MockBroke")
    assert "the mock of tool 'weather' raised ZeroDivisionError: oops" in end.error


async def test_a_mock_that_takes_other_arguments_is_an_error_that_names_it() -> None:
    end = end_of(await rehearsed(lambda town: town))
    assert (end.reason, end.error_type) == ("error", "MockBroke")


@pytest.mark.parametrize("value", [float("nan"), object(), b"raw", {1: 2}, {"deep": [{1, 2}]}])
async def test_a_mock_that_answers_what_is_no_json_is_an_error_that_names_the_tool(
    value: Any,
) -> None:
    end = end_of(await rehearsed(lambda city: value))
    assert (end.reason, end.error_type) == ("error", "BadValue")
    assert "the answer of tool 'weather'" in end.error


async def test_a_mock_may_know_the_call_the_run_the_state_and_the_time() -> None:
    def told(city: str, ctx: Any) -> Any:
        return [ctx.tool, ctx.call_id, ctx.run_id, ctx.state.session["n"], ctx.now()]

    case = Case("known", "Weather?", mocks={"weather": told}, state={"session": {"n": 5}}, now=60.0)
    ledger = await simulate(case, caller(weather, PARIS), run_id="run-1")
    assert results(ledger) == [["weather", tool_calls(ledger)[0].id, "run-1", 5, 60.0]]


async def test_a_mock_may_call_its_context_context() -> None:
    assert results(await rehearsed(lambda city, context: context.tool)) == ["weather"]


async def test_a_mock_changes_the_state_when_it_has_answered() -> None:
    def counting(city: str, ctx: Any) -> int:
        ctx.state.session["n"] = ctx.state.session.get("n", 0) + 1
        ctx.state.weather.setdefault("asked", []).append(city)
        return ctx.state.session["n"]

    ledger = await rehearsed(counting, PARIS, OSLO)
    assert results(ledger) == [1, 2]
    assert state(ledger) == {"session": {"n": 2}, "weather": {"asked": ["Paris", "Oslo"]}}


async def test_a_mock_may_ask_for_a_change_of_state_with_its_answer() -> None:
    ledger = await rehearsed(lambda city: changing("wet", {"session": {"umbrella": True}}))
    assert results(ledger) == ["wet"]
    assert state(ledger) == {"session": {"umbrella": True}}


async def test_a_mock_that_fails_leaves_the_state_as_it_was() -> None:
    def failing(city: str, ctx: Any) -> Any:
        ctx.state.session["n"] = 1
        return fault("strike")

    def raising(city: str, ctx: Any) -> Any:
        ctx.state.session["n"] = 1
        raise fault("strike")

    assert state(await rehearsed(raising)) == {}
    assert state(await rehearsed(failing)) == {}


async def test_a_tool_handed_over_as_its_own_mock_runs() -> None:
    ledger = await rehearsed(weather)
    assert [(c.result, c.source) for c in tool_calls(ledger)] == [({"celsius": 99}, "live")]
    assert BODIES == ["Paris"]


async def test_a_tools_function_handed_over_runs_too() -> None:
    assert [c.source for c in tool_calls(await rehearsed(weather.fn))] == ["live"]


async def test_a_live_tool_runs() -> None:
    ledger = await rehearsed(live(weather))
    assert [(c.result, c.source) for c in tool_calls(ledger)] == [({"celsius": 99}, "live")]


async def test_another_tool_as_a_mock_is_a_mistake_that_is_named() -> None:
    @tool
    def forecast(city: str) -> str:
        """Guess."""
        raise AssertionError

    for mock in (forecast, live(forecast)):
        end = end_of(await rehearsed(mock))
        assert (end.reason, end.error_type) == ("error", "BadCase")
        assert "forecast" in end.error
    assert BODIES == []


async def test_what_the_agent_does_to_a_mocks_answer_is_not_done_to_the_mock() -> None:
    answer = {"celsius": [21]}

    def spoil(input: Any, state: Any) -> Any:
        state.session["seen"] = answer["celsius"]
        state.session["seen"].append("spoilt")
        return "spoilt"

    flow = caller(weather, PARIS) >> step(spoil)
    case = Case("mocked", "Weather?", mocks={"weather": answer})
    for _ in range(2):
        ledger = await simulate(case, flow)
        assert results(ledger) == [{"celsius": [21]}]
    assert answer == {"celsius": [21]}


async def test_what_a_step_does_to_a_recorded_answer_is_not_done_to_the_ledger() -> None:
    def answer() -> Any:
        return {"celsius": [21]}

    def spoil(input: Any) -> Any:
        input["celsius"].append("spoilt")
        return input

    ledger = await simulate(Case("c", "Weather?"), step(answer) >> step(spoil))
    outputs = {event.node: event.output for event in ledger.of(NodeEnded)}
    assert outputs["seq.0/answer"] == {"celsius": [21]}
    assert outputs["seq.1/spoil"] == {"celsius": [21, "spoilt"]}


@pytest.mark.parametrize("form", ["function", "object"])
async def test_what_a_mock_does_to_its_arguments_is_not_done_to_the_ledger(form: str) -> None:
    @tool
    def order(lines: list[Any]) -> str:
        """Order."""
        raise AssertionError

    class Spoiler:
        def execute(self, args: Any, ctx: Any) -> str:
            args["lines"].append("spoilt")
            return "ok"

    def spoil(lines: list[Any]) -> str:
        lines.append("spoilt")
        return "ok"

    mock = spoil if form == "function" else Spoiler()
    ledger = await simulate(
        Case("c", "Order", mocks={"order": mock}), caller(order, {"lines": ["tea"]})
    )
    assert [c.args for c in tool_calls(ledger)] == [{"lines": ["tea"]}]
    assert '"spoilt"' not in ledger.dumps()


async def test_a_mock_that_keeps_what_it_gave_out_cannot_change_what_was_recorded() -> None:
    kept: list[Any] = []

    def keeping(city: str) -> Any:
        kept.append({"n": len(kept)})
        for given in kept:
            given["again"] = True
        return kept[-1]

    ledger = await rehearsed(keeping, PARIS, OSLO)
    kept[0]["late"] = True
    assert results(ledger) == [{"n": 0, "again": True}, {"n": 1, "again": True}]


async def test_misspelt_mocks_are_refused_before_the_run() -> None:
    case = Case("typo", "Weather?", mocks={"wether": "sunny", "weathr": "wet"})
    with pytest.raises(BadCase) as refused:
        await simulate(case, caller(weather, PARIS))
    for name, line in zip(case.mocks, str(refused.value).splitlines(), strict=True):
        assert f"mocks tool {name!r}, but the agent offers ['weather']" in line
        assert "Did you mean 'weather'?" in line
